"""`nmt average`: average the last or best checkpoints of a run."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from nmt.compute.machine import prepare_machine
from nmt.config.saved import from_yaml
from nmt.config.schema import AveragingConfig, Config
from nmt.data.prepared import require_prepared
from nmt.data.store import PairStore
from nmt.decoding.torch_engine import load_model
from nmt.errors import UserError
from nmt.model.working_weights import WorkingWeights
from nmt.runs.averaging import Candidate, Mean, candidates, choose, write_averaged
from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoints import Checkpoints, load
from nmt.text.tokenizer import Tokenizer
from nmt.training.statistics import Statistics
from nmt.training.validation import development_loss


def run(config: Config) -> None:
    """Average the checkpoints that the settings or the development loss choose, and print their names."""
    checkpoints, settings = Checkpoints(config.run_folder, config.training.best_by), config.averaging
    newest_step = checkpoints.newest_step  # first, because training may save others meanwhile
    by_loss = not (settings.checkpoints or settings.best or settings.last)
    paths = _choose_by_loss(config, checkpoints) if by_loss else choose(checkpoints, settings)
    folder = write_averaged(config.run_folder, paths, newest_step)
    print(f"averaged {len(paths)} checkpoint{'s' if len(paths) > 1 else ''} into {folder}:")
    for path in paths:
        print(f"  {path}")
    if not by_loss and (note := _note(settings, paths)):
        print(note)


def _choose_by_loss(config: Config, checkpoints: Checkpoints) -> list[Path]:
    """Return the checkpoints of the candidate with the lowest development loss, earliest step first.

    The loss has smoothed labels, like the one that training minimises and by which the best checkpoint is kept. The
    plain nll would prefer averages with early checkpoints, which are less certain but translate worse.
    """
    training = config.training
    found = candidates(checkpoints, training.keep_last, training.keep_best)
    print("on the development set, per token:", flush=True)
    best, lowest = None, math.inf
    for candidate, statistics in _measured(config, found):
        figures = f"smoothed loss {statistics.loss:.4f}  nll {statistics.nll:.4f}"
        print(f"  {figures}  {_described(candidate)}", flush=True)
        if statistics.loss < lowest:
            best, lowest = candidate, statistics.loss
    if best is None:
        raise UserError(
            f"no checkpoint in {checkpoints.folder} has a finite loss on the development set, so training has "
            "diverged: train under another name= with training.clip_norm=1 or a lower training.learning_rate"
        )
    print(f"chosen by the lowest smoothed loss: {best.name}")
    return [each.path for each in sorted(best.checkpoints, key=lambda checkpoint: checkpoint.step)]


def _measured(config: Config, found: list[Candidate]) -> Iterator[tuple[Candidate, Statistics]]:
    """Yield the candidates with their losses on the development set, with one of them in memory at a time."""
    require_prepared(config)
    valid = PairStore.open(config.data_folder, "valid")
    valid.verify()
    machine = prepare_machine(config.runtime)
    first = load(found[0].paths[0])
    model, tokenizer = load_model(first, from_yaml(first.config_text).model, machine.device)
    if tokenizer.checksum != Tokenizer.load(config.data_folder).checksum:
        raise UserError(
            f"the tokenizer of {first.path} is not the one in {config.data_folder}, so its loss there is meaningless: "
            "prepare the old data again, or set averaging.last=5 to average without it"
        )
    mean, weights = Mean(), WorkingWeights(model, machine.precision)
    for candidate in found:
        model.load_state_dict(mean.of(candidate.paths))
        yield candidate, development_loss(weights, valid, config.training, machine, nullcontext)


def _described(candidate: Candidate) -> str:
    steps = ", ".join(str(each.step) + (" (interim)" if each.interim else "") for each in candidate.checkpoints)
    return f"{candidate.name}: step{'s' if len(candidate.checkpoints) > 1 else ''} {steps}"


def _note(config: AveragingConfig, paths: list[Path]) -> str:
    """Return a note if the run has fewer checkpoints than the settings ask for, else an empty string."""
    key, wanted = ("best", config.best) if config.best else ("last", config.last)
    if config.checkpoints:
        return ""
    if read_meta(paths[0]).interim:
        return f"note: the run has only {paths[0].name}, which was saved because it was interrupted"
    if len(paths) >= wanted:
        return ""
    return (
        f"note: averaging.{key}={wanted} asks for more, but the run has no others"
        f"{' that were validated' if config.best else ''}; a longer run, or a lower training.save_every, leaves more"
    )
