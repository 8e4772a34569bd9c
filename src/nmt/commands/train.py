"""`nmt train`: train a model, or go on training it."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from typing import Any

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.compute.uptime import uptime
from nmt.config.compose import to_yaml
from nmt.config.saved import flatten, read_settings
from nmt.config.schema import Config
from nmt.data.loader import Prefetcher, steps
from nmt.data.manifest import MANIFEST
from nmt.data.prepare import require_prepared, verify_step
from nmt.data.store import PairStore
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.evaluation.evaluate import read_split, translate_together
from nmt.evaluation.metrics import METRICS
from nmt.model.transformer import Transformer
from nmt.runs.checkpoints import Checkpoint, Checkpoints, check_weights, load_last_good
from nmt.runs.compatibility import check_resumable
from nmt.runs.environment import environment
from nmt.runs.tracking import NullTracker, Tracker
from nmt.storage.files import write_json, write_text
from nmt.storage.lock import exclusive_folder
from nmt.text.tokenizer import Tokenizer, file_names
from nmt.training.checkpointing import CheckpointContents, CheckpointManager
from nmt.training.loop import Ending, Loop
from nmt.training.memory_check import check_memory, check_model_size
from nmt.training.schedule import warmup_warning
from nmt.training.trainer import Trainer
from nmt.training.validation import development_loss

STOPPED = 143
"""Exit code of a run that was asked to stop: whoever chains stages must not go on as if it were finished."""


def run(config: Config) -> None:
    """Train from where the run's last checkpoint stands, or from the start."""
    with distributed.session(config.runtime) as machine, _alone(config):
        distributed.check_same(_common(config), "settings")
        with distributed.together():
            require_prepared(config)
            train, valid = (PairStore.open(config.data_folder, split) for split in ("train", "valid"))
            if distributed.is_main():
                train.verify()
                valid.verify()
                for step in ("tokenizer", "collect valid"):
                    verify_step(config.data_folder, step)
            tokenizer = Tokenizer.load(config.data_folder)
            resumed = load_last_good(config.run_folder)
            if resumed is not None:
                _check_same(resumed, config, train, tokenizer)
        distributed.check_same(_found(train, tokenizer, resumed), "files")
        if resumed is not None and _finished(resumed, config):
            return
        trainer = make_trainer(config, machine, tokenizer, resumed)
        with closing(_keeper(trainer, config, train)) as checkpoint_manager, _tracker(config, trainer.step) as tracker:
            tracker.log("start", trainer.step)
            validate = partial(_validate, trainer, config, valid, tokenizer)
            loop = Loop(trainer, tracker, validate, checkpoint_manager)
            if resumed is not None and resumed.trainer is not None:
                loop.load_state(resumed.trainer["loop"])
            _introduce(config, trainer, train, machine)
            check_memory(trainer, train, least=config.data.max_pieces + 1)
            ending = _train(loop, config, train)
        _conclude(ending, config, trainer)


@contextmanager
def _alone(config: Config) -> Iterator[None]:
    """Let nobody else train the same run meanwhile; the main process owns its folder for all of them."""
    taken = "is being trained by another process: wait until it is done, or give this run another name="
    with ExitStack() as owned:
        with distributed.together():
            if distributed.is_main():
                owned.enter_context(exclusive_folder(config.run_folder, taken=taken, setting="paths.outputs"))
                Checkpoints(config.run_folder).remove_leftovers()
        yield


def _common(config: Config) -> dict[str, Any]:
    """The settings that all processes must share; places and devices are each machine's own."""
    settings = flatten(asdict(config))
    return {key: value for key, value in settings.items() if not key.startswith(("paths.", "runtime.", "tracking."))}


def _found(train: PairStore, tokenizer: Tokenizer, resumed: Checkpoint | None) -> dict[str, Any]:
    """What all processes must find in their folders alike."""
    return {
        "the training text": sha256(_fingerprint(train).encode()).hexdigest()[:12],
        "the tokenizer": tokenizer.checksum[:12],
        "the step of the last checkpoint": resumed.step if resumed is not None else 0,
    }


def _check_same(resumed: Checkpoint, config: Config, train: PairStore, tokenizer: Tokenizer) -> None:
    """A run goes on with the settings, the vocabulary and the data that it began with."""
    check_resumable(read_settings(resumed.config_text), flatten(asdict(config)))
    other_tokenizer = Tokenizer.load(resumed.tokenizer_folder).checksum != tokenizer.checksum
    if other_tokenizer or (resumed.trainer or {})["data"] != _fingerprint(train):
        raise UserError(
            f"the data in {config.data_folder} is not what run {config.name} began with "
            f"({'its tokenizer' if other_tokenizer else 'its training text'} has changed): "
            "prepare the old data again, or give the run another name= to start anew"
        )


def _finished(resumed: Checkpoint, config: Config) -> bool:
    """Say so if there is nothing left to do."""
    loop, patience = (resumed.trainer or {})["loop"], config.training.patience
    stale, minutes = loop["stale"], loop.get("training_seconds", 0.0) / 60
    budget = config.training.max_training_minutes
    if loop.get("unseen"):
        return False
    if resumed.step >= config.training.steps:
        remedy = f"set training.steps above {resumed.step}"
    elif patience and stale >= patience:
        remedy = f"set training.patience above {stale}, the validations without a new best"
    elif budget and minutes > budget:
        remedy = f"set training.max_training_minutes above {minutes:.4g}, the minutes of training so far"
    else:
        return False
    _say(
        f"run {config.name} is finished: it stands at step {resumed.step} of {config.training.steps}. "
        f"To go on, {remedy}; to train anew, set another name=."
    )
    return True


