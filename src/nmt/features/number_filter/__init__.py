"""A filter of the training text that compares the numbers of both sides."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="a filter that drops training pairs whose sides have different numbers",
    settings={"data": Group("nmt.features.number_filter.settings:NumberData")},
    filters=("nmt.features.number_filter.numbers:FILTER",),
)
