"""Decide whether a run can be resumed from its checkpoint, and whether there is anything left to do."""

from dataclasses import asdict

from nmt.config.saved import flatten, read_settings
from nmt.config.training import SCHEDULES_WITHOUT_END
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.runs.checkpoint import Checkpoint
from nmt.runs.checkpoints import load_last_good
from nmt.runs.compatibility import check_resumable
from nmt.training.build import TrainingData
from nmt.training.state import saved_best, saved_state


def find_checkpoint(config: Config, data: TrainingData) -> Checkpoint | None:
    """Return the newest undamaged checkpoint of the run, if any; raise an error if it cannot be resumed from."""
    checkpoint = load_last_good(config.run_folder)
    if checkpoint is None:
        return None
    check_resumable(read_settings(checkpoint.config_text), flatten(asdict(config)))
    tokenizer_changed = checkpoint.tokenizer().checksum != data.tokenizer.checksum
    if tokenizer_changed or (checkpoint.trainer or {})["data"] != data.fingerprint:
        raise UserError(
            f"the data in {config.data_folder} is not the data that run {config.name} began with "
            f"({'its tokenizer' if tokenizer_changed else 'its training text'} has changed): "
            "prepare the old data again, or give the run another name= to start a new one"
        )
    return checkpoint


def finished_message(checkpoint: Checkpoint, config: Config) -> str:
    """Return a message that the run is finished and how to continue it; an empty string if it is not finished."""
    loop, training = saved_state(checkpoint)["loop"], config.training
    stale = saved_best(checkpoint, training.best_by).stale
    minutes = loop.get("training_seconds", 0.0) / 60
    if loop.get("unseen"):
        return ""
    if checkpoint.step >= training.steps:
        if training.schedule not in SCHEDULES_WITHOUT_END:
            return (
                f"run {config.name} is finished: training.schedule={training.schedule} has come to its end at step "
                f"{checkpoint.step}. To train its model further, begin a new run from its weights, with another name= "
                "(`nmt train --help` lists the settings)"
            )
        remedy = f"set training.steps above {checkpoint.step}"
    elif training.patience and stale >= training.patience:
        remedy = f"set training.patience above {stale}, the validations without a new best"
    elif training.max_training_minutes and minutes > training.max_training_minutes:
        remedy = f"set training.max_training_minutes above {minutes:.4g}, the minutes of training so far"
    else:
        return ""
    return (
        f"run {config.name} is finished: it is at step {checkpoint.step} of {training.steps}. "
        f"To continue it, {remedy}; to train a new model, set another name="
    )