def make_trainer(config: Config, machine: Machine, tokenizer: Tokenizer, resumed: Checkpoint | None = None) -> Trainer:
    """A fresh model, or the one of a checkpoint, ready to train."""
    check_model_size(config.model, tokenizer.source_size, tokenizer.target_size, machine)
    torch.manual_seed(config.seed)
    model = Transformer(config.model, tokenizer.source_size, tokenizer.target_size)
    if resumed is not None:
        shapes = {name: weight.shape for name, weight in model.state_dict().items()}
        check_weights(shapes, resumed.weights, resumed.path)
        model.load_state_dict(resumed.weights)
    model.to(machine.device)
    if config.runtime.compile:
        model.compile(dynamic=True)
    trainer = Trainer(model, config.training, machine, config.seed)
    if resumed is not None and resumed.trainer is not None:
        trainer.load_state(resumed.trainer["trainer"])
    return trainer


def _tracker(config: Config, step: int) -> NullTracker:
    """The main process tells what happens; it also owns the run's folder."""
    if not distributed.is_main():
        return NullTracker()
    write_text(config.run_folder / "config.yaml", to_yaml(config))
    write_json(config.run_folder / "environment.json", environment(config, config.data_folder / MANIFEST))
    return Tracker(config.run_folder, config.tracking, name=config.name, settings=flatten(asdict(config)), step=step)


def _introduce(config: Config, trainer: Trainer, train: PairStore, machine: Machine) -> None:
    """Say what is trained on what, and how a step's batch is divided."""
    training, devices = config.training, distributed.world_size()
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    share = -(-training.batch_tokens // devices)
    device_tokens = min(training.device_tokens or share, share)
    _say(
        f"run {config.name} in {config.run_folder}: {parameters:,} parameters, {len(train):,} sentence pairs\n"
        f"batches of at most {training.batch_tokens:,} source and target tokens: {devices} x "
        f"{device_tokens:,} on {machine}{f' in {trainer.parts} parts at once' if trainer.parts > 1 else ''}, "
        f"accumulated {-(-share // device_tokens)} times"
    )
    if distributed.is_main() and (warning := warmup_warning(training)):
        print(f"warning: {warning}", file=sys.stderr, flush=True)
    if trainer.step:
        epoch, batch = trainer.data_position
        _say(f"going on from step {trainer.step} (epoch {epoch + 1}, batch {batch + 1})")


def _train(loop: Loop, config: Config, train: PairStore) -> Ending:
    training = config.training
    stream = steps(
        train,
        batch_tokens=training.batch_tokens,
        device_tokens=training.device_tokens,
        seed=config.seed,
        start=loop.trainer.data_position,
        rank=distributed.rank(),
        devices=distributed.world_size(),
        parts=loop.trainer.parts,
    )
    with Prefetcher(stream, pin_memory=loop.trainer.machine.device.type == "cuda") as batches:
        return loop.run(batches)


def _validate(
    trainer: Trainer, config: Config, valid: PairStore, tokenizer: Tokenizer, interruptible_together: Interruptible
) -> dict[str, float]:
    """Return losses, perplexity and BLEU on the development set; every process takes its share."""
    means = development_loss(trainer.model, valid, config.training, trainer.machine, interruptible_together)
    figures = {"loss": means.loss, "nll": means.nll, "perplexity": means.perplexity}
    if config.training.valid_sentences:
        figures["bleu"] = _decoded_bleu(trainer, config, tokenizer, interruptible_together)
    return figures


def _decoded_bleu(
    trainer: Trainer, config: Config, tokenizer: Tokenizer, interruptible_together: Interruptible
) -> float:
    """BLEU as `eval` would find it, on the first sentences of the development set."""
    split = read_split(config.data_folder, "valid", (config.data.source_lang, config.data.target_lang))
    count = config.training.valid_sentences
    translator = TorchEngine([trainer.model], tokenizer, config.decoding, *trainer.machine)
    hypotheses = translate_together(translator, split.sources[:count], interruptible_together=interruptible_together)
    return METRICS["bleu"].score(hypotheses, split.references[:count], config.data.target_lang).score


def _keeper(trainer: Trainer, config: Config, train: PairStore) -> CheckpointManager:
    files = [config.data_folder / name for name in file_names(joint=config.tokenizer.joint)]
    return CheckpointManager(
        trainer,
        Checkpoints(config.run_folder, config.training.best_by),
        CheckpointContents(files, to_yaml(config), _fingerprint(train)),
        aside=trainer.machine.device.type != "cpu",
    )


def _fingerprint(train: PairStore) -> str:
    """Stands for the training data, token by token."""
    return " ".join(str(entry["sha256"]) for entry in train.description["files"].values())


def _conclude(ending: Ending, config: Config, trainer: Trainer) -> None:
    """Say why training ended and how to go on."""
    where = f"step {trainer.step} of {config.training.steps}"
    again = "the same command goes on from here"
    match ending:
        case Ending.DONE:
            _say(f"finished at {where}; checkpoints are in {config.run_folder / 'checkpoints'}")
        case Ending.NO_GAIN:
            _say(f"stopped early at {where}: {config.training.patience} validations brought no new best")
        case Ending.BUDGET:
            _say(
                f"stopped at {where}: the run has trained for training.max_training_minutes="
                f"{config.training.max_training_minutes:g}; with more of them {again}"
            )
        case Ending.TIME:
            _say(
                f"stopped at {where}, {uptime() / 60:.2f} minutes after the start: within "
                f"training.max_minutes={config.training.max_minutes:g} there is no room for more; {again}"
            )
        case Ending.SIGNAL:
            _say(f"stopped at {where} because a signal asked for it; everything is saved, {again}")
            raise SystemExit(STOPPED)


def _say(text: str) -> None:
    if distributed.is_main():
        print(text, flush=True)
