"""LayerDrop (Fan et al., 2020): training skips whole layers at random."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="LayerDrop: whole layers that training skips at random",
    layers="nmt.model.layer_drop:skipping",
)
