"""Sinusoids and a first decoder input as Marian has them, so that a model can be written in Marian's format."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="Marian's sinusoids and its zero start, for models as Marian and bergamot compute them",
    choices={
        "model.positions": {"marian": Choice("nmt.features.marian_training.positions:MarianSinusoids", "Marian's")}
    },
    settings={"training": Group("nmt.features.marian_training.settings:MarianTraining")},
    check="nmt.features.marian_training.settings:check",
    uses="nmt.features.marian_training.settings:uses",
    hook="nmt.features.marian_training.zero_start:zero_start",
)
