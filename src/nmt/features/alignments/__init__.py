"""Word alignments: those that a model learns from, and those of its translations."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="word alignments of translations, by an attention head that may learn from given ones",
    settings={"data": Group("nmt.features.alignments.settings:AlignedData")},
    columns=("nmt.features.alignments.column:ALIGNMENTS",),
    text_tasks=("nmt.features.alignments.truth:TRUTH",),
    check="nmt.features.alignments.settings:check",
    uses="nmt.features.alignments.settings:uses",
    findings={"alignments": "nmt.features.alignments.error_rate:ALIGNMENT_ERROR"},
    term="nmt.features.alignments.guided:guided_head",
)
