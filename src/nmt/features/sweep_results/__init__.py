"""The results of the runs of a sweep: a number for a search, and a record per run."""

from nmt.feature import Feature

FEATURE = Feature(
    summary="the results of sweeps: a number for a search, and a record per run",
    packages={"optuna": "hydra-optuna-sweeper>=1.3", "submitit": "hydra-submitit-launcher>=1.2"},
    watches_runs="nmt.sweeps.watch:watch",
)
