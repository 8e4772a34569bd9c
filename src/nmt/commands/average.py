"""`nmt average`: average the last checkpoints of a run, or those that the development set chooses."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from nmt.compute.machine import prepare_machine
from nmt.config.data import is_text
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.data.prepared import require_prepared
from nmt.decoding.torch_engine import load_model
from nmt.model.working_weights import WorkingWeights
from nmt.runs.averaging import average, candidates, last_checkpoints, write_averaged
from nmt.runs.checkpoint import load
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.layout import RunLayout
from nmt.training.validation import DevelopmentSet, decoded_bleu, development_loss

SENTENCES = 500
"""Sentences of the development set that each candidate translates: some seconds on a CPU."""


def run(config: Config) -> None:
    """Average the checkpoints that the settings or the development set choose, and print their names."""
    checkpoints, last = Checkpoints(config.run_folder), config.averaging.last
    newest_step = max(RunLayout(config.run_folder).steps(), default=0)  # first: training may save others meanwhile
    paths, why = (last_checkpoints(checkpoints, last), "") if last else _best_validated(config, checkpoints)
    folder = write_averaged(config.run_folder, paths, newest_step)
    if len(paths) < last:
        why = f"averaging.last={last} asks for more, but the run has no others"
    names = dict.fromkeys([paths[0].name, paths[-1].name])
    print(f"averaged {' to '.join(names)} into {folder}")
    if why:
        print(f"  {why}")


def _best_validated(config: Config, checkpoints: Checkpoints) -> tuple[list[Path], str]:
    """Return the checkpoints whose average is best on the development set, and a line with the figures of candidates.

    The figure is BLEU, because the loss of a model that learns a short text by heart rises while it still translates
    better; only a parser, to which BLEU says nothing, is judged by its loss.
    """
    found = candidates(checkpoints, config.training.keep_last, config.training.keep_best)
    figures, name = _measured(config, found)
    best = max(figures, key=lambda each: figures[each] if name == "BLEU" else -figures[each])
    listed = ", ".join(f"{each} has {name} {figure:.2f}" for each, figure in figures.items())
    return found[best], f"chose {best}: {listed}"


def _measured(config: Config, found: Mapping[str, Sequence[Path]]) -> tuple[dict[str, float], str]:
    """Return a figure of each candidate on the development set, and the figure's name: BLEU, or smoothed loss."""
    require_prepared(config)
    valid, machine = DevelopmentSet.open(config, "valid", SENTENCES), prepare_machine(config.runtime)
    checkpoint = load(next(iter(found.values()))[0])
    model, tokenizer = load_model(checkpoint, from_yaml(checkpoint.config_text).model, machine.device)
    weights, figures = WorkingWeights(model, machine.precision), dict[str, float]()
    by_bleu = is_text(config.data.target_lang)
    for name, paths in found.items():
        model.load_state_dict(average(paths))
        if by_bleu:
            assert valid.text
            figures[name] = decoded_bleu(model, machine, config, tokenizer, nullcontext, valid.text)
        else:
            figures[name] = development_loss(weights, valid.store, config.training, machine, nullcontext).loss
    return figures, "BLEU" if by_bleu else "smoothed loss"
