"""Muon (Jordan et al., 2024): an optimizer that makes the updates of matrices orthogonal."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="Muon, an optimizer that makes the updates of matrices orthogonal",
)
