"""An exponential moving average of the weights, which is validated and saved in their place."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="a moving average of the weights, which is validated and saved in their place",
    settings={"training": Group("nmt.features.moving_average.settings:AveragedTraining")},
    hook="nmt.features.moving_average.average:moving_average",
)
