"""Watch the processes of a run: one that hangs, is slow, or has other weights; and the state of the GPUs."""

from nmt.feature import Feature, Group

FEATURE = Feature(
    summary="names a process that hangs, is slow or has other weights, and logs clocks and power of the GPUs",
    page="docs/watching.md",
    settings={"watch": Group("nmt.features.watching.settings:WatchConfig", commands=("train",), searchable=False)},
    hook="nmt.features.watching.watcher:watcher",
    prepares_training="nmt.features.watching.flight:prepare",
)
