"""Validate on the development set, during training and when checkpoints are chosen for averaging."""

from collections.abc import Iterator

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.schema import Config, ModelConfig, TrainingConfig
from nmt.data.batches import PairLengths, plan_epoch, split_batch
from nmt.data.loader import CPU_SHAPES, MicroBatch, assemble
from nmt.data.shapes import Shapes, micro_batch_shapes
from nmt.data.store import PairStore
from nmt.decoding.limits import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS
from nmt.decoding.torch_engine import TorchEngine
from nmt.evaluation.evaluate import read_split, translate_together
from nmt.evaluation.metric import Translated
from nmt.evaluation.metrics import METRICS
from nmt.model.interface import TranslationModel
from nmt.text.tokenizer import Tokenizer
from nmt.training.trainer import Statistics, Trainer, held_out_loss


def validate(
    trainer: Trainer, config: Config, valid: PairStore, tokenizer: Tokenizer, interruptible_together: Interruptible
) -> dict[str, float]:
    """Return loss, perplexity and, if asked for, BLEU on the development set. All processes must call this."""
    statistics = development_loss(trainer.model, valid, config.training, trainer.machine, interruptible_together)
    figures = {"loss": statistics.loss, "nll": statistics.nll, "perplexity": statistics.perplexity}
    if config.training.valid_sentences:
        figures["bleu"] = decoded_bleu(trainer, config, tokenizer, interruptible_together)
    return figures


def decoded_bleu(
    trainer: Trainer, config: Config, tokenizer: Tokenizer, interruptible_together: Interruptible
) -> float:
    """Return the BLEU, computed as `nmt eval` does, of the first sentences of the development set."""
    split = read_split(config.data_folder, "valid", (config.data.source_lang, config.data.target_lang))
    count = config.training.valid_sentences
    engine = TorchEngine([trainer.model], tokenizer, config.decoding, *trainer.machine)
    hypotheses = translate_together(engine, split.sources[:count], interruptible_together=interruptible_together)
    return METRICS["bleu"].score(Translated(hypotheses, [split.references[:count]], config.data.target_lang)).score


def development_loss(
    model: TranslationModel,
    valid: PairStore,
    config: TrainingConfig,
    machine: Machine,
    interruptible_together: Interruptible,
) -> Statistics:
    """Return the mean losses on the development set. All processes must call this."""
    shapes = micro_batch_shapes(model, config, machine, config.device_tokens)
    batches = development_batches(valid, config, model.config, shapes)
    return held_out_loss(model, batches, config, machine, interruptible_together)


def development_batches(
    valid: PairStore, config: TrainingConfig, model: ModelConfig, shapes: Shapes = CPU_SHAPES
) -> Iterator[MicroBatch]:
    """Yield this process's share of the development set, with sentences truncated as in decoding and scoring."""
    max_tokens = model.max_positions if model.positions == "learned" else MAX_TARGET_TOKENS
    limits = min(MAX_SOURCE_TOKENS, max_tokens) - 1, min(MAX_TARGET_TOKENS, max_tokens) - 1
    lengths = PairLengths.with_marks(valid.source_lengths.clip(max=limits[0]), valid.target_lengths.clip(max=limits[1]))
    devices, budget = distributed.world_size(), config.device_tokens or config.batch_tokens
    plan = plan_epoch(lengths, config.batch_tokens, seed=0, epoch=0)
    for index in range(len(plan)):
        for sentences in split_batch(plan[index], lengths, devices, budget)[distributed.rank() :: devices]:
            yield assemble(valid, sentences, limits, shapes)
