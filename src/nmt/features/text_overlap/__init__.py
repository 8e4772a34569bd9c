"""A count of the test sentences that are also in the training text."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a warning if development or test sentences are also in the training text",
    page="docs/features.md#text_overlap",
    text_tasks=("nmt.features.text_overlap.task:OVERLAP",),
)
