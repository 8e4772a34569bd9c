"""Word alignments: those that a model learns from, and those of its translations."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="word alignments of translations, by an attention head that may learn from given ones",
    columns=("nmt.data.alignments:ALIGNMENTS",),
)
