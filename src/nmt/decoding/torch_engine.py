"""Translate with PyTorch: one model, or several as an ensemble.

`Engine.translate` turns lines into batches of token ids, calls `search` for each, and turns its hypotheses into text.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.compute.graphs import GraphRecorder
from nmt.compute.machine import explaining_out_of_memory, is_amd
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.decoding.batches import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, DecodingPlan, cpu_plan
from nmt.decoding.beam import (
    Candidates,
    Choose,
    Hypothesis,
    NextTokenScorer,
    beam_search,
    by_scores,
    ensemble_scorers,
    most_probable,
)
from nmt.decoding.constraints import Constraints
from nmt.decoding.device_beam import search_on_device
from nmt.decoding.engine import Engine
from nmt.decoding.masks import masked
from nmt.decoding.recorded_steps import RecordedScorer
from nmt.decoding.sampling import sample
from nmt.decoding.terms import RequiredTerms, tokens_after_word
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.model.translator import IN_C, Translator, can_translate
from nmt.model.translator_batch import Batch
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

    shows_attention = True

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
        graphs: bool = True,
    ) -> None:
        """Translate in a precision with models on `device`; in another precision than theirs, with copies of them.

        On a CPU, one call into C computes a step of most models. The precision is then that of matrix products, and may
        be int8; given translations are scored in float32. On GPUs of NVIDIA, `graphs` records steps as CUDA graphs.
        """
        limits = [model.config.max_positions for model in models if model.config.positions == "learned"]
        super().__init__(tokenizer, config, min([MAX_SOURCE_TOKENS, *limits]), min(limits, default=sys.maxsize))
        self.name = "int8" if precision == torch.int8 else "torch"
        in_c = device.type == "cpu" and precision in IN_C and all(map(can_translate, models))
        if precision == torch.int8 and not in_c:
            raise UserError(
                "engine=int8 needs a CPU, the operations in C and a Transformer that they know: install a C compiler, "
                "such as gcc, and leave out runtime.kernels=false; or use engine=torch"
            )
        self.translators = [Translator(model, precision, MAX_TARGET_TOKENS) for model in models] if in_c else []
        self.models = list(models) if in_c else [in_precision(model, precision) for model in models]
        self.device = device
        self.recorder = GraphRecorder(device) if graphs and device.type == "cuda" and not is_amd() else None
        self.guided = guided
        self.prepare_search(seed)

    def plan(self, lengths: Sequence[int]) -> DecodingPlan:
        """Divide sentences of these lengths into batches; a CPU decodes several of them in parallel."""
        config = self.config.search
        if self.device.type != "cpu":
            return super().plan(lengths)
        hypotheses = config.nbest if config.strategy == "sample" else config.beam
        return cpu_plan(lengths, config.batch_tokens, hypotheses, same=self.same_batches)

    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source of a batch: encode the sources, then search with the model as scorer."""
        config = self.config.search
        samples = config.nbest if config.strategy == "sample" else 0
        copied = [pair for pair in zip(sources, constraints, strict=True) for _ in range(samples or 1)]
        limits = [self._limit(*each) for each in copied]
        terms = [each.terms for _, each in copied]
        with self._inference():
            width = 1 if samples else config.beam
            scorers, in_c, keep = self._scorers(sources, samples or 1, len(copied) * width, limits)
            scorer, on_device = ensemble_scorers(scorers), torch.tensor(limits, device=self.device)
            masks = masked(scorer, [each for _, each in copied], config, self.device)
            if samples:
                if any(terms):
                    raise UserError("terms need a beam: samples cannot have them")
                # the same for the same seed and batch, in whichever order batches are searched
                seed = crc32(repr((self.seed, [source for source, _ in copied])).encode())
                return sample(masks, limits, config, torch.Generator(self.device).manual_seed(seed))
            choose: Choose = partial(most_probable, beam=width)
            if any(terms):
                after_word = tokens_after_word(tuple(self.tokenizer.vocabularies[1]), self.device)
                required = RequiredTerms(terms, on_device, after_word, width)
                masks, choose = required.wrap(masks), required.choose
            options: Any = {"beam": width, "alpha": config.alpha, "nbest": config.nbest}
            if self.device.type != "cpu":
                return search_on_device(masks, choose, keep, limits, self.device, **options)
            continue_ = partial(in_c, beam=width) if in_c and masks is scorer else by_scores(masks, choose)
            return beam_search(continue_, limits, **options)

    def _scorers(
        self, sources: list[list[int]], copies: int, rows: int, limits: list[int]
    ) -> tuple[list[NextTokenScorer], Callable[..., Candidates] | None, Callable[[Tensor], None]]:
        """Read the sources; return each model's scorer, the search of a single one in C, and what keeps sentences."""
        if self.translators:
            batches = [Batch(each, sources, rows, max(limits), copies) for each in self.translators]
            return [each.scores for each in batches], batches[0].choose if len(batches) == 1 else None, lambda _: None
        caches = [model.start(Packed.from_sentences(sources).to(self.device)) for model in self.models]
        for cache in caches:
            cache.repeat(copies)

        def keep(sentences: Tensor) -> None:
            for cache in caches:
                cache.keep(sentences)

        scorers: list[NextTokenScorer] = []
        for model, cache in zip(self.models, caches, strict=True):
            scorer = partial(model.advance, state=cache)
            scorers.append(RecordedScorer(scorer, cache, self.recorder) if self.recorder else scorer)
        return scorers, None, keep

    def _limit(self, source: Sequence[int], constraints: Constraints) -> int:
        """Return the length of the longest translation of a sentence, EOS included."""
        return min(len(source) + self.config.extra_length + constraints.tokens, self.max_target_tokens)

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

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Run the models in this block without dropout and gradients."""
        no_gradients = torch.inference_mode() if self.device.type == "cpu" else torch.no_grad()
        too_little = "the device has too little memory to decode: lower decoding.batch_tokens or decoding.beam"
        with _evaluation_mode(self.models), no_gradients, explaining_out_of_memory(too_little):
            yield


def _label_scores(model: TranslationModel, output: Tensor, labels: Tensor) -> Tensor:
    """Return the log-probabilities (T,) of the labels, a few rows of vocabulary scores at a time."""
    scores = [
        -F.cross_entropy(model.logits(rows).float(), row_labels, reduction="none")
        for rows, row_labels in zip(output.split(MAX_SCORED_ROWS), labels.split(MAX_SCORED_ROWS), strict=True)
    ]
    return torch.cat(scores)


def load_model(checkpoint: Checkpoint, config: ModelConfig, device: torch.device) -> tuple[TranslationModel, Tokenizer]:
    """Return the model and the tokenizer of a checkpoint, given the model's settings."""
    tokenizer = Tokenizer.load(checkpoint.path)
    if config.tie_embeddings and not tokenizer.joint:
        raise UserError(
            f"{checkpoint.path} has a vocabulary for each language, but its model shares one: "
            "its tokenizer belongs to another run; restore the right one or use another checkpoint"
        )
    try:
        if max(config.encoder_depth, config.decoder_depth) > len(checkpoint.weights):
            raise ValueError(f"{config.encoder_depth} and {config.decoder_depth} layers")
        with torch.device("meta"):  # damaged settings may ask for any size
            model = build_model(config, tokenizer.source_size, tokenizer.target_size)
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise UserError(
            f"{checkpoint.path / 'config.yaml'} describes a model that does not fit its weights "
            f"({str(error).partition(chr(10))[0]}): restore it or use another checkpoint"
        ) from error
    shapes = {name: weight.shape for name, weight in model.state_dict().items()}
    check_weights(shapes, checkpoint.weights, checkpoint.path)
    model.load_state_dict({name: weight.float() for name, weight in checkpoint.weights.items()}, assign=True)
    return model.to(device).eval(), tokenizer


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
