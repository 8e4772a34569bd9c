"""Lines in, translations out: what validation, evaluation and `nmt translate` all decode with."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.data.blocks import blocks
from nmt.decoding.beam import Hypothesis, beam_search, ensemble
from nmt.decoding.sampling import sample
from nmt.errors import UserError
from nmt.model.packed import Packed
from nmt.model.prepared import prepared
from nmt.model.transformer import Transformer
from nmt.runs.checkpoints import Checkpoint, check_weights
from nmt.text.special import BOS, EOS
from nmt.text.tokenizer import Tokenizer

WINDOW = 2048
"""Lines to look ahead, so that sentences of like length are decoded together."""
ROOM = 1 << 22
"""Characters to look ahead at most."""
LONGEST_SOURCE = 1024
"""Most word pieces of a line, its end mark included, that are translated; learned positions may know fewer."""
LONGEST_TARGET = 4096
"""Most word pieces of a translation, or of a prefix or a translation that is given."""
ROWS = 512
"""Tokens whose scores of all words are held at once where translations are scored."""
LEAST_COST = 16
"""Word pieces that a sentence counts at least: even a short one takes a beam's rows of the vocabulary."""

Done = Callable[[int], object]
"""Told how many more sentences are done."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to translate a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Translation:
    """The ways to translate a line, best first; an empty line has one, which is empty."""

    candidates: list[Candidate]

    @property
    def text(self) -> str:
        """The best."""
        return self.candidates[0].text


class Likelihood(NamedTuple):
    """How probable a given translation is."""

    log_probability: float
    """Sum over its tokens."""
    tokens: int
    """How many there are, the end mark included."""


class Engine(ABC):
    """What translates lines; how, is for its kinds to say."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        config: DecodingConfig,
        longest_source: int = LONGEST_SOURCE,
        longest_target: int = sys.maxsize,
    ) -> None:
        """The longest are word pieces, end marks included."""
        self.tokenizer = tokenizer
        self.config = config
        self.longest_source = longest_source
        self.longest_target = min(longest_target, LONGEST_TARGET)

    @abstractmethod
    def search(self, sources: list[list[int]], prefixes: list[list[int]] | None) -> list[list[Hypothesis]]:
        """The best hypotheses of a batch of sources that end with EOS; each begins with its prefix."""

    @abstractmethod
    def likelihoods(self, sources: list[list[int]], targets: list[list[int]]) -> list[Likelihood]:
        """How probable each target is, for a batch of pairs that end with EOS."""

    def translate(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] | None = None,
        window: int = WINDOW,
        numbers: Iterable[int] | None = None,
        done: Done = lambda count: None,
    ) -> Iterator[Translation]:
        """Translate line by line, in order.

        Args:
            lines: the text; an empty line stays empty, and one too long is cut with a warning.
            prefixes: what the translation of each line has to begin with.
            window: lines to look ahead.
            numbers: what a warning calls the lines, where that is not 1, 2, 3, ...
            done: told of each batch's end.
        """
        numbers = iter(numbers or count(1))
        beginnings = None if prefixes is None else iter(prefixes)
        for block in blocks(lines, window, len, ROOM):
            # A line of spaces is empty, whatever a tokenizer would make of it.
            sources = self.tokenizer.encode_source([line if line.strip() else "" for line in block])
            begun = None
            if beginnings is not None:
                begun = self.tokenizer.encode_target(list(islice(beginnings, len(block))))
                if len(begun) < len(block):
                    raise UserError("there are fewer prefixes than lines: give each line one, which may be empty")
            found = self.translate_ids(sources, prefixes=begun, numbers=islice(numbers, len(block)), done=done)
            for hypotheses in found:
                yield Translation([Candidate(self.tokenizer.decode(each.tokens), each.score) for each in hypotheses])

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        *,
        prefixes: list[list[int]] | None = None,
        numbers: Iterable[int] | None = None,
        done: Done = lambda count: None,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source sentence, given and returned without special ids.

        What `translate` does between encoding and decoding the text; the other arguments are its own.
        An empty sentence stays empty without a look at the model.
        """
        sentences = [self._complete(*numbered) for numbered in zip(sources, numbers or count(1), strict=False)]
        results = [[Hypothesis([], 0.0, 0.0)] for _ in sentences]
        done(sum(not sentence for sentence in sentences))
        for batch in batches_by_length([len(sentence) for sentence in sentences], self.config.batch_tokens):
            begun = prefixes and [prefixes[index][: self.longest_target - 1] for index in batch]
            found = self.search([sentences[index] for index in batch], begun)
            if not all(found):
                raise UserError(
                    "the model gives no finite scores, so its training has diverged: use an earlier checkpoint, "
                    "and train on from there with a lower learning rate"
                )
            for index, hypotheses in zip(batch, found, strict=True):
                results[index] = hypotheses
            done(len(batch))
        return results

    def score(
        self, sources: Sequence[str], targets: Sequence[str], done: Done = lambda count: None
    ) -> list[Likelihood]:
        """How probable it is that each line is translated as it is; of sentences too long, only their beginning."""
        pairs = [
            ([*source[: self.longest_source - 1], EOS], [*target[: self.longest_target - 1], EOS])
            for source, target in zip(
                self.tokenizer.encode_source(sources), self.tokenizer.encode_target(targets), strict=True
            )
        ]
        results = [Likelihood(0.0, 0)] * len(pairs)
        lengths = [max(len(source), len(target)) for source, target in pairs]
        for batch in batches_by_length(lengths, self.config.batch_tokens):
            found = self.likelihoods(*([pairs[index][side] for index in batch] for side in (0, 1)))
            for index, likelihood in zip(batch, found, strict=True):
                results[index] = likelihood
            done(len(batch))
        return results

    def _complete(self, source: Sequence[int], line: int) -> list[int]:
        """A source sentence with its end mark, cut where it is too long; empty where it is empty."""
        room = self.longest_source - 1
        if len(source) > room:
            _warn(
                f"line {line} has {len(source):,} word pieces, more than the {room:,} that this model translates: "
                "the rest is left out; split it into sentences"
            )
        return [*source[:room], EOS] if source else []


class Translator(Engine):
    """Translates with a model, or with several as an ensemble."""

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        config: DecodingConfig,
        device: torch.device,
        precision: torch.dtype = torch.float32,
        *,
        seed: int = 1,
    ) -> None:
        """Take models, as they are now, that are on `device` already; `precision` is what they compute in."""
        known = [model.config.max_positions for model in models if model.config.positions == "learned"]
        super().__init__(tokenizer, config, min([LONGEST_SOURCE, *known]), min(known, default=sys.maxsize))
        self.models = [prepared(model, precision) for model in models] if device.type == "cpu" else models
        self.device = device
        self.precision = precision
        self.random = torch.Generator(device).manual_seed(seed)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Where the models are looked at: no dropout, no gradients, the chosen precision."""
        rounded = self.device.type != "cpu" and self.precision != torch.float32
        autocast = torch.autocast(self.device.type, self.precision, enabled=rounded)
        with _evaluating(self.models), torch.no_grad(), autocast:
            try:
                yield
            except torch.OutOfMemoryError as error:
                raise UserError("the device has too little memory to decode: lower decoding.batch_tokens") from error

    def search(self, sources: list[list[int]], prefixes: list[list[int]] | None) -> list[list[Hypothesis]]:
        """See `Engine.search`."""
        source = Packed.from_sentences(sources).to(self.device)
        longest = source.lengths.to(torch.int64) + self.config.extra_length
        if prefixes:
            longest += torch.tensor([len(prefix) for prefix in prefixes], device=self.device)
        longest = longest.clamp(max=self.longest_target)
        with self.computing():
            capacity = int(longest.max())
            step = ensemble([partial(model.advance, state=model.start(source, capacity)) for model in self.models])
            if self.config.strategy == "sample":
                return sample(step, longest, self.config, self.random, prefixes)
            return beam_search(
                step,
                longest,
                beam=self.config.beam,
                alpha=self.config.alpha,
                nbest=self.config.nbest,
                prefixes=prefixes,
            )

    def likelihoods(self, sources: list[list[int]], targets: list[list[int]]) -> list[Likelihood]:
        """See `Engine.likelihoods`; under several models, as under the mean of their probabilities."""
        source = Packed.from_sentences(sources).to(self.device)
        target = Packed.from_sentences([[BOS, *pieces[:-1]] for pieces in targets]).to(self.device)
        labels = torch.tensor([piece for pieces in targets for piece in pieces], device=self.device)
        with self.computing():
            members = torch.stack([_label_scores(model, model(source, target), labels) for model in self.models])
            scores = members.logsumexp(0) - math.log(len(self.models))
        lengths = [len(pieces) for pieces in targets]
        return [Likelihood(sum(part), len(part)) for part in (each.tolist() for each in scores.split(lengths))]


