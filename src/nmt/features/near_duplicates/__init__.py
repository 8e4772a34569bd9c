"""A filter of the training text that drops pairs that are nearly equal to earlier ones."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="a filter that drops training pairs that nearly repeat earlier ones, by MinHash",
    settings={"data": Group("nmt.features.near_duplicates.settings:NearDuplicateData")},
    filters=("nmt.features.near_duplicates.filter:FILTER",),
)
