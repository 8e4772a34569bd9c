"""Relative positions (Shaw et al., 2018)."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="relative positions: learned vectors of distances",
)
