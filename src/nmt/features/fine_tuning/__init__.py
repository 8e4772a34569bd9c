"""Fine-tuning: a run that begins from another model, and weights that training leaves as they are."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="runs that begin from another model, with its vocabulary or another one, and weights that stay as they are",
    tokenizer="nmt.runs.origin_tokenizer:old_tokenizer",
)
