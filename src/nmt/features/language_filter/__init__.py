"""A filter of the training text that identifies the languages of both sides."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a filter that drops training pairs with a side that is in another language",
    filters=("nmt.data.filters.language:FILTER",),
)
