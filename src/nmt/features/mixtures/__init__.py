"""Training on several corpora at once, each with settings, a tag and a weight of its own."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="training on several corpora at once, each with its weight",
    mixing="nmt.data.mixtures.mixed_store:MIXING",
)
