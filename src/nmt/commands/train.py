"""`nmt train`: train a model, or resume its training."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TextIO

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.tree import Config
from nmt.data.loader import prefetched
from nmt.data.noise import make_noise
from nmt.data.store import PairStore
from nmt.model.backends.chosen import backend
from nmt.own_text.prepare import plan_training
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.layout import RunLayout
from nmt.runs.tracker import Tracker, start_tracker
from nmt.storage.files import exclusive_folder
from nmt.training.build import build_trainer, training_batches
from nmt.training.checkpointing import checkpoint_manager
from nmt.training.fine_tuning import begin_from, load_origin, origin_record
from nmt.training.loop import Loop
from nmt.training.memory_check import fit_in_memory
from nmt.training.opening import TrainingData, check_same, find_checkpoint, finished_message, open_data
from nmt.training.state import TrainingState
from nmt.training.stopping import Ending, ending_message
from nmt.training.trainer import Trainer
from nmt.training.validation import validate

STOPPED_EXIT_CODE = 143
"""Exit code after a signal, so that a script does not continue as if training were finished."""


def run(config: Config) -> None:
    """Train from the run's last checkpoint, or from the start."""
    config = plan_training(config)
    with distributed.session(config.runtime) as machine, _exclusive_run_folder(config):
        with distributed.together():
            data = open_data(config)
        begun = _begin_or_resume(config, machine, data)
        if begun is None:
            return
        state, origin = begun
        trainer, noise = state.trainer, make_noise(config.noise, data.tokenizer, config.seed, config.data.max_pieces)
        _print_summary(config, trainer, data.train)
        config = fit_in_memory(config, trainer, data.train, noisy=noise is not None)
        in_background = machine.device.type != "cpu"
        batches = prefetched(training_batches(trainer, data.train, noise), pin_memory=machine.device.type == "cuda")
        with (
            closing(checkpoint_manager(config, data, origin, in_background=in_background)) as manager,
            _tracker(config, trainer, origin) as tracker,
            closing(batches),
        ):
            tracker.log("start", trainer.step)
            validation = partial(validate, trainer, config, data.valid, data.tokenizer)
            ending = Loop(state, tracker, validation, manager).run(batches)
        where = f"; checkpoints are in {RunLayout(config.run_folder).checkpoints}" if ending == Ending.DONE else ""
        _print(ending_message(ending, trainer.step, config.training) + where)
        if ending == Ending.SIGNAL:
            raise SystemExit(STOPPED_EXIT_CODE)


def _begin_or_resume(
    config: Config, machine: Machine, data: TrainingData
) -> tuple[TrainingState, CheckpointRecord | None] | None:
    """Return the state to train from, and the model that the run began from; None if the run is finished."""
    with distributed.together():
        checkpoint = find_checkpoint(config, data)
        origin = load_origin(config) if checkpoint is None else None
    check_same(config, data, checkpoint, origin)
    if checkpoint is not None and (message := finished_message(checkpoint, config)):
        _print(message)
        return None
    begin = None
    if origin is not None:
        begin = partial(begin_from, tokenizer=data.tokenizer, origin=origin, config=config)
    state = TrainingState(
        build_trainer(config, machine, (data.tokenizer.source_size, data.tokenizer.target_size), begin)
    )
    if checkpoint is not None:
        state.restore(checkpoint)
    return state, origin_record(config, checkpoint, origin)


@contextmanager
def _exclusive_run_folder(config: Config) -> Iterator[None]:
    """Prevent other processes from training the same run; the main process holds the lock for all processes."""
    taken = "is being trained by another process: wait until it is done, or give this run another name="
    with ExitStack() as stack:
        with distributed.together():
            if distributed.is_main():
                stack.enter_context(exclusive_folder(config.run_folder, taken=taken, setting="paths.outputs"))
                Checkpoints(config.run_folder).remove_leftovers()
        yield


def _tracker(config: Config, trainer: Trainer, origin: CheckpointRecord | None) -> Tracker:
    """Return the tracker of the run in the main process; the others log nothing."""
    if not distributed.is_main():
        return Tracker()
    return start_tracker(config, trainer.step, origin, trainer.machine.precision_name)


def _print_summary(config: Config, trainer: Trainer, train: PairStore) -> None:
    """Print what is trained on what."""
    training, devices = config.training, distributed.world_size()
    parameters, parallel = sum(each.numel() for each in trainer.model.parameters()), trainer.gradient.concurrency
    machine = f"{devices} x {trainer.machine}" if devices > 1 else str(trainer.machine)
    threads = f" in {parallel} threads" if parallel > 1 else ""
    graphs = " with CUDA graphs" if trainer.gradient.passes is not None else ""
    _print(
        f"train: {parameters:,} parameters, {len(train):,} pairs, {training.steps:,} steps of "
        f"{training.batch_tokens:,} tokens on {machine}{threads}{graphs}"
    )
    wants_kernels = config.runtime.kernels and not config.runtime.compile
    if wants_kernels and trainer.machine.device.type == "cpu" and backend().name == "eager":
        _print("no working C compiler (cc): training is slower without its operations in C")
    if training.warmup_warning:
        _print(f"warning: {training.warmup_warning}", sys.stderr)
    if trainer.step:
        epoch, batch = trainer.data_position
        _print(f"going on from step {trainer.step} (epoch {epoch + 1}, batch {batch + 1})")


def _print(text: str, file: TextIO | None = None) -> None:
    if distributed.is_main():
        print(text, file=file, flush=True)
