"""Open what a run trains on, and the checkpoint that it resumes from."""

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import NamedTuple

from nmt.compute import distributed
from nmt.config.saved import check_resumable, flatten, read_settings
from nmt.config.training import SCHEDULES_WITHOUT_END
from nmt.config.tree import Config
from nmt.data.manifest import TOKENIZER_TASK, collect_task, verify_task
from nmt.data.mixture import open_training_text
from nmt.data.prepared import require_prepared
from nmt.data.store import Pairs
from nmt.errors import UserError
from nmt.evaluation.bleu import check_tokenizers
from nmt.runs.checkpoint import Checkpoint
from nmt.runs.checkpoints import load_last_good
from nmt.runs.layout import WEIGHTS
from nmt.text.tokenizer import Tokenizer
from nmt.training.state import saved_state
from nmt.training.validation import DevelopmentSet, open_development_sets


class TrainingData(NamedTuple):
    """The prepared data of a run."""

    train: Pairs
    valid: Mapping[str, DevelopmentSet]
    """The development sets by the names of their splits: valid, and those of further corpora, such as bt.valid."""
    tokenizer: Tokenizer

    @property
    def fingerprint(self) -> str:
        """A string that identifies the tokens of the training data."""
        return " ".join(self.train.checksums)


def open_data(config: Config) -> TrainingData:
    """Open the prepared data; the main process verifies that it is what the settings name, and its checksums."""
    if distributed.is_main():
        require_prepared(config)
    train = open_training_text(config.data_folder, config.data)
    valid = open_development_sets(config)
    if config.training.valid_sentences:
        check_tokenizers(config, valid)  # before hours of training
    if distributed.is_main():
        train.verify()
        for each in valid.values():
            each.store.verify()
        for task in (TOKENIZER_TASK, *map(collect_task, valid)):
            verify_task(config.data_folder, task)
    return TrainingData(train, valid, Tokenizer.load(config.data_folder))


def shared_settings(config: Config) -> dict[str, object]:
    """Return the settings that must be the same in all processes: not folders, devices, or what only one reads."""
    own = ("paths", "runtime", "tracking")
    return {key: value for key, value in flatten(asdict(config)).items() if key.partition(".")[0] not in own}


def shared_files(data: TrainingData, checkpoint: Checkpoint | None, origin: Checkpoint | None) -> dict[str, object]:
    """Return identifiers of the files that must be the same in all processes."""
    return {
        "the training text": sha256(data.fingerprint.encode()).hexdigest()[:12],
        "the tokenizer": data.tokenizer.checksum[:12],
        "the step of the last checkpoint": checkpoint.step if checkpoint is not None else 0,
        "the model to begin from": origin.meta.files[WEIGHTS][:12] if origin is not None else "none",
    }


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
    stale = loop["stale"]
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
