"""Random translations: samples, and beam search with noise."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="random translations: samples, and beam search with noise",
    settings={"decoding": Group("nmt.features.sampling.settings:SamplingDecoding")},
    choices={"decoding.strategy": {"sample": Choice("nmt.features.sampling.control:samples", "sampled")}},
    search_in_words="nmt.features.sampling.settings:in_words",
    control="nmt.features.sampling.control:noise",
)
