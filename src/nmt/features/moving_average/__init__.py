"""An exponential moving average of the weights, which is validated and saved in their place."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a moving average of the weights, which is validated and saved in their place",
    hook="nmt.training.moving_average:moving_average",
)
