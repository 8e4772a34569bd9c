"""The longest sentences that are translated and scored."""

MAX_SOURCE_TOKENS = 1024
"""Longest source sentence, EOS included; a model with learned positions may allow less."""
MAX_TARGET_TOKENS = 4096
"""Longest translation, prefix or given translation, EOS included."""
