"""LayerDrop (Fan et al., 2020): training skips whole layers at random."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="LayerDrop: whole layers that training skips at random",
    settings={"model": Group("nmt.features.layer_drop.settings:SkippingModel")},
    check="nmt.features.layer_drop.settings:check",
    uses="nmt.features.layer_drop.settings:uses",
    layers="nmt.features.layer_drop.skipping:skipping",
)
