"""The average of a run's last or best checkpoints, which the paper evaluates (section 6.1)."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from nmt.config.schema import AveragingConfig
from nmt.errors import UserError
from nmt.runs.checkpoints import AVERAGED, Checkpoint, Checkpoints, check_weights, load, rank, resolve
from nmt.runs.format import read_meta, tokenizer_checksums, write
from nmt.runs.resume import differences, read_settings


def choose(checkpoints: Checkpoints, config: AveragingConfig) -> list[Path]:
    """The checkpoints to average: those named, else the best, else the last; earliest step first.

    There are fewer than asked for where a run has no more, such as one that was stopped early.
    """
    if config.checkpoints:
        return _named(checkpoints.run_folder, config.checkpoints)
    saved = checkpoints.steps(strict=True)  # the last of those that are left are not the last
    if config.best:
        ranked = rank(saved, checkpoints.best_by)[: config.best]
        chosen = sorted(ranked, key=lambda checkpoint: checkpoint.step)
    else:
        chosen = saved[-config.last :]
    if not saved:
        raise UserError(f"no checkpoints in {checkpoints.folder}: run `make train` first (with the same ARGS)")
    if not chosen:
        raise UserError(f"no checkpoint in {checkpoints.folder} was validated: set averaging.last instead of best")
    return [checkpoint.path for checkpoint in chosen]


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the checkpoints' weights, summed in float64 with one checkpoint in memory at a time."""
    first = load(paths[0])
    shapes = {name: weight.shape for name, weight in first.weights.items()}
    types = {name: weight.dtype for name, weight in first.weights.items()}
    sums = {name: weight.double() for name, weight in first.weights.items()}
    first.weights.clear()  # the sums are enough
    for path in paths[1:]:
        checkpoint = load(path)
        _check_same_kind(first, checkpoint)
        check_weights(shapes, checkpoint.weights, path)
        for name, weight in checkpoint.weights.items():
            sums[name] += weight
    return {name: (total / len(paths)).to(types[name]) for name, total in sums.items()}


def write_averaged(run_folder: Path, paths: Sequence[Path]) -> Path:
    """Average checkpoints into the run's `averaged`, which loads wherever a checkpoint does."""
    weights = average(paths)
    newest = load(max(paths, key=lambda path: int(read_meta(path)["step"])))
    folder = Checkpoints(run_folder).folder / AVERAGED
    write(
        folder,
        step=newest.step,
        weights=weights,
        trainer=None,
        tokenizer_files=newest.tokenizer_files,
        config_text=newest.config_text,
        valid={},
        averaged_from=[path.name for path in paths],
    )
    return folder


def _named(run_folder: Path, names: Sequence[str]) -> list[Path]:
    paths: list[Path] = []
    for name in names:
        path = resolve(run_folder, name)
        if path in paths:
            raise UserError(f"averaging.checkpoints names {path.name} twice ({', '.join(names)}): name each once")
        paths.append(path)
    return paths


def _check_same_kind(first: Checkpoint, other: Checkpoint) -> None:
    """Refuse to mix models that mean different things by their weights, even where the shapes agree."""
    if tokenizer_checksums(first.meta) != tokenizer_checksums(other.meta):
        raise UserError(f"cannot average {other.path} with {first.path}: their tokenizers differ. Choose others")
    changed = differences(read_settings(first.config_text), read_settings(other.config_text))
    model = [f"{key} is {new}, not {old}" for key, (old, new) in changed.items() if key.startswith("model.")]
    if model:
        raise UserError(f"cannot average {other.path} with {first.path}: {', '.join(model)}. Choose others")
