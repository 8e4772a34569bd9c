"""Data preparation on a cluster of Ray, or on a local one."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="text filtered and encoded on the machines of a Ray cluster",
    packages={"ray": "ray>=2.40"},
)
