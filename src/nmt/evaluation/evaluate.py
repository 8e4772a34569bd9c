"""Translate a split of the prepared data and score it."""

import time
from collections.abc import Sequence
from contextlib import nullcontext

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.data import is_text
from nmt.config.tree import Config
from nmt.decoding.engine import Engine
from nmt.decoding.load import LoadedModel
from nmt.evaluation.alignment_error import alignment_score
from nmt.evaluation.bleu import bleu_tokenizer_of
from nmt.evaluation.metrics import score_text
from nmt.evaluation.record import EvaluationRecord, perplexity
from nmt.evaluation.split import Split
from nmt.parsing.linearise import repair_all


def evaluate(loaded: LoadedModel, split: Split, config: Config, machine: Machine) -> tuple[list[str], EvaluationRecord]:
    """Return the translations of a split and their scores; each process translates its share and returns all."""
    engine, target_lang = loaded.engine, split.languages[1]
    started = time.perf_counter()
    decoded = translate_together(engine, split.sources, split.name)
    seconds = time.perf_counter() - started
    nll, alignments = reference_nll(engine, split), alignment_score(engine, split)
    hypotheses, repairs = (decoded, None) if is_text(target_lang) else repair_all(split.untagged_sources, decoded)
    references = [split.references, *split.further_references]
    scores = score_text(
        hypotheses, references, target_lang, split.untagged_sources, config.evaluation, engine.device.type
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
    rank, processes = distributed.rank(), distributed.world_size()
    indices = range(rank, len(sources), processes)
    bar = tqdm(total=len(indices), desc=name, unit=" sentences", leave=False, disable=None if rank == 0 else True)
    with bar:
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
