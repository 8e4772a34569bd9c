"""Translations without repetitions and unknown words, and of a certain length."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="translations without repetitions, without unknown words, of a least length",
    settings={"decoding": Group("nmt.features.restrictions.settings:RestrictedDecoding")},
    control="nmt.features.restrictions.control:restrictions",
)
