"""Relative positions (Shaw et al., 2018)."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="relative positions: learned vectors of distances",
    settings={"model": Group("nmt.features.relative_positions.settings:RelativeModel")},
    choices={
        "model.positions": {
            "relative": Choice(
                "nmt.features.relative_positions.positions:Relative", "learned vectors of clipped distances"
            )
        }
    },
)
