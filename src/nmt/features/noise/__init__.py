"""Random changes of the training text, drawn anew in each epoch."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="random changes of the training text: BPE-dropout, typos, upper case",
    settings={"noise": Group("nmt.features.noise.settings:NoiseConfig", adjustable=False)},
    advice={
        "noise.bpe_dropout_source": "nmt.features.noise.settings:bpe_dropout_for",
        "noise.bpe_dropout_target": "nmt.features.noise.settings:bpe_dropout_for",
    },
    check="nmt.features.noise.settings:check",
    uses="nmt.features.noise.settings:uses",
    transform="nmt.features.noise.noise:noise_of",
)
