"""Rotary positions (Su et al., 2021)."""

from nmt.feature import Choice, Feature

FEATURE = Feature(
    summary="rotary positions: queries and keys that are rotated by angles",
    choices={"model.positions": {"rotary": Choice("nmt.features.rotary.positions:Rotary", "rotated queries and keys")}},
    check="nmt.features.rotary.check:check",
)
