"""Random changes of the training text, drawn anew in each epoch."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="random changes of the training text: BPE-dropout, word dropout",
    transform="nmt.data.noise.noise:noise_of",
)
