"""Attention with linear biases (ALiBi, Press et al., 2022)."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="ALiBi: positions as penalties that grow with the distance",
)
