"""Word alignments: those that a model learns from, and those of its translations."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="word alignments that an attention head learns from",
    settings={
        "data": Group("nmt.features.alignments.settings:AlignedData"),
        "training": Group("nmt.features.alignments.settings:GuidedTraining"),
    },
    columns=("nmt.features.alignments.column:ALIGNMENTS",),
    check="nmt.features.alignments.settings:check",
    uses="nmt.features.alignments.settings:uses",
    adapts_search="nmt.features.alignments.settings:with_trained_head",
    findings={"alignments": "nmt.evaluation.alignments:ALIGNMENT_ERRORS"},
    term="nmt.features.alignments.guided:guided_head",
)
