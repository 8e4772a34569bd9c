"""A filter of the training text that compares the numbers of both sides."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a filter that drops training pairs whose sides have different numbers",
    filters=("nmt.data.filters.numbers:FILTER",),
)
