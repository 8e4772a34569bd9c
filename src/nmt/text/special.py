"""Ids of the four special tokens, the same in every vocabulary, and how the unknown one is spelled."""

UNK = 0
PAD = 1
BOS = 2
EOS = 3

UNKNOWN_PIECE = "<unk>"
"""The unknown token in a vocabulary."""
UNKNOWN_MARK = "⁇"
"""What the tokenizer writes for the unknown token."""
