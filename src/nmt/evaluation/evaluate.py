"""Translates a split of the prepared data and scores it, as often as there are splits to look at."""

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.signals import Interruptible
from nmt.data.prepare import verify_step
from nmt.decoding.engine import Engine
from nmt.errors import UserError
from nmt.evaluation.metric import Score
from nmt.evaluation.metrics import score
from nmt.storage.files import write_json, write_text
from nmt.text.lines import read_lines


@dataclass(frozen=True, slots=True)
class Split:
    """The raw text of a split, line by line."""

    name: str
    sources: list[str]
    references: list[str]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of a split."""

    hypotheses: list[str]
    scores: dict[str, Score]
    nll: float
    """Mean negative log-likelihood of the references' word pieces, end marks included."""
    seconds: float
    """Time that translating took."""

    @property
    def perplexity(self) -> float:
        """Of the references, per word piece."""
        return math.exp(min(self.nll, 700.0))

    @property
    def sentences_per_second(self) -> float:
        """Speed of translating."""
        return len(self.hypotheses) / self.seconds


def read_split(folder: Path, name: str, languages: tuple[str, str]) -> Split:
    """Read a split's text, source and target side."""
    paths = [folder / f"{name}.{language}" for language in languages]
    for path in paths:
        if not path.is_file():
            raise UserError(f"there is no {path}: run `make data` with the same settings, or name other splits")
    verify_step(folder, f"collect {name}")
    sources, references = (list(read_lines(path)) for path in paths)
    if len(sources) != len(references):
        raise UserError(
            f"{paths[0]} has {len(sources):,} lines, but {paths[1]} has {len(references):,}: "
            "run `make data` to make them anew"
        )
    if not sources:
        raise UserError(f"{paths[0]} is empty, so there is nothing to score: name other splits")
    return Split(name, sources, references)


def evaluate(engine: Engine, split: Split, target_lang: str) -> Evaluation:
    """Translate and score a split; the processes share the work, and each gets the whole result."""
    started = time.perf_counter()
    hypotheses = translate_together(engine, split.sources, split.name)
    seconds = time.perf_counter() - started
    return Evaluation(
        hypotheses, score(hypotheses, split.references, target_lang), reference_nll(engine, split), seconds
    )


def translate_together(
    engine: Engine, sources: Sequence[str], name: str = "", interruptible_together: Interruptible = nullcontext
) -> list[str]:
    """The best translation of each line; every process translates its share, and all get them all."""
    rank, processes = distributed.rank(), distributed.world_size()
    own = range(rank, len(sources), processes)
    with tqdm(total=len(own), desc=name, unit=" sentences", leave=False, disable=None if rank == 0 else True) as bar:
        with interruptible_together():
            translations = engine.translate(
                [sources[index] for index in own], numbers=[index + 1 for index in own], done=bar.update
            )
            texts = [translation.text for translation in translations]  # each is made when it is asked for
        shares = distributed.gather_objects(texts)
    hypotheses = [""] * len(sources)
    for first, share in enumerate(shares):
        hypotheses[first::processes] = share
    return hypotheses


def reference_nll(engine: Engine, split: Split) -> float:
    """Return the mean negative log-likelihood of the references' word pieces."""
    own = slice(distributed.rank(), None, distributed.world_size())
    found = engine.score(split.sources[own], split.references[own])
    shares = distributed.gather_objects(
        (sum(each.log_probability for each in found), sum(each.tokens for each in found))
    )
    return -sum(total for total, _ in shares) / sum(tokens for _, tokens in shares)


def write_evaluation(folder: Path, split: str, evaluation: Evaluation, about: dict[str, Any]) -> None:
    """Write the translations and the scores, with what else one must know `about` them."""
    write_text(folder / f"{split}.hyp.txt", "".join(f"{line}\n" for line in evaluation.hypotheses))
    scores = {name: {"score": each.score, "signature": each.signature} for name, each in evaluation.scores.items()}
    measured = {
        "sentences": len(evaluation.hypotheses),
        "seconds": evaluation.seconds,
        "sentences_per_second": evaluation.sentences_per_second,
        "nll": evaluation.nll,
        "perplexity": evaluation.perplexity,
    }
    write_json(folder / f"{split}.json", {"split": split, **scores, **measured, **about})
