"""Constituency trees (section 6.3 of the paper): a search among well-formed trees."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="a search among well-formed trees over the words of the sentence",
    settings={"decoding": Group("nmt.features.trees.settings:TreeDecoding")},
    check="nmt.features.trees.settings:check",
    control="nmt.features.trees.control:well_formed",
)
