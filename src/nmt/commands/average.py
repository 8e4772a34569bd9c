"""`nmt average`: average the last checkpoints of a run (section 6.1), or those that the development set chooses."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from operator import gt, lt

from torch import Tensor

from nmt.compute.machine import prepare_machine
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data.prepared import require_prepared
from nmt.decoding.load import use_kernels
from nmt.decoding.torch_engine import load_model
from nmt.errors import UserError
from nmt.model.working_weights import WorkingWeights
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, check_weights, load, write
from nmt.runs.checkpoints import Checkpoints, rank
from nmt.runs.layout import RunLayout
from nmt.training.validation import DevelopmentSet, decoded_bleu, development_batches, held_out_loss

SENTENCES = 500
"""Sentences of the development set that each candidate translates: some seconds on a CPU."""
Saved = Sequence[CheckpointMeta]


def run(config: Config) -> None:
    """Average the checkpoints that the settings or the development set choose, and print their names."""
    checkpoints, last, why = Checkpoints(config.run_folder), config.averaging.last, ""
    saved = checkpoints.steps(strict=True)  # without a damaged one, others would count as the last
    if not saved:
        raise UserError(f"no checkpoints in {checkpoints.folder}: run `make train` first (with the same ARGS)")
    if last:
        averaged = average(last_checkpoints(saved, last))
        if len(averaged.meta.averaged_from) < last:
            why = f"averaging.last={last} asks for more, but the run has no others"
    else:
        found = candidates(saved, config.training.keep_last, config.training.keep_best)
        averaged, why = _best_validated(config, found)
    names, folder = averaged.meta.averaged_from, RunLayout(config.run_folder).averaged
    write(folder, replace(averaged, meta=replace(averaged.meta, newest_step=saved[-1].step)))
    print(f"averaged {' to '.join(dict.fromkeys((names[0], names[-1])))} into {folder}")
    if why:
        print(f"  {why}")


def last_checkpoints(saved: Saved, count: int) -> Saved:
    """Return the last `count` checkpoints at equal distances, or the very last one.

    `count` is at most what training keeps: earlier ones are left only because they are among the best.
    """
    return [each for each in saved if not each.interim and not each.only_best][-count:] or saved[-1:]


def candidates(saved: Saved, keep_last: int, keep_best: int) -> dict[str, Saved]:
    """Return what the development set chooses from, by name: lists of checkpoints to average, earliest step first.

    They are the last checkpoint alone, and the last and the best that are kept; the same list occurs once.
    """
    newest = last_checkpoints(saved, keep_last)
    best = sorted(rank([each for each in saved if not each.interim])[:keep_best], key=lambda each: each.step)
    found: dict[str, Saved] = {"the last checkpoint": saved[-1:]}
    for name, chosen in ((f"the last {len(newest)}", newest), (f"the best {len(best)}", best)):
        if chosen and list(chosen) not in map(list, found.values()):
            found[name] = chosen
    return found


def average(chosen: Saved) -> Checkpoint:
    """Return the last checkpoint with the mean of all weights, summed in float64 with one checkpoint in memory."""
    last = load(chosen[0].path)
    sums = {name: weight.double() for name, weight in last.weights.items()}
    for each in chosen[1:]:
        last = load(each.path)
        check_weights({name: weight.shape for name, weight in sums.items()}, last.weights, each.path)
        for name, weight in last.weights.items():
            sums[name] += weight
    weights: dict[str, Tensor] = {
        name: (sums[name] / len(chosen)).to(weight.dtype) for name, weight in last.weights.items()
    }
    names = [each.path.name for each in chosen]
    meta = CheckpointMeta(step=last.step, averaged_from=names, newest_step=last.step, origin=last.meta.origin)
    return replace(last, meta=meta, weights=weights)


def _best_validated(config: Config, found: Mapping[str, Saved]) -> tuple[Checkpoint, str]:
    """Return the average that is best on the development set, and a line with the figures of all.

    The figure is BLEU, because the loss of a model that learns a short text by heart rises while it still translates
    better; only a parser, to which BLEU says nothing, is judged by its loss.
    """
    require_prepared(config)
    valid, machine = DevelopmentSet.open(config, "valid", SENTENCES), prepare_machine(config.runtime)
    use_kernels(machine, wanted=config.runtime.kernels)
    best, kept = "", load(next(iter(found.values()))[0].path)
    model, tokenizer = load_model(kept, kept.config.model, machine.device)
    weights, figures = WorkingWeights(model, machine.precision), dict[str, float]()
    by_bleu = is_text(config.data.target_lang)
    is_better = gt if by_bleu else lt
    for name, chosen in found.items():
        averaged = average(chosen)
        model.load_state_dict(averaged.weights)
        if by_bleu:
            assert valid.text
            figures[name] = decoded_bleu(model, machine, config, tokenizer, nullcontext, valid.text)
        else:
            batches = development_batches(valid.store, config.training, model, machine)
            figures[name] = held_out_loss(weights, batches, config.training, machine.device).loss
        if not best or is_better(figures[name], figures[best]):
            best, kept = name, averaged  # in memory, because training may delete its checkpoints by the end
    figure = "BLEU" if by_bleu else "smoothed loss"
    listed = ", ".join(f"{each} has {figure} {value:.2f}" for each, value in figures.items())
    return kept, f"chose {best}: {listed}"
