"""Open the data of a run, and build its trainer."""

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import NamedTuple

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.saved import flatten, to_yaml
from nmt.config.tree import Config
from nmt.data.mixture import open_training_text
from nmt.data.prepared import require_prepared, verify_task
from nmt.data.records import TOKENIZER_TASK, collect_task
from nmt.data.store import Pairs
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoint import Checkpoint, CheckpointRecord, check_weights
from nmt.runs.checkpoints import Checkpoints
from nmt.text.tokenizer import Tokenizer
from nmt.training.begin import Beginning
from nmt.training.checkpointing import CheckpointContents, CheckpointManager
from nmt.training.new_trainer import new_trainer
from nmt.training.state import TrainingState
from nmt.training.trainer import Trainer
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


def shared_files(data: TrainingData, checkpoint: Checkpoint | None, beginning: Beginning | None) -> dict[str, object]:
    """Return identifiers of the files that must be the same in all processes."""
    return {
        "the training text": sha256(data.fingerprint.encode()).hexdigest()[:12],
        "the tokenizer": data.tokenizer.checksum[:12],
        "the step of the last checkpoint": checkpoint.step if checkpoint is not None else 0,
        "the model to begin from": beginning.checksum[:12] if beginning is not None else "none",
    }


def build_trainer(
    config: Config, machine: Machine, tokenizer: Tokenizer, beginning: Beginning | None = None
) -> Trainer:
    """Return a trainer with a new model, seeded by the settings, or with the weights that it begins with."""

    def begin(model: TranslationModel) -> None:
        assert beginning is not None
        begun = beginning.give_weights(model, tokenizer)
        if distributed.is_main():
            print(begun, flush=True)

    sizes = tokenizer.source_size, tokenizer.target_size
    return new_trainer(config, machine, *sizes, begin=None if beginning is None else begin)


def build_state(
    config: Config,
    machine: Machine,
    tokenizer: Tokenizer,
    checkpoint: Checkpoint | None = None,
    beginning: Beginning | None = None,
) -> TrainingState:
    """Return the state of a new run, which may begin with other weights than random ones, or that of a checkpoint."""
    state = TrainingState(build_trainer(config, machine, tokenizer, beginning))
    if checkpoint is not None:
        shapes = {name: weight.shape for name, weight in state.trainer.model.state_dict().items()}
        check_weights(shapes, checkpoint.weights, checkpoint.path)
        state.restore(checkpoint)
    return state


def build_checkpoint_manager(
    config: Config, machine: Machine, data: TrainingData, origin: CheckpointRecord | None
) -> CheckpointManager:
    """Return the checkpoint manager of a run, given the record of the model that it began from."""
    training = config.training
    return CheckpointManager(
        Checkpoints(config.run_folder, training.best_by, training.keep_last, training.keep_best),
        CheckpointContents(data.tokenizer.files, to_yaml(config), data.fingerprint, origin),
        in_background=machine.device.type != "cpu",
    )
