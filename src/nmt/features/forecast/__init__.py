"""Forecast the development loss and the BLEU of the end of a run, each with a band."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="the development loss and BLEU to expect at the end of a run, each with a band of 80%",
    page="docs/usage.md#forecasts",
    settings={"training": Group("nmt.features.forecast.settings:ForecastTraining")},
    hook="nmt.features.forecast.hook:forecaster",
    describes="nmt.features.forecast.similar_runs:lines",
    sections=("nmt.features.forecast.section:forecasts",),
)
