"""Weights that processes divide among them, for models that outgrow a GPU."""

from nmt.feature import Choice, Feature

FEATURE = Feature(
    summary="weights, gradients and averages divided between GPUs, for models that outgrow one",
    choices={
        "runtime.shard": {
            "weights": Choice(
                "nmt.features.sharding.divided:DividedWeights",
                "each process keeps a part of every weight, of its gradient and of Adam's averages",
            )
        }
    },
    check="nmt.features.sharding.settings:check",
    uses="nmt.features.sharding.settings:uses",
)
