"""Diverse beam search: groups of hypotheses that avoid each other's choices."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="diverse beam search: groups of hypotheses that avoid each other's choices",
    settings={"decoding": Group("nmt.features.diverse.settings:DiverseDecoding")},
    control="nmt.features.diverse.control:diverse",
)
