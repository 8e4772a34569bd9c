"""A decoder-only model: the source and its translation are one causal stream."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="a decoder-only model: source and translation as one causal stream",
    settings={"model": Group("nmt.features.decoder_only.settings:PrefixModel")},
    choices={
        "model.architecture": {
            "decoder_only": Choice(
                "nmt.features.decoder_only.model:DecoderOnly", "source and translation as one causal stream"
            )
        }
    },
    uses="nmt.features.decoder_only.settings:uses",
)
