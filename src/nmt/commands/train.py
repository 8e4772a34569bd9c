"""`nmt train`: train a model, or resume its training."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TextIO

from nmt.compute import distributed
from nmt.config.tree import Config
from nmt.data.loader import prefetched
from nmt.data.noise import make_noise
from nmt.data.store import Pairs
from nmt.model.backends.chosen import backend
from nmt.own_text.prepare import plan_training
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.layout import RunLayout
from nmt.runs.tracker import NullTracker, start_tracker
from nmt.storage.lock import exclusive_folder
from nmt.training.build import build_trainer, training_batches
from nmt.training.checkpointing import checkpoint_manager
from nmt.training.fine_tuning import begin_from, load_origin, origin_record, warning_of_new_pieces
from nmt.training.loop import Loop
from nmt.training.memory_check import fit_in_memory
from nmt.training.opening import find_checkpoint, finished_message, open_data, shared_files, shared_settings
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
        distributed.check_same(shared_settings(config), "settings")
        with distributed.together():
            data = open_data(config)
            checkpoint = find_checkpoint(config, data)
            origin = load_origin(config) if checkpoint is None else None
        distributed.check_same(shared_files(data, checkpoint, origin), "files")
        if checkpoint is not None and (message := finished_message(checkpoint, config)):
            _print(message)
            return
        tokenizer = data.tokenizer
        noise = make_noise(config.noise, tokenizer, config.seed, config.data.max_pieces)
        begin = None if origin is None else partial(begin_from, tokenizer=tokenizer, origin=origin, config=config)
        trainer = build_trainer(config, machine, (tokenizer.source_size, tokenizer.target_size), begin)
        state, begun_from = TrainingState(trainer), origin_record(config, checkpoint, origin)
        if checkpoint is not None:
            state.restore(checkpoint)
        del checkpoint, origin, begin  # their weights and the optimizer's state, which take memory
        _print_summary(config, trainer, data.train)
        config = fit_in_memory(config, trainer, data.train, noisy=noise is not None)
        is_main, precision, in_background = distributed.is_main(), machine.precision_name, machine.device.type != "cpu"
        batches = prefetched(training_batches(trainer, data.train, noise), pin_memory=machine.device.type == "cuda")
        with (
            closing(checkpoint_manager(config, data, begun_from, in_background=in_background)) as manager,
            start_tracker(config, trainer.step, begun_from, precision) if is_main else NullTracker() as tracker,
            closing(batches),
        ):
            tracker.log("start", trainer.step)
            validation = partial(validate, trainer, config, data.valid, tokenizer)
            ending = Loop(state, tracker, validation, manager).run(batches)
        where = f"; checkpoints are in {RunLayout(config.run_folder).checkpoints}" if ending == Ending.DONE else ""
        _print(ending_message(ending, trainer.step, config.training) + where)
        if ending == Ending.SIGNAL:
            raise SystemExit(STOPPED_EXIT_CODE)


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


def _print_summary(config: Config, trainer: Trainer, train: Pairs) -> None:
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
    if config.runtime.kernels and trainer.machine.device.type == "cpu" and backend().name == "eager":
        _print("no working C compiler (cc): training is slower without its operations in C")
    for warning in filter(None, (training.warmup_warning, warning_of_new_pieces(training))):
        _print(f"warning: {warning}", sys.stderr)
    if trainer.step:
        epoch, batch = trainer.data_position
        _print(f"going on from step {trainer.step} (epoch {epoch + 1}, batch {batch + 1})")


def _print(text: str, file: TextIO | None = None) -> None:
    if distributed.is_main():
        print(text, file=file, flush=True)
