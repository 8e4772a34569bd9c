"""Weights that training leaves as they are."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="parts of a model that training does not change",
    settings={"training": Group("nmt.features.fine_tuning.settings:FrozenTraining")},
    hook="nmt.features.fine_tuning.freeze:freezing",
)
