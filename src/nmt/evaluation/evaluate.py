"""Translate a split of the prepared data and score it."""

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.signals import Interruptible
from nmt.config.choices import is_text
from nmt.config.schema import EvaluationConfig
from nmt.data.alignments import alignments_of
from nmt.data.annotations import Annotations, annotations_of
from nmt.data.prepared import verify_task
from nmt.data.tags import untagged
from nmt.decoding.engine import Engine
from nmt.errors import UserError
from nmt.evaluation.alignments import AlignmentScore, score_alignments
from nmt.evaluation.details import Part, Rates, parts, rates
from nmt.evaluation.metric import Score, Translated
from nmt.evaluation.metrics import score, score_text
from nmt.evaluation.tree_scores import check_references, repair_all
from nmt.parsing.linearise import Repairs
from nmt.text.alignments import GoldAlignment
from nmt.text.lines import read_lines

MAX_NLL = 700.0
"""Largest negative log-likelihood whose perplexity is still a finite number."""


@dataclass(frozen=True, slots=True)
class Split:
    """The raw text of a split, line by line."""

    name: str
    sources: list[str]
    references: list[str]
    """The first reference of each sentence."""
    annotations: Annotations = field(default_factory=Annotations)
    alignments: list[GoldAlignment] = field(default_factory=list)
    """The true word alignments with the first reference; none if they are not known."""
    tag: str = ""
    """The tag before each source sentence."""

    @property
    def untagged_sources(self) -> list[str]:
        """The source sentences without their tags, which no metric should see."""
        return [untagged(source, self.tag) for source in self.sources]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The translations of a split and their scores."""

    hypotheses: list[str]
    scores: dict[str, Score]
    """Scores by the name of the metric."""
    nll: float
    """Mean negative log-likelihood of the references per word piece, end marks included."""
    seconds: float
    """Time spent translating."""
    repairs: Repairs | None = None
    """What was repaired, if the hypotheses are trees."""
    rates: Rates | None = None
    """The shares of translations with typical faults, if the hypotheses are text."""
    parts: list[Part] = field(default_factory=list)
    alignments: list[AlignmentScore] = field(default_factory=list)
    """How well each layer and head aligns the references, if the true alignments are known; the best comes first."""

    @property
    def perplexity(self) -> float:
        """Perplexity of the references per word piece."""
        return math.exp(min(self.nll, MAX_NLL))

    @property
    def sentences_per_second(self) -> float:
        """Translated sentences per second."""
        return len(self.hypotheses) / self.seconds


def read_split(folder: Path, name: str, languages: tuple[str, str], tag: str = "") -> Split:
    """Read the source and target text of a split, whose source sentences begin with a tag if it has one."""
    paths = [folder / f"{name}.{language}" for language in languages]
    for path in paths:
        if not path.is_file():
            raise UserError(f"there is no {path}: run `make data` with the same settings, or name other splits")
    verify_task(folder, f"collect {name}")
    sources, references = (list(read_lines(path)) for path in paths)
    if len(sources) != len(references):
        raise UserError(
            f"{paths[0]} has {len(sources):,} lines, but {paths[1]} has {len(references):,}: "
            "run `make data` to write them again"
        )
    if not sources:
        raise UserError(f"{paths[0]} is empty, so there is nothing to score: name other splits")
    if not is_text(languages[1]):
        check_references(sources, references, str(paths[1]))
    return Split(name, sources, references, annotations_of(folder, name), alignments_of(folder, name), tag)


def evaluate(engine: Engine, split: Split, target_lang: str, settings: EvaluationConfig) -> Evaluation:
    """Translate and score a split; each process translates its share and returns the whole result.

    Trees are repaired before they are scored.
    """
    started = time.perf_counter()
    hypotheses = translate_together(engine, split.sources, split.name)
    seconds = time.perf_counter() - started
    nll, references = reference_nll(engine, split), [split.references, *split.annotations.references]
    if not is_text(target_lang):
        hypotheses, repairs = repair_all(split.sources, hypotheses)
        return Evaluation(hypotheses, score(hypotheses, split.references, target_lang), nll, seconds, repairs)
    text = Translated(
        hypotheses, references, target_lang, split.untagged_sources, settings.comet, settings.bleu_tokenizer
    )
    divided = parts(text, split.annotations.labels)
    aligned = _score_alignments(engine, split)
    return Evaluation(hypotheses, score_text(text), nll, seconds, rates=rates(text), parts=divided, alignments=aligned)


def _score_alignments(engine: Engine, split: Split) -> list[AlignmentScore]:
    """Score the alignments of the references, if the true ones are known and the engine has any."""
    if not (split.alignments and engine.has_attention):
        return []
    return score_alignments(engine, split.sources, split.references, split.alignments)


def translate_together(
    engine: Engine, sources: Sequence[str], name: str = "", interruptible_together: Interruptible = nullcontext
) -> list[str]:
    """Return the best translation of each line; each process translates its share and returns them all."""
    rank, processes = distributed.rank(), distributed.world_size()
    indices = range(rank, len(sources), processes)
    with tqdm(
        total=len(indices), desc=name, unit=" sentences", leave=False, disable=None if rank == 0 else True
    ) as bar:
        with interruptible_together():
            translations = engine.translate(
                [sources[index] for index in indices], numbers=[index + 1 for index in indices], done=bar.update
            )
            texts = [translation.text for translation in translations]  # consumes the iterator while interruptible
        shares = distributed.gather_objects(texts)
    hypotheses = [""] * len(sources)
    for other_rank, share in enumerate(shares):
        hypotheses[other_rank::processes] = share
    return hypotheses


def reference_nll(engine: Engine, split: Split) -> float:
    """Return the mean negative log-likelihood of the references per word piece."""
    share = slice(distributed.rank(), None, distributed.world_size())
    likelihoods = engine.score(split.sources[share], split.references[share])
    shares = distributed.gather_objects(
        (sum(each.log_probability for each in likelihoods), sum(each.tokens for each in likelihoods))
    )
    return -sum(total for total, _ in shares) / sum(tokens for _, tokens in shares)
