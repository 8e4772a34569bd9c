"""Open what a run trains on, and the checkpoint that it resumes from."""

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import NamedTuple

from nmt.compute import distributed
from nmt.config.saved import check_resumable, flatten
from nmt.config.training import SCHEDULES_WITHOUT_END
from nmt.config.tree import Config
from nmt.data.manifest import TOKENIZER_TASK, collect_task, verify_task
from nmt.data.mixture import open_training_text
from nmt.data.prepared import require_prepared
from nmt.data.store import PairStore
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

    train: PairStore
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


def check_same(config: Config, data: TrainingData, checkpoint: Checkpoint | None, origin: Checkpoint | None) -> None:
    """Refuse settings and files that differ between processes; each has its own folders and devices."""
    settings = flatten(asdict(config)).items()
    shared: dict[str, object] = {
        key: value for key, value in settings if not key.startswith(("paths.", "runtime.", "tracking."))
    }
    shared |= {
        "the training text": sha256(data.fingerprint.encode()).hexdigest()[:12],
        "the tokenizer": data.tokenizer.checksum[:12],
        "the step of the last checkpoint": checkpoint.step if checkpoint is not None else 0,
        "the model to begin from": origin.meta.files[WEIGHTS][:12] if origin is not None else "none",
    }
    distributed.check_same(shared, "settings or files")


def find_checkpoint(config: Config, data: TrainingData) -> Checkpoint | None:
    """Return the newest undamaged checkpoint of the run, if any; raise an error if it cannot be resumed from."""
    checkpoint = load_last_good(config.run_folder)
    if checkpoint is None:
        return None
    check_resumable(flatten(asdict(checkpoint.config)), flatten(asdict(config)))
    tokenizer_changed = Tokenizer.load(checkpoint.path).checksum != data.tokenizer.checksum
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
    minutes = loop.get("training_seconds", 0.0) / 60
    limits = {
        f"training.steps above {checkpoint.step}": checkpoint.step >= training.steps,
        f"training.patience above {loop['stale']}": 0 < training.patience <= loop["stale"],
        f"training.max_training_minutes above {minutes:.4g}": 0 < training.max_training_minutes < minutes,
    }
    reached = [each for each, holds in limits.items() if holds]
    if not reached or loop.get("unseen"):
        return ""
    remedy = f"set {reached[0]}"
    if checkpoint.step >= training.steps and training.schedule not in SCHEDULES_WITHOUT_END:
        remedy = "begin a new run from its weights with training.init_from, because its learning rate has reached zero"
    return (
        f"run {config.name} is finished: it is at step {checkpoint.step} of {training.steps}. "
        f"To train further, {remedy}; to train a new model, set another name="
    )
