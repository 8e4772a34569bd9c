"""Settings derived from the size of the text, the minutes there are for training, and the speed of this machine."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="languages, held-out text, vocabulary, width, dropout, batch and schedule from the text and the minutes",
    completes_settings="nmt.own_text.complete:with_values_for_text",
)
