"""Rotary positions (Su et al., 2021)."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="rotary positions: queries and keys that are rotated by angles",
)
