"""Translates a split of the prepared data and scores it, as often as there are splits to look at."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from nmt import distributed
from nmt.data.readers import read_lines
from nmt.decoding.translate import Translator, batches_by_length
from nmt.errors import UserError
from nmt.evaluation.scores import Score, score
from nmt.files import write_json, write_text
from nmt.model.packed import Packed
from nmt.text.special import BOS, EOS
from nmt.training.loss import smoothed_cross_entropy


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
    loss: float
    """Mean negative log-likelihood of the references' word pieces, end marks included."""
    seconds: float
    """Time that translating took."""

    @property
    def perplexity(self) -> float:
        """Of the references, per word piece."""
        return math.exp(min(self.loss, 700.0))

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
    sources, references = (list(read_lines(path)) for path in paths)
    if len(sources) != len(references):
        raise UserError(
            f"{paths[0]} has {len(sources):,} lines, but {paths[1]} has {len(references):,}: "
            "run `make data` to make them anew"
        )
    if not sources:
        raise UserError(f"{paths[0]} is empty, so there is nothing to score: name other splits")
    return Split(name, sources, references)


def evaluate(translator: Translator, split: Split, target_lang: str) -> Evaluation:
    """Translate and score a split; the processes share the work, and each gets the whole result."""
    started = time.perf_counter()
    hypotheses = translate_together(translator, split.sources, split.name)
    seconds = time.perf_counter() - started
    return Evaluation(
        hypotheses, score(hypotheses, split.references, target_lang), reference_loss(translator, split), seconds
    )


def translate_together(translator: Translator, sources: Sequence[str], name: str = "") -> list[str]:
    """The best translation of each line; every process translates its share, and all get them all."""
    rank, processes = distributed.rank(), distributed.world_size()
    own = range(rank, len(sources), processes)
    with tqdm(total=len(own), desc=name, unit=" sentences", leave=False, disable=None if rank == 0 else True) as bar:
        translations = translator.translate(
            [sources[index] for index in own], numbers=[index + 1 for index in own], done=bar.update
        )
        shares = distributed.gather_objects([translation.text for translation in translations])
    hypotheses = [""] * len(sources)
    for first, share in enumerate(shares):
        hypotheses[first::processes] = share
    return hypotheses


def reference_loss(translator: Translator, split: Split) -> float:
    """Mean negative log-likelihood of the references' word pieces under the (first) model."""
    own = slice(distributed.rank(), None, distributed.world_size())
    sources = translator.tokenizer.encode_source(split.sources[own])
    targets = translator.tokenizer.encode_target(split.references[own])
    sources = [[*pieces[: translator.longest_source - 1], EOS] for pieces in sources]
    targets = [[BOS, *pieces[: translator.longest_target - 1], EOS] for pieces in targets]
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    total, tokens = 0.0, 0
    for batch in batches_by_length(lengths, translator.config.batch_tokens):
        total += _loss_sum(translator, [sources[index] for index in batch], [targets[index] for index in batch])
        tokens += sum(len(targets[index]) - 1 for index in batch)
    shares = distributed.gather_objects((total, tokens))
    return sum(total for total, _ in shares) / sum(tokens for _, tokens in shares)


def _loss_sum(translator: Translator, sources: list[list[int]], targets: list[list[int]]) -> float:
    model, device = translator.models[0], translator.device
    source = Packed.from_sentences(sources).to(device)
    target = Packed.from_sentences([pieces[:-1] for pieces in targets]).to(device)
    labels = torch.tensor([piece for pieces in targets for piece in pieces[1:]], device=device)
    with translator.computing():
        output = model(source, target)
        losses = smoothed_cross_entropy(output, model.projection, labels, smoothing=0.0, ignore=-1)
    return float(losses.likelihood)


def write_evaluation(folder: Path, split: str, evaluation: Evaluation, about: dict[str, Any]) -> None:
    """Write the translations and the scores, with what else one must know `about` them."""
    write_text(folder / f"{split}.hyp.txt", "".join(f"{line}\n" for line in evaluation.hypotheses))
    scores = {name: {"score": each.score, "signature": each.signature} for name, each in evaluation.scores.items()}
    measured = {
        "sentences": len(evaluation.hypotheses),
        "seconds": evaluation.seconds,
        "sentences_per_second": evaluation.sentences_per_second,
        "loss": evaluation.loss,
        "perplexity": evaluation.perplexity,
    }
    write_json(folder / f"{split}.json", {"split": split, **scores, **measured, **about})
