"""Average a run's last or best checkpoints, which the paper evaluates (section 6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from nmt.config.saved import from_yaml, read_saved, read_settings
from nmt.config.schema import AveragingConfig
from nmt.errors import UserError
from nmt.runs.checkpoint_files import read_meta, write
from nmt.runs.checkpoints import Checkpoint, Checkpoints, Saved, check_weights, load, rank, resolve
from nmt.runs.compatibility import differences
from nmt.runs.layout import SETTINGS, RunLayout


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint, or several to average, that may be chosen as the result of a run."""

    name: str
    """A description: last, average of the best 3, ..."""
    checkpoints: list[Saved]
    """The checkpoints, newest or best first."""
    is_late: bool
    """Whether all of them are among the last ones that are kept."""

    @property
    def paths(self) -> list[Path]:
        """Their folders."""
        return [checkpoint.path for checkpoint in self.checkpoints]


def choose(checkpoints: Checkpoints, config: AveragingConfig) -> list[Path]:
    """Return the checkpoints to average, earliest step first: those named, else the best, else the last.

    If the run has fewer checkpoints than the settings ask for, return those that it has.
    """
    if config.checkpoints:
        return _named(checkpoints.run_folder, config.checkpoints)
    saved = _regular(_saved(checkpoints))
    if config.best:
        ranked = rank(saved, checkpoints.best_by)[: config.best]
        chosen = sorted(ranked, key=lambda checkpoint: checkpoint.step)
    else:
        chosen = _scheduled(saved)[-config.last :]
    if not chosen:
        raise UserError(f"no checkpoint in {checkpoints.folder} was validated: set averaging.last instead of best")
    return [checkpoint.path for checkpoint in chosen]


def candidates(checkpoints: Checkpoints, keep_last: int, keep_best: int) -> list[Candidate]:
    """Return the candidates among which the development set chooses, each set of checkpoints once.

    Args:
        checkpoints: The checkpoints of the run.
        keep_last: The largest number of last checkpoints to average.
        keep_best: The largest number of best checkpoints to average.
    """
    saved = _saved(checkpoints)
    regular = _regular(saved)
    newest, best = _scheduled(regular)[::-1][:keep_last], rank(regular, checkpoints.best_by)[:keep_best]
    named = [("last", saved[-1:]), *_averages("last", newest)]
    named += [("best", rank(saved, checkpoints.best_by)[:1]), *_averages("best", best)]
    late = {checkpoint.path for checkpoint in [*newest, saved[-1]]}
    merged: dict[frozenset[Path], Candidate] = {}
    for name, chosen in named:
        key = frozenset(checkpoint.path for checkpoint in chosen)
        if key in merged:
            merged[key] = replace(merged[key], name=f"{merged[key].name}, {name}")
        elif chosen:
            merged[key] = Candidate(name, chosen, is_late=key <= late)
    return list(merged.values())


def _averages(name: str, ordered: list[Saved]) -> list[tuple[str, list[Saved]]]:
    return [(f"average of the {name} {count}", ordered[:count]) for count in range(2, len(ordered) + 1)]


def _saved(checkpoints: Checkpoints) -> list[Saved]:
    saved = checkpoints.steps(strict=True)  # without a damaged one, others would count as the last
    if not saved:
        raise UserError(f"no checkpoints in {checkpoints.folder}: run `make train` first (with the same ARGS)")
    return saved


def _regular(saved: list[Saved]) -> list[Saved]:
    """Return the checkpoints that are not interim, or the last one if all are."""
    return [checkpoint for checkpoint in saved if not checkpoint.interim] or saved[-1:]


def _scheduled(saved: list[Saved]) -> list[Saved]:
    """Return the last checkpoints that the settings asked for, at equal distances, or the last one if there are none.

    Earlier ones than those that training keeps are left only because they are among the best.
    """
    kept = read_saved(saved[-1].path / SETTINGS, from_yaml).training.keep_last
    return [checkpoint for checkpoint in saved if not checkpoint.only_best][-kept:] or saved[-1:]


class Mean:
    """The mean of checkpoints' weights, summed in float64 with one checkpoint in memory at a time."""

    def __init__(self) -> None:
        self._paths: list[Path] = []
        self._first: Checkpoint
        self._sums: dict[str, Tensor] = {}
        self._like: dict[str, Tensor] = {}
        """The weights on the meta device, for their shapes and types."""

    def of(self, paths: Sequence[Path]) -> dict[str, Tensor]:
        """Return the mean of these checkpoints; those that the previous call has read are not read again."""
        if self._paths != list(paths[: len(self._paths)]):
            self._paths, self._sums = [], {}
        for path in paths[len(self._paths) :]:
            self._add(path)
        return {name: (total / len(paths)).to(self._like[name].dtype) for name, total in self._sums.items()}

    def _add(self, path: Path) -> None:
        checkpoint = load(path)
        if self._paths:
            _check_same_kind(self._first, checkpoint)
            check_weights({name: like.shape for name, like in self._like.items()}, checkpoint.weights, path)
            for name, weight in checkpoint.weights.items():
                self._sums[name] += weight
        else:
            self._first = replace(checkpoint, weights={})
            self._like = {name: weight.to("meta") for name, weight in checkpoint.weights.items()}
            self._sums = {name: weight.double() for name, weight in checkpoint.weights.items()}
        self._paths.append(path)


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the checkpoints' weights."""
    return Mean().of(paths)


def write_averaged(run_folder: Path, paths: Sequence[Path], newest_step: int) -> Path:
    """Write the average of checkpoints to the run's folder `averaged`, and return that folder.

    Args:
        run_folder: The folder of the run.
        paths: The folders of the checkpoints.
        newest_step: The step of the run's newest checkpoint among which they were chosen.
    """
    weights = average(paths)
    newest = load(max(paths, key=lambda path: read_meta(path).step))
    folder = RunLayout(run_folder).averaged
    write(
        folder,
        step=newest.step,
        weights=weights,
        trainer=None,
        tokenizer_files=newest.tokenizer_files,
        config_text=newest.config_text,
        valid={},
        averaged_from=[path.name for path in paths],
        newest_step=newest_step,
        origin=newest.meta.origin,
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
    """Refuse to average checkpoints whose tokenizers or model settings differ, even if the shapes are equal."""
    if first.meta.tokenizer_files != other.meta.tokenizer_files:
        raise UserError(f"cannot average {other.path} with {first.path}: their tokenizers differ. Choose others")
    changed = differences(read_settings(first.config_text), read_settings(other.config_text))
    model = [f"{key} is {new}, not {old}" for key, (old, new) in changed.items() if key.startswith("model.")]
    if model:
        raise UserError(f"cannot average {other.path} with {first.path}: {', '.join(model)}. Choose others")
