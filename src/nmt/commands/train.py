"""`nmt train`: train a model, or resume its training."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial

from nmt.compute import distributed, joining
from nmt.config.tree import Config
from nmt.data.batches import Batching
from nmt.data.loader import global_batches
from nmt.data.noise.noise import Noise, noise_of
from nmt.data.prefetcher import Prefetcher
from nmt.data.store import Pairs
from nmt.launched import uptime
from nmt.model.kernels.c.library import uses_operations
from nmt.own_text.prepare import plan_training
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.layout import RunLayout
from nmt.runs.start import start_tracker
from nmt.runs.tracker import NullTracker
from nmt.storage.lock import exclusive_folder
from nmt.training.begin import find_beginning, origin_record
from nmt.training.build import build_checkpoint_manager, build_state, open_data, shared_files, shared_settings
from nmt.training.freeze import warning_of_new_pieces
from nmt.training.loop import Loop
from nmt.training.memory_check import tokens_that_fit
from nmt.training.preparation import Prepared
from nmt.training.resume import find_checkpoint, finished_message
from nmt.training.stopping import Ending
from nmt.training.trainer import Trainer
from nmt.training.validation import check_bleu, validate

STOPPED_EXIT_CODE = 143
"""Exit code after a signal, so that a script does not continue as if training were finished."""


def run(config: Config) -> None:
    """Train from the run's last checkpoint, or from the start."""
    planned = plan_training(config) if config.own.derive else Prepared(config)
    config = planned.config
    with joining.session(config.runtime) as machine, _exclusive_run_folder(config):
        distributed.check_same(shared_settings(config), "settings")
        with distributed.together():
            data = open_data(config)
            check_bleu(config, data.valid)  # before hours of training
            checkpoint = find_checkpoint(config, data)
            beginning = find_beginning(config) if checkpoint is None else None
        distributed.check_same(shared_files(data, checkpoint, beginning), "files")
        if checkpoint is not None and (message := finished_message(checkpoint, config)):
            _print(message)
            return
        planned.announce()
        noise = noise_of(config, data.tokenizer)
        state = build_state(config, machine, data.tokenizer, checkpoint, beginning)
        trainer, begun_from = state.trainer, origin_record(checkpoint, beginning)
        del checkpoint, beginning  # their weights and the optimizer's state, which take memory
        _print_summary(config, trainer, data.train)
        config = _fit_in_memory(config, trainer, data.train, noise)
        with (
            closing(build_checkpoint_manager(config, machine, data, begun_from)) as checkpoint_manager,
            _tracker(config, trainer, begun_from) as tracker,
        ):
            tracker.log("start", trainer.step)
            validation = partial(validate, trainer, config, data.valid, data.tokenizer)
            loop = Loop(state, tracker, validation, checkpoint_manager)
            with _batches(config, trainer, data.train, noise) as batches:
                ending = loop.run(batches)
        _print_ending(ending, config, trainer.step)
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


def _tracker(config: Config, trainer: Trainer, origin: CheckpointRecord | None) -> NullTracker:
    """Return what logs the run's events; only the main process logs."""
    if not distributed.is_main():
        return NullTracker()
    return start_tracker(config, trainer.step, origin, trainer.machine.precision_name)


def _batches(config: Config, trainer: Trainer, train: Pairs, noise: Noise | None) -> Prefetcher:
    """Return the global batches from the trainer's position in the data on, assembled in the background."""
    stream = global_batches(
        train,
        Batching.of(config.training, config.seed),
        device_tokens=config.training.device_tokens,
        start=trainer.data_position,
        rank=distributed.rank(),
        devices=distributed.world_size(),
        threads=trainer.gradient.concurrency,
        shapes=trainer.shapes(config.training.device_tokens),
        noise=noise,
        with_links=trainer.needs_links,
        with_words=trainer.gradient.needs_words,
    )
    return Prefetcher(stream, pin_memory=trainer.machine.device.type == "cuda")


def _fit_in_memory(config: Config, trainer: Trainer, train: Pairs, noise: Noise | None) -> Config:
    """Try the largest batches, and return the settings, with smaller micro-batches if these do not fit."""
    given = config.training.device_tokens
    tokens = tokens_that_fit(trainer, train, longest_sentence=config.data.max_pieces + 1, changed=noise is not None)
    if tokens == given:
        return config
    if distributed.is_main():
        print(
            f"warning: the largest micro-batch does not fit in the memory of {trainer.machine}, so this run takes "
            f"training.device_tokens={tokens}; the global batches are the same",
            file=sys.stderr,
            flush=True,
        )
    trainer.config = replace(config.training, device_tokens=tokens)
    return replace(config, training=trainer.config)


def _print_summary(config: Config, trainer: Trainer, train: Pairs) -> None:
    """Print what is trained on what."""
    training, devices = config.training, distributed.world_size()
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    machine = f"{devices} x {trainer.machine}" if devices > 1 else str(trainer.machine)
    parallel = trainer.gradient.concurrency
    threads = f" in {parallel} threads" if parallel > 1 else ""
    graphs = " with CUDA graphs" if trainer.gradient.passes is not None else ""
    _print(
        f"train: {parameters:,} parameters, {len(train):,} pairs, {training.steps:,} steps of "
        f"{training.batch_tokens:,} tokens on {machine}{threads}{graphs}"
    )
    if config.runtime.kernels and trainer.machine.device.type == "cpu" and not uses_operations():
        _print("no working C compiler (cc): training is slower without its operations in C")
    for warning in filter(None, (training.warmup_warning, warning_of_new_pieces(training))):
        if distributed.is_main():
            print(f"warning: {warning}", file=sys.stderr, flush=True)
    if trainer.step:
        epoch, batch = trainer.data_position
        _print(f"going on from step {trainer.step} (epoch {epoch + 1}, batch {batch + 1})")


def _print_ending(ending: Ending, config: Config, step: int) -> None:
    """Print why training ended and how to continue."""
    training, resume = config.training, "the same command goes on from here"
    at = f"at step {step} of {training.steps}"
    match ending:
        case Ending.DONE:
            _print(f"finished {at}; checkpoints are in {RunLayout(config.run_folder).checkpoints}")
        case Ending.NO_GAIN:
            _print(f"stopped early {at}: {training.patience} validations brought no new best")
        case Ending.BUDGET:
            _print(
                f"stopped {at}: the run has trained for training.max_training_minutes="
                f"{training.max_training_minutes:g}; if you raise it, {resume}"
            )
        case Ending.TIME:
            _print(
                f"stopped {at}, {uptime() / 60:.2f} minutes after the start: within "
                f"training.max_minutes={training.max_minutes:g} there is no time for more; {resume}"
            )
        case Ending.SIGNAL:
            _print(f"stopped {at} because a signal asked for it; everything is saved, {resume}")


def _print(text: str) -> None:
    if distributed.is_main():
        print(text, flush=True)
