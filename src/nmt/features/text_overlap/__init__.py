"""Training text that is also in the development and test sets: counted, and dropped if the settings say so."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a warning about training text that is also in development or test sets, and filters that drop it",
    filters=("nmt.data.filters.overlap_sentences:FILTER", "nmt.data.filters.overlap_runs:FILTER"),
    text_tasks=("nmt.data.overlap_task:OVERLAP",),
)
