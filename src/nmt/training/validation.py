"""Validate on the development set, during training and when checkpoints are chosen for averaging."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.training import TrainingConfig
from nmt.config.tree import Config
from nmt.data.batches import Batching, PairLengths, plan_epoch, split_batch
from nmt.data.corpora import corpus_splits
from nmt.data.loader import MicroBatch, assemble
from nmt.data.shapes import micro_batch_shapes
from nmt.data.store import SIDES, PairStore
from nmt.decoding.batches import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS
from nmt.decoding.torch_engine import TorchEngine
from nmt.evaluation.bleu import bleu_tokenizer_of
from nmt.evaluation.evaluate import translate_together
from nmt.evaluation.metrics import sacrebleu_metric
from nmt.evaluation.split import Split, read_split
from nmt.model.interface import TranslationModel
from nmt.model.working_weights import WorkingWeights
from nmt.text.special import PAD
from nmt.text.tokenizer import Tokenizer
from nmt.training.objective import Objective
from nmt.training.statistics import LossSums, Statistics
from nmt.training.trainer import Trainer


class DevelopmentSet(NamedTuple):
    """A development set as training found it, because `nmt data` may replace its files meanwhile."""

    store: PairStore
    text: Split | None
    """The first sentences, which are translated; None if none are."""

    @classmethod
    def open(cls, config: Config, name: str, count: int) -> "DevelopmentSet":
        """Open the development set of this name, with the text of its first `count` sentences."""
        store = PairStore.open(config.data_folder, name)
        if not count:
            return cls(store, None)
        split = read_split(config.data_folder, config.data, name)
        return cls(store, replace(split, sources=split.sources[:count], references=split.references[:count]))


def open_development_sets(config: Config) -> dict[str, DevelopmentSet]:
    """Open the development sets of all corpora, by their names."""
    names = [each.name for each in corpus_splits(config.data) if each.split == "valid"]
    return {name: DevelopmentSet.open(config, name, config.training.valid_sentences) for name in names}


def validate(
    trainer: Trainer,
    config: Config,
    valid: Mapping[str, DevelopmentSet],
    tokenizer: Tokenizer,
    interruptible_together: Interruptible,
) -> dict[str, float]:
    """Return loss, perplexity and, if asked for, BLEU on the development sets. All processes must call this.

    The figures of further corpora have names such as loss/crawled.
    """
    figures: dict[str, float] = {}
    with trainer.replicas.evaluated() as weights:
        for name, (store, text) in valid.items():
            batches = development_batches(store, config.training, weights.model, trainer.machine)
            statistics = held_out_loss(
                weights, batches, config.training, trainer.machine.device, interruptible_together
            )
            of_corpus = {"loss": statistics.loss, "nll": statistics.nll, "perplexity": statistics.perplexity}
            if text is not None:
                of_corpus["bleu"] = decoded_bleu(
                    weights.model, trainer.machine, config, tokenizer, interruptible_together, text
                )
            corpus = name.rpartition(".")[0]
            figures |= {f"{key}/{corpus}" if corpus else key: value for key, value in of_corpus.items()}
    return figures


def decoded_bleu(
    model: TranslationModel,
    machine: Machine,
    config: Config,
    tokenizer: Tokenizer,
    interruptible_together: Interruptible,
    split: Split,
) -> float:
    """Return the BLEU, computed as `nmt eval` does, of sentences of a development set."""
    engine = TorchEngine([model], tokenizer, config.decoding, *machine, graphs=config.runtime.cuda_graphs is not False)
    hypotheses = translate_together(engine, split.sources, interruptible_together=interruptible_together)
    metric = sacrebleu_metric("bleu", bleu_tokenizer_of(config, split.name))
    return float(metric.corpus_score(hypotheses, [split.references]).score)


def held_out_loss(
    weights: WorkingWeights,
    batches: Iterable[MicroBatch],
    config: TrainingConfig,
    device: torch.device,
    interruptible_together: Interruptible = nullcontext,
) -> Statistics:
    """Return a model's mean losses over the batches of all processes, which pass their shares. All must call this."""
    objective, sums = Objective(weights.model, config.label_smoothing).eval(), LossSums(device)
    with interruptible_together(), weights.active(), torch.inference_mode():
        for batch in batches:
            sums.add_held_out(objective(batch.to(device)), (batch.labels != PAD).sum())
    return sums.statistics()


def development_batches(
    valid: PairStore, config: TrainingConfig, model: TranslationModel, machine: Machine
) -> Iterator[MicroBatch]:
    """Yield this process's share of the development set, with sentences truncated as in decoding and scoring."""
    max_tokens = model.config.max_positions if model.config.positions == "learned" else MAX_TARGET_TOKENS
    limits = min(MAX_SOURCE_TOKENS, max_tokens) - 1, min(MAX_TARGET_TOKENS, max_tokens) - 1
    lengths = PairLengths.with_marks(
        *(valid.lengths(side).clip(max=limit) for side, limit in zip(SIDES, limits, strict=True))
    )
    devices, budget = distributed.world_size(), config.device_tokens or config.batch_tokens
    shapes = micro_batch_shapes(model, config, machine, config.device_tokens)
    plan = plan_epoch(lengths, Batching(config.batch_tokens, seed=0), epoch=0)
    for index in range(len(plan)):
        for sentences in split_batch(plan[index], lengths, devices, budget)[distributed.rank() :: devices]:
            yield assemble(valid, sentences, limits, shapes)
