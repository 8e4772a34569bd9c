"""Attention with linear biases (ALiBi, Press et al., 2022)."""

from nmt.feature import Choice, Feature

FEATURE = Feature(
    summary="ALiBi: positions as penalties that grow with the distance",
    choices={
        "model.positions": {"alibi": Choice("nmt.features.alibi.positions:Alibi", "scores fall linearly with distance")}
    },
)
