"""Average the last checkpoints of a run, which the paper evaluates (section 6.1), or those that validate best."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from nmt.config.saved import differences, from_yaml, read_saved, read_settings
from nmt.errors import UserError
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, check_weights, load, read_meta, write
from nmt.runs.checkpoints import Checkpoints, rank
from nmt.runs.layout import SETTINGS, RunLayout


def last_checkpoints(checkpoints: Checkpoints, count: int) -> list[Path]:
    """Return the last checkpoints, earliest step first: `count` of them, or all if the run has fewer."""
    return _paths(_scheduled(_regular(_saved(checkpoints)))[-count:])


def candidates(checkpoints: Checkpoints, keep_last: int, keep_best: int) -> dict[str, list[Path]]:
    """Return what the development set chooses from, by name: lists of checkpoints to average, earliest step first.

    They are the last checkpoint alone, and the last and the best that are kept; the same list occurs once.
    """
    saved = _saved(checkpoints)
    regular = _regular(saved)
    newest, best = _scheduled(regular)[-keep_last:], rank(regular)[:keep_best]
    found = {"the last checkpoint": saved[-1:], f"the last {len(newest)}": newest, f"the best {len(best)}": best}
    paths: dict[str, list[Path]] = {}
    for name, chosen in found.items():
        if chosen and _paths(chosen) not in paths.values():
            paths[name] = _paths(chosen)
    return paths


def _paths(chosen: Sequence[CheckpointMeta]) -> list[Path]:
    return [each.path for each in sorted(chosen, key=lambda each: each.step)]


def _saved(checkpoints: Checkpoints) -> list[CheckpointMeta]:
    saved = checkpoints.steps(strict=True)  # without a damaged one, others would count as the last
    if not saved:
        raise UserError(f"no checkpoints in {checkpoints.folder}: run `make train` first (with the same ARGS)")
    return saved


def _regular(saved: list[CheckpointMeta]) -> list[CheckpointMeta]:
    """Return the checkpoints that are not interim, or the last one if all are."""
    return [checkpoint for checkpoint in saved if not checkpoint.interim] or saved[-1:]


def _scheduled(saved: list[CheckpointMeta]) -> list[CheckpointMeta]:
    """Return the last checkpoints that the settings asked for, at equal distances, or the last one if there are none.

    Earlier ones than those that training keeps are left only because they are among the best.
    """
    kept = read_saved(saved[-1].path / SETTINGS, from_yaml).training.keep_last
    return [checkpoint for checkpoint in saved if not checkpoint.only_best][-kept:] or saved[-1:]


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the checkpoints' weights, summed in float64 with one checkpoint in memory at a time."""
    first = load(paths[0])
    types = {name: weight.dtype for name, weight in first.weights.items()}
    shapes = {name: weight.shape for name, weight in first.weights.items()}
    sums = {name: weight.double() for name, weight in first.weights.items()}
    first = replace(first, weights={})
    for path in paths[1:]:
        checkpoint = load(path)
        _check_same_kind(first, checkpoint)
        check_weights(shapes, checkpoint.weights, path)
        for name, weight in checkpoint.weights.items():
            sums[name] += weight
    return {name: (total / len(paths)).to(types[name]) for name, total in sums.items()}


def write_averaged(run_folder: Path, paths: Sequence[Path], newest_step: int) -> Path:
    """Write the average of checkpoints to the run's folder `averaged`, and return that folder.

    Args:
        run_folder: The folder of the run.
        paths: The folders of the checkpoints.
        newest_step: The step of the run's newest checkpoint among which they were chosen.
    """
    weights = average(paths)
    newest = load(max(paths, key=lambda path: read_meta(path).step))
    names = [path.name for path in paths]
    meta = CheckpointMeta(step=newest.step, averaged_from=names, newest_step=newest_step, origin=newest.meta.origin)
    folder = RunLayout(run_folder).averaged
    write(folder, replace(newest, meta=meta, weights=weights))
    return folder


def _check_same_kind(first: Checkpoint, other: Checkpoint) -> None:
    """Refuse to average checkpoints whose tokenizers or model settings differ, even if the shapes are equal."""
    if first.meta.tokenizer_files != other.meta.tokenizer_files:
        raise UserError(f"cannot average {other.path} with {first.path}: their tokenizers differ. Choose others")
    changed = differences(read_settings(first.config_text), read_settings(other.config_text))
    model = [f"{key} is {new}, not {old}" for key, (old, new) in changed.items() if key.startswith("model.")]
    if model:
        raise UserError(f"cannot average {other.path} with {first.path}: {', '.join(model)}. Choose others")
