"""Word alignments: those that a model learns from, and those of its translations."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="word alignments of translations, by an attention head that may learn from given ones",
    settings={
        "data": Group("nmt.features.alignments.settings:AlignedData"),
        "decoding": Group("nmt.features.alignments.settings:AlignedDecoding"),
        "translate": Group("nmt.features.alignments.settings:AlignedTranslation"),
        "training": Group("nmt.features.alignments.settings:GuidedTraining"),
    },
    columns=("nmt.features.alignments.column:ALIGNMENTS",),
    text_tasks=("nmt.features.alignments.truth:TRUTH",),
    details={"alignment": "nmt.features.alignments.detail:ALIGNMENT"},
    check="nmt.features.alignments.settings:check",
    uses="nmt.features.alignments.settings:uses",
    adapts_search="nmt.features.alignments.settings:with_trained_head",
    findings={"alignments": "nmt.features.alignments.error_rate:ALIGNMENT_ERRORS"},
    term="nmt.features.alignments.guided:guided_head",
)
