"""Translate a split of the prepared data and score it."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import zip_longest
from typing import TypeVar

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.data.references import alignments_of
from nmt.decoding.attention import align
from nmt.decoding.engine import Engine
from nmt.decoding.load import LoadedModel
from nmt.evaluation.alignment_error import AlignmentScore, score_links
from nmt.evaluation.bleu import bleu_tokenizer_of
from nmt.evaluation.metrics import score_text
from nmt.evaluation.record import EvaluationRecord, perplexity
from nmt.evaluation.split import Split
from nmt.parsing.linearise import repair_all

T = TypeVar("T")


def evaluate(loaded: LoadedModel, split: Split, config: Config, machine: Machine) -> tuple[list[str], EvaluationRecord]:
    """Return the translations of a split and their scores; each process translates its share and returns all."""
    engine, target_lang = loaded.engine, split.languages[1]
    started = time.perf_counter()
    decoded = translate_together(engine, split.sources, split.name)
    seconds = time.perf_counter() - started
    nll, alignments = reference_nll(engine, split), alignment_score(engine, split)
    hypotheses, repairs = (decoded, None) if is_text(target_lang) else repair_all(split.untagged_sources, decoded)
    scores = score_text(
        hypotheses, split.all_references, target_lang, split.untagged_sources, config.evaluation, engine.device.type
    )
    return hypotheses, EvaluationRecord(
        split=split.name,
        scores=scores,
        sentences=len(hypotheses),
        seconds=seconds,
        sentences_per_second=len(hypotheses) / seconds,
        nll=nll,
        perplexity=perplexity(nll),
        corpus=config.data.corpus,
        languages=split.languages,
        bleu_tokenizer=bleu_tokenizer_of(config, split.name),
        decoding=config.decoding,
        engine=engine.name,
        machine=str(machine),
        processes=distributed.world_size(),
        checkpoint=loaded.checkpoint,
        alignments=alignments,
        repairs=repairs,
    )


def translate_together(
    engine: Engine, sources: Sequence[str], name: str = "", interruptible_together: Interruptible = nullcontext
) -> list[str]:
    """Return the best translation of each line; each process translates its share and returns them all."""
    own = own_share(sources)
    hidden = None if distributed.is_main() else True  # None hides it without a terminal
    with tqdm(total=len(own), desc=name, unit=" sentences", leave=False, disable=hidden) as bar:
        with interruptible_together():
            numbers = own_share(range(1, len(sources) + 1))
            texts = [each.text for each in engine.translate(own, numbers=numbers, done=bar.update)]
        return all_shares(texts)


def reference_nll(engine: Engine, split: Split) -> float:
    """Return the mean negative log-likelihood of the references per word piece."""
    likelihoods = all_shares(engine.score(own_share(split.sources), own_share(split.references)))
    return -sum(each.log_probability for each in likelihoods) / sum(each.tokens for each in likelihoods)


def alignment_score(engine: Engine, split: Split) -> AlignmentScore | None:
    """Return how well the model aligns the references; None if the true alignments are not known."""
    gold = alignments_of(split.folder, split.name)
    if not (gold and engine.shows_attention):
        return None
    links = all_shares(align(engine, own_share(split.sources), own_share(split.references)))
    return score_links(zip(links, gold, strict=True))


def own_share(sentences: Sequence[T]) -> Sequence[T]:
    """Return this process's share of some sentences."""
    return sentences[distributed.rank() :: distributed.world_size()]


def all_shares(own: Sequence[T]) -> list[T]:
    """Return the results for all sentences, in order, given those for this process's share."""
    shares = distributed.gather_objects(own)
    return [each for row in zip_longest(*shares, fillvalue=None) for each in row if each is not None]
