"""Services that draw the curves of runs: Weights & Biases and TensorBoard."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="curves, scores and translations for Weights & Biases and TensorBoard",
    packages={"tensorboard": "tensorboard>=2.18"},
    listeners=("nmt.runs.tensorboard:board", "nmt.runs.wandb:wandb_run"),
)
