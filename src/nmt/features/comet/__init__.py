"""COMET, a learned metric, which needs the extra `comet`."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="COMET, a learned metric, also as a utility of minimum Bayes risk",
    packages={"comet": "unbabel-comet>=2.2"},
    settings={
        "decoding": Group("nmt.features.comet.settings:CometDecoding"),
        "evaluation": Group("nmt.features.comet.settings:CometEvaluation"),
    },
    choices={"decoding.utility": {"comet": Choice("nmt.features.comet.utility:by_comet", "COMET, by decoding.comet")}},
    metrics={"comet": "nmt.features.comet.metric:COMET"},
)
