"""Open the data of a run, and build its trainer."""

from dataclasses import asdict
from hashlib import sha256
from typing import NamedTuple

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.saved import flatten, to_yaml
from nmt.config.schema import Config
from nmt.data.prepare import require_prepared, verify_task
from nmt.data.records import TOKENIZER_TASK, collect_task
from nmt.data.store import PairStore
from nmt.runs.checkpoints import Checkpoint, Checkpoints, check_weights
from nmt.text.tokenizer import Tokenizer, file_names
from nmt.training.checkpointing import CheckpointContents, CheckpointManager
from nmt.training.host_copies import HostCopier
from nmt.training.new_trainer import new_trainer
from nmt.training.state import TrainingState
from nmt.training.trainer import Trainer


class TrainingData(NamedTuple):
    """The prepared data of a run."""

    train: PairStore
    valid: PairStore
    tokenizer: Tokenizer

    @property
    def fingerprint(self) -> str:
        """A string that identifies the tokens of the training data."""
        return " ".join(entry.sha256 for entry in self.train.description.files.values())


def open_data(config: Config) -> TrainingData:
    """Open the prepared data; the main process verifies its checksums."""
    require_prepared(config)
    train, valid = (PairStore.open(config.data_folder, split) for split in ("train", "valid"))
    if distributed.is_main():
        train.verify()
        valid.verify()
        for task in (TOKENIZER_TASK, collect_task("valid")):
            verify_task(config.data_folder, task)
    return TrainingData(train, valid, Tokenizer.load(config.data_folder))


def shared_settings(config: Config) -> dict[str, object]:
    """Return the settings that must be the same in all processes: all but paths, devices and tracking."""
    settings = flatten(asdict(config))
    return {key: value for key, value in settings.items() if not key.startswith(("paths.", "runtime.", "tracking."))}


def shared_files(data: TrainingData, checkpoint: Checkpoint | None) -> dict[str, object]:
    """Return identifiers of the files that must be the same in all processes."""
    return {
        "the training text": sha256(data.fingerprint.encode()).hexdigest()[:12],
        "the tokenizer": data.tokenizer.checksum[:12],
        "the step of the last checkpoint": checkpoint.step if checkpoint is not None else 0,
    }


def build_trainer(config: Config, machine: Machine, tokenizer: Tokenizer) -> Trainer:
    """Return a trainer with a new model, seeded by the settings."""
    return new_trainer(config, machine, tokenizer.source_size, tokenizer.target_size)


def build_state(
    config: Config, machine: Machine, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None
) -> TrainingState:
    """Return the state of a new run, or the one in a checkpoint."""
    state = TrainingState(build_trainer(config, machine, tokenizer))
    if checkpoint is not None:
        shapes = {name: weight.shape for name, weight in state.trainer.model.state_dict().items()}
        check_weights(shapes, checkpoint.weights, checkpoint.path)
        state.restore(checkpoint)
    return state


def build_checkpoint_manager(config: Config, machine: Machine, data: TrainingData) -> CheckpointManager:
    """Return the checkpoint manager of a run."""
    files = [config.data_folder / name for name in file_names(joint=config.tokenizer.joint)]
    return CheckpointManager(
        Checkpoints(config.run_folder, config.training.best_by),
        CheckpointContents(files, to_yaml(config), data.fingerprint),
        config.training,
        in_background=machine.device.type != "cpu",
        copier=HostCopier(machine.device) if machine.device.type == "cuda" and distributed.is_main() else None,
    )
