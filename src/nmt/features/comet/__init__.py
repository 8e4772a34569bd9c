"""COMET, a learned metric, which needs the extra `comet`."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="COMET, a learned metric, also as a utility of minimum Bayes risk",
    packages={"comet": "unbabel-comet>=2.2"},
)
