"""Translate a split of the prepared data and score it."""

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.signals import Interruptible
from nmt.config.data import is_text
from nmt.config.decoding import EvaluationConfig
from nmt.decoding.engine import Engine
from nmt.evaluation.alignment_error import AlignmentScore, alignment_score
from nmt.evaluation.metrics import Score, Translated, score_text
from nmt.evaluation.split import Split
from nmt.parsing.linearise import Repairs, repair_all

MAX_NLL = 700.0
"""Largest negative log-likelihood whose perplexity is still a finite number."""


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
    alignments: AlignmentScore | None = None
    """How well the model aligns the references, if the true alignments are known."""
    repairs: Repairs | None = None
    """What was repaired before trees were scored; None if the target side is text."""

    @property
    def perplexity(self) -> float:
        """Perplexity of the references per word piece."""
        return math.exp(min(self.nll, MAX_NLL))

    @property
    def sentences_per_second(self) -> float:
        """Translated sentences per second."""
        return len(self.hypotheses) / self.seconds


def evaluate(engine: Engine, split: Split, target_lang: str, settings: EvaluationConfig) -> Evaluation:
    """Translate and score a split; each process translates its share and returns the whole result."""
    started = time.perf_counter()
    decoded = translate_together(engine, split.sources, split.name)
    seconds = time.perf_counter() - started
    nll, references = reference_nll(engine, split), [split.references, *split.further_references]
    alignments = alignment_score(engine, split)
    hypotheses, repairs = (decoded, None) if is_text(target_lang) else repair_all(split.untagged_sources, decoded)
    text = Translated(hypotheses, references, target_lang, split.untagged_sources, settings, engine.device.type)
    return Evaluation(hypotheses, score_text(text), nll, seconds, alignments, repairs)


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
