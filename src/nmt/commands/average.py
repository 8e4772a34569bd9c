"""`nmt average`: average the last or best checkpoints of a run."""

import math
from contextlib import nullcontext
from pathlib import Path

from nmt.compute.machine import prepare_machine
from nmt.config.choices import is_text
from nmt.config.saved import from_yaml
from nmt.config.schema import AveragingConfig, Config
from nmt.data.prepared import require_prepared
from nmt.decoding.torch_engine import load_model
from nmt.errors import UserError
from nmt.model.working_weights import WorkingWeights
from nmt.runs.averaging import Candidate, Mean, candidates, choose, write_averaged
from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoints import Checkpoints, load
from nmt.text.tokenizer import Tokenizer
from nmt.training.statistics import Statistics
from nmt.training.validation import DevelopmentSet, decoded_bleu, development_loss

SENTENCES = 500
"""Sentences of the development set that two candidates translate: some seconds on a CPU."""


def run(config: Config) -> None:
    """Average the checkpoints that the settings or the development set choose, and print their names."""
    checkpoints, settings = Checkpoints(config.run_folder, config.training.best_by), config.averaging
    newest_step = checkpoints.newest_step  # first, because training may save others meanwhile
    is_measured = not (settings.checkpoints or settings.best or settings.last)
    paths = _choose_by_development_set(config, checkpoints) if is_measured else choose(checkpoints, settings)
    folder = write_averaged(config.run_folder, paths, newest_step)
    print(f"averaged {len(paths)} checkpoint{'s' if len(paths) > 1 else ''} into {folder}:")
    for path in paths:
        print(f"  {path}")
    if not is_measured and (note := _note(settings, paths)):
        print(note)


class _Measures:
    """The development set, and a model to measure averages of checkpoints with; one average is in memory at a time."""

    def __init__(self, config: Config, first: Candidate) -> None:
        require_prepared(config)
        self._valid = DevelopmentSet.open(config, "valid", SENTENCES)
        self._valid.store.verify()
        self._config, self._machine = config, prepare_machine(config.runtime)
        checkpoint = load(first.paths[0])
        model, self._tokenizer = load_model(checkpoint, from_yaml(checkpoint.config_text).model, self._machine.device)
        if self._tokenizer.checksum != Tokenizer.load(config.data_folder).checksum:
            raise UserError(
                f"the tokenizer of {checkpoint.path} is not the one in {config.data_folder}, so its loss there is "
                "meaningless: prepare the old data again, or set averaging.last=5 to average without it"
            )
        self._mean, self._weights = Mean(), WorkingWeights(model, self._machine.precision)

    def losses(self, candidate: Candidate) -> Statistics:
        """Return the mean losses of a candidate."""
        return development_loss(
            self._load(candidate), self._valid.store, self._config.training, self._machine, nullcontext
        )

    def bleu(self, candidate: Candidate) -> tuple[float, int]:
        """Return the BLEU of a candidate, and the number of sentences that it translated."""
        text = self._valid.text
        assert text
        model = self._load(candidate).model
        score = decoded_bleu(model, self._machine, self._config, self._tokenizer, nullcontext, text)
        return score, len(text.sources)

    def _load(self, candidate: Candidate) -> WorkingWeights:
        self._weights.model.load_state_dict(self._mean.of(candidate.paths))
        return self._weights


def _choose_by_development_set(config: Config, checkpoints: Checkpoints) -> list[Path]:
    """Return the checkpoints of the candidate that the development set chooses, earliest step first."""
    found = candidates(checkpoints, config.training.keep_last, config.training.keep_best)
    measures = _Measures(config, found[0])
    finalists = _finalists(found, measures)
    if not finalists:
        raise UserError(
            f"no checkpoint in {checkpoints.folder} has a finite loss on the development set, so training has "
            "diverged: train under another name= with training.clip_norm=1 or a lower training.learning_rate"
        )
    best = finalists[0]
    if len(finalists) > 1 and is_text(config.data.target_lang):  # BLEU says nothing about trees
        best = _translated_best(finalists, measures)
    else:
        print(f"chosen by the lowest smoothed loss: {best.name}")
    return [each.path for each in sorted(best.checkpoints, key=lambda checkpoint: checkpoint.step)]


def _finalists(found: list[Candidate], measures: _Measures) -> list[Candidate]:
    """Return the candidate with the lowest development loss, and that of the last checkpoints, if it is another.

    A model that learns a short text by heart is less sure of other text after every pass, while it still translates
    better. The loss has smoothed labels, like the one that training minimises and by which the best checkpoint is kept.
    The plain nll would prefer averages with early checkpoints even more.
    """
    print("on the development set, per token:", flush=True)
    losses: dict[str, float] = {}
    for candidate in found:
        statistics = measures.losses(candidate)
        figures = f"smoothed loss {statistics.loss:.4f}  nll {statistics.nll:.4f}"
        print(f"  {figures}  {_described(candidate)}", flush=True)
        if math.isfinite(statistics.loss):
            losses[candidate.name] = statistics.loss
    ranked = sorted((each for each in found if each.name in losses), key=lambda each: losses[each.name])
    late = [each for each in ranked if each.is_late]
    return [*ranked[:1], *(each for each in late[:1] if each is not ranked[0])]


def _translated_best(finalists: list[Candidate], measures: _Measures) -> Candidate:
    """Return the candidate that translates the development set best."""
    print("two of them translate the development set:", flush=True)
    scores: dict[str, float] = {}
    for candidate in finalists:
        scores[candidate.name], sentences = measures.bleu(candidate)
        print(f"  BLEU {scores[candidate.name]:.2f} of {sentences:,} sentences  {candidate.name}", flush=True)
    best = max(finalists, key=lambda candidate: scores[candidate.name])
    print(f"chosen by the higher BLEU: {best.name}")
    return best


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
