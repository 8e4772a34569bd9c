"""COMET, a learned metric, which needs the extra `comet`."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="COMET, a learned metric",
    settings={"evaluation": Group("nmt.features.comet.settings:CometEvaluation")},
    metrics={"comet": "nmt.features.comet.metric:COMET"},
)
