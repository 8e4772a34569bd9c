"""Services that draw the curves of runs: Weights & Biases and TensorBoard."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="curves, scores and translations for Weights & Biases and TensorBoard",
    listeners=("nmt.runs.tensorboard:board", "nmt.runs.wandb:wandb_run"),
)
