"""Data preparation on a cluster of Ray, or on a local one."""

from nmt.feature import Choice, Feature, Group

FEATURE = Feature(
    summary="text filtered and encoded on the machines of a Ray cluster",
    packages={"ray": "ray>=2.40"},
    settings={"data": Group("nmt.features.ray_engine.settings:RayData")},
    choices={"data.engine": {"ray": Choice("nmt.features.ray_engine.engine:RayEngine", "a Ray cluster")}},
    check="nmt.features.ray_engine.settings:check",
)
