"""Translations that begin as a request says, and in which given terms stand."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="translations with a given beginning, and with given terms",
    settings={"decoding": Group("nmt.features.constraints.settings:TermsDecoding")},
    control="nmt.features.constraints.control:constraint_control",
)
