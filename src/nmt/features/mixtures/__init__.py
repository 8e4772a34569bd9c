"""Training on several corpora at once, each with settings, a tag and a weight of its own, and in stages."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="training on several corpora at once, each with its weight, and in stages",
    settings={"data": Group("nmt.features.mixtures.settings:MixtureData")},
    completes_settings="nmt.features.mixtures.settings:checked",
    corpora="nmt.features.mixtures.settings:other_corpora",
    mixing="nmt.features.mixtures.mixed_store:MIXING",
)
