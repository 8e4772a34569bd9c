"""Training text that is also in the development and test sets: counted, and dropped if the settings say so."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="a warning about training text that is also in development or test sets, and filters that drop it",
    filters=("nmt.features.text_overlap.sentences:FILTER", "nmt.features.text_overlap.word_runs:FILTER"),
    text_tasks=("nmt.features.text_overlap.task:OVERLAP",),
)