def _label_scores(model: Transformer, output: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities (T,) of the labels; scores of whole vocabularies are held for a few rows at a time."""
    parts = [
        -F.cross_entropy(model.logits(rows).float(), some, reduction="none")
        for rows, some in zip(output.split(ROWS), labels.split(ROWS), strict=True)
    ]
    return torch.cat(parts)


def load_model(checkpoint: Checkpoint, config: ModelConfig, device: torch.device) -> tuple[Transformer, Tokenizer]:
    """The model and the tokenizer of a checkpoint, given the settings of the model that it holds."""
    tokenizer = Tokenizer.load(checkpoint.tokenizer_folder)
    if config.tie_embeddings and not tokenizer.joint:
        raise UserError(
            f"{checkpoint.path} has a vocabulary for each language, but its model shares one: "
            "its tokenizer is that of another run; put the right one back or use another checkpoint"
        )
    check_weights(_shapes(config, tokenizer, checkpoint), checkpoint.weights, checkpoint.path)
    model = Transformer(config, tokenizer.source_size, tokenizer.target_size)
    model.load_state_dict(checkpoint.weights)
    return model.to(device).eval(), tokenizer


def _shapes(config: ModelConfig, tokenizer: Tokenizer, checkpoint: Checkpoint) -> dict[str, torch.Size]:
    """The parameters of a model that has not been built: its settings may ask for more than any memory holds."""
    try:
        if config.layers > len(checkpoint.weights):
            raise ValueError(f"{config.layers} layers")
        with torch.device("meta"):
            model = Transformer(config, tokenizer.source_size, tokenizer.target_size)
    except (RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise UserError(
            f"{checkpoint.path / 'config.yaml'} describes a model that its weights cannot be of "
            f"({str(error).partition(chr(10))[0]}): restore it or use another checkpoint"
        ) from error
    return {name: weight.shape for name, weight in model.state_dict().items()}


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Which sentences to take together: longest first, at most `budget` word pieces unless one alone has more.

    Empty sentences are in no batch.
    """
    batch: list[int] = []
    cost = 0
    for index in sorted((index for index, length in enumerate(lengths) if length), key=lambda index: -lengths[index]):
        own = max(lengths[index], LEAST_COST)
        if batch and cost + own > budget:
            yield batch
            batch, cost = [], 0
        batch.append(index)
        cost += own
    if batch:
        yield batch


@contextmanager
def _evaluating(models: Sequence[Transformer]) -> Iterator[None]:
    """Switch dropout off, and back on for a model that is being trained."""
    training = [model for model in models if model.training]
    for model in training:
        model.eval()
    try:
        yield
    finally:
        for model in training:
            model.train()


def _warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
