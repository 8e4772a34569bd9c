"""Translate with PyTorch: one model, or several as an ensemble.

`Engine.translate` turns lines into batches of token ids, calls `search` for each, and turns its hypotheses into text.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.compute.machine import is_out_of_memory
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.decoding.batches import DecodingPlan, cpu_plan, same_plan, serial_plan
from nmt.decoding.beam import Hypothesis, NextTokenScorer, ensemble_scorers
from nmt.decoding.constraints import Constraints
from nmt.decoding.engine import Engine
from nmt.decoding.limits import MAX_SOURCE_TOKENS
from nmt.decoding.search import SearchBatch, search
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.cpu.prepared_weights import prepare_for_cpu
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.model.working_weights import in_precision
from nmt.runs.checkpoint import Checkpoint, check_weights
from nmt.text.special import BOS
from nmt.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from nmt.decoding.attention import Weights

MAX_SCORED_ROWS = 512
"""Rows of scores of the whole vocabulary in memory at a time when given translations are scored."""


class TorchEngine(Engine):
    """Translates with a model, or with several as an ensemble."""

    name = "torch"
    shows_attention = True
    prepare_for_cpu = staticmethod(prepare_for_cpu)
    """Copies a model for decoding on a CPU."""

    def __init__(
        self,
        models: Sequence[TranslationModel],
        tokenizer: Tokenizer,
        config: DecodingConfig,
        device: torch.device,
        precision: torch.dtype = torch.float32,
        *,
        seed: int = 1,
        guided: bool = False,
    ) -> None:
        """Translate in `precision` with models on `device`; in another precision than theirs, with copies of them."""
        limits = [model.config.max_positions for model in models if model.config.positions == "learned"]
        super().__init__(tokenizer, config, min([MAX_SOURCE_TOKENS, *limits]), min(limits, default=sys.maxsize))
        prepare = self.prepare_for_cpu if device.type == "cpu" else in_precision
        self.models = [prepare(model, precision) for model in models]
        self.device = device
        self.guided = guided
        self.prepare_search(seed)

    def plan(self, lengths: Sequence[int]) -> DecodingPlan:
        """Divide sentences of these lengths into batches; a CPU decodes several of them in parallel."""
        config = self.config.search
        if self.device.type != "cpu":
            return serial_plan(lengths, config.batch_tokens)
        make_plan = same_plan if self.same_batches else cpu_plan
        return make_plan(lengths, config.batch_tokens, config.nbest if config.strategy == "sample" else config.beam)

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source of a batch: encode the sources, then search with the model as scorer."""
        config, source = self.config.search, Packed.from_sentences(sources).to(self.device)
        copies = config.nbest if config.strategy == "sample" else 1
        max_lengths = self._max_lengths(source, constraints).repeat_interleave(copies)
        batch = SearchBatch(
            [tokens for tokens in sources for _ in range(copies)],
            max_lengths,
            [each for each in constraints for _ in range(copies)],
            self.seed,
        )
        with self._inference():
            caches = [model.start(source) for model in self.models]
            for cache in caches:
                cache.repeat(copies)
            advances = zip(self.models, caches, strict=True)
            scorer = ensemble_scorers([partial(model.advance, state=cache) for model, cache in advances])
            return search(scorer, batch, config, self.tokenizer.vocabularies[1], self.well_formed)

    @contextmanager
    def scorer_of(self, source: str) -> Iterator[NextTokenScorer | None]:
        """Offer the next-token scorer of one sentence in this block; None if the tokenizer drops all characters."""
        tokens = self._finish_source(self.tokenizer.encode_input([source])[0], 1)
        if not tokens:
            yield None
            return
        with self._inference():
            packed = Packed.from_sentences([tokens]).to(self.device)
            yield ensemble_scorers([partial(model.advance, state=model.start(packed)) for model in self.models])

    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """Return the log-probability of each target token; an ensemble's is that of its members' mean probability."""
        source = Packed.from_sentences(sources).to(self.device)
        target = Packed.from_sentences([[BOS, *tokens[:-1]] for tokens in targets]).to(self.device)
        labels = torch.tensor([token for tokens in targets for token in tokens], device=self.device)
        with self._inference():
            members = torch.stack([_label_scores(model, model(source, target), labels) for model in self.models])
            scores = members.logsumexp(0) - math.log(len(self.models))
        return [each.tolist() for each in scores.split([len(tokens) for tokens in targets])]

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> "list[Weights]":
        """Return the cross-attention of each target, that of the first model of an ensemble."""
        source, target = (Packed.from_sentences(each).to(self.device) for each in (sources, targets))
        with self._inference():
            return [maps.cross.float().cpu().numpy() for maps in self.models[0].attention(source, target)]

    def _max_lengths(self, source: Packed, constraints: list[Constraints]) -> Tensor:
        """Return the longest translation (B,) of each sentence, EOS included."""
        max_lengths = source.lengths.to(torch.int64) + self.config.extra_length
        max_lengths += torch.tensor([each.tokens for each in constraints], device=self.device)
        return max_lengths.clamp(max=self.max_target_tokens)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Run the models in this block without dropout and gradients."""
        no_gradients = torch.inference_mode() if self.device.type == "cpu" else torch.no_grad()
        with _evaluation_mode(self.models), no_gradients:
            try:
                yield
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                raise UserError(
                    "the device has too little memory to decode: lower decoding.batch_tokens or decoding.beam"
                ) from error


def _label_scores(model: TranslationModel, output: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probabilities (T,) of the labels, a few rows of vocabulary scores at a time."""
    scores = [
        -F.cross_entropy(model.logits(rows).float(), row_labels, reduction="none")
        for rows, row_labels in zip(output.split(MAX_SCORED_ROWS), labels.split(MAX_SCORED_ROWS), strict=True)
    ]
    return torch.cat(scores)


