"""A decoder-only model: the source and its translation are one causal stream."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a decoder-only model: source and translation as one causal stream",
)
