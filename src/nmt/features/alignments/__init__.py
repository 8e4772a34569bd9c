"""Word alignments: those that a model learns from, and those of its translations."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="word alignments of translations, by an attention head that may learn from given ones",
    columns=("nmt.features.alignments.column:ALIGNMENTS",),
    text_tasks=("nmt.features.alignments.truth:TRUTH",),
    findings={"alignments": "nmt.features.alignments.error_rate:ALIGNMENT_ERROR"},
    term="nmt.features.alignments.guided:guided_head",
)