def load_model(checkpoint: Checkpoint, config: ModelConfig, device: torch.device) -> tuple[TranslationModel, Tokenizer]:
    """Return the model and the tokenizer of a checkpoint, given the model's settings."""
    tokenizer = checkpoint.tokenizer()
    if config.tie_embeddings and not tokenizer.joint:
        raise UserError(
            f"{checkpoint.path} has a vocabulary for each language, but its model shares one: "
            "its tokenizer belongs to another run; restore the right one or use another checkpoint"
        )
    check_weights(_shapes(config, tokenizer, checkpoint), checkpoint.weights, checkpoint.path)
    model = build_model(config, tokenizer.source_size, tokenizer.target_size)
    model.load_state_dict(checkpoint.weights)
    return model.to(device).eval(), tokenizer


def _shapes(config: ModelConfig, tokenizer: Tokenizer, checkpoint: Checkpoint) -> dict[str, torch.Size]:
    """Return the shapes of a model's parameters without allocating them: damaged settings may ask for any size."""
    try:
        if max(config.encoder_depth, config.decoder_depth) > len(checkpoint.weights):
            raise ValueError(f"{config.encoder_depth} and {config.decoder_depth} layers")
        with torch.device("meta"):
            model = build_model(config, tokenizer.source_size, tokenizer.target_size)
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise UserError(
            f"{checkpoint.path / 'config.yaml'} describes a model that does not fit its weights "
            f"({str(error).partition(chr(10))[0]}): restore it or use another checkpoint"
        ) from error
    return {name: weight.shape for name, weight in model.state_dict().items()}


@contextmanager
def _evaluation_mode(models: Sequence[TranslationModel]) -> Iterator[None]:
    """Switch dropout off in this block, and back on afterwards for models that are being trained."""
    training = [model for model in models if model.training]
    for model in training:
        model.eval()
    try:
        yield
    finally:
        for model in training:
            model.train()
