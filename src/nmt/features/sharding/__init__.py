"""Weights that processes divide among them, for models that outgrow a GPU."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="weights, gradients and averages divided between GPUs, for models that outgrow one",
)
