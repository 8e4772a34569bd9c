"""Fine-tuning: a run that begins from another model, and weights that training leaves as they are."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="runs that begin from another model, with its vocabulary or another one, and weights that stay as they are",
    completes_settings="nmt.features.fine_tuning.shape:with_shape_of_origin",
    tokenizer="nmt.features.fine_tuning.tokenizer:old_tokenizer",
    begins="nmt.features.fine_tuning.begin:beginning",
    prepares_training="nmt.features.fine_tuning.freeze:warn_of_new_pieces",
    hook="nmt.features.fine_tuning.freeze:freezing",
)
