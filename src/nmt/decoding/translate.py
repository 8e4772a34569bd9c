"""Lines in, translations out: what validation, evaluation and `nmt translate` all decode with."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice

import torch
from tqdm import tqdm

from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.beam import Hypothesis, beam_search, ensemble
from nmt.errors import UserError
from nmt.model.packed import Packed
from nmt.model.transformer import Transformer
from nmt.runs.checkpoints import Checkpoint, check_weights
from nmt.text.special import EOS
from nmt.text.tokenizer import Tokenizer

WINDOW = 2048
"""Lines to look ahead, so that sentences of like length are decoded together."""
LONGEST_SOURCE = 1024
"""Most word pieces of a line, its end mark included, that are translated; learned positions may know fewer."""
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


class Translator:
    """Translates with a model, or with several as an ensemble."""

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        config: DecodingConfig,
        device: torch.device,
        precision: torch.dtype = torch.float32,
    ) -> None:
        """Take models that are on `device` already; `precision` is what they compute in."""
        self.models = models
        self.tokenizer = tokenizer
        self.config = config
        self.device = device
        self.precision = precision
        known = [model.config.max_positions for model in models if model.config.positions == "learned"]
        self.longest_source = min([LONGEST_SOURCE, *known])
        self.longest_target = min(known, default=sys.maxsize)

    def translate(
        self,
        lines: Iterable[str],
        *,
        window: int = WINDOW,
        numbers: Iterable[int] | None = None,
        done: Done = lambda count: None,
    ) -> Iterator[Translation]:
        """Translate line by line, in order.

        Args:
            lines: the text; an empty line stays empty, and one too long is cut with a warning.
            window: lines to look ahead.
            numbers: what a warning calls the lines, where that is not 1, 2, 3, ...
            done: told of each batch's end.
        """
        lines, numbers = iter(lines), iter(numbers or count(1))
        while block := list(islice(lines, window)):
            # A line of spaces is empty, whatever a tokenizer would make of it.
            sources = self.tokenizer.encode_source([line if line.strip() else "" for line in block])
            for hypotheses in self.translate_ids(sources, numbers=islice(numbers, len(block)), done=done):
                yield Translation([Candidate(self.tokenizer.decode(each.tokens), each.score) for each in hypotheses])

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        *,
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
            found = self._search([sentences[index] for index in batch])
            for index, hypotheses in zip(batch, found, strict=True):
                results[index] = hypotheses
            done(len(batch))
        return results

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Where the models are looked at: no dropout, no gradients, the chosen precision."""
        autocast = torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32)
        with _evaluating(self.models), torch.no_grad(), autocast:
            try:
                yield
            except torch.OutOfMemoryError as error:
                raise UserError("the device has too little memory to decode: lower decoding.batch_tokens") from error

    def _complete(self, source: Sequence[int], line: int) -> list[int]:
        """A source sentence with its end mark, cut where it is too long; empty where it is empty."""
        room = self.longest_source - 1
        if len(source) > room:
            _warn(
                f"line {line} has {len(source):,} word pieces, more than the {room:,} that this model translates: "
                "the rest is left out; split it into sentences"
            )
        return [*source[:room], EOS] if source else []

    def _search(self, sentences: list[list[int]]) -> list[list[Hypothesis]]:
        """Translate a batch."""
        source = Packed.from_sentences(sentences).to(self.device)
        longest = (source.lengths.to(torch.int64) + self.config.extra_length).clamp(max=self.longest_target)
        with self.computing():
            capacity = int(longest.max())
            steps = [partial(model.advance, state=model.start(source, capacity)) for model in self.models]
            found = beam_search(
                ensemble(steps), longest, beam=self.config.beam, alpha=self.config.alpha, nbest=self.config.nbest
            )
        if not all(found):
            raise UserError(
                "the model gives no finite scores, so its training has diverged: use an earlier checkpoint, "
                "and train on from there with a lower learning rate"
            )
        return found


def load_model(checkpoint: Checkpoint, config: ModelConfig, device: torch.device) -> tuple[Transformer, Tokenizer]:
    """The model and the tokenizer of a checkpoint, given the settings of the model that it holds."""
    tokenizer = Tokenizer.load(checkpoint.tokenizer_folder)
    if config.tie_embeddings and not tokenizer.joint:
        raise UserError(
            f"{checkpoint.path} has a vocabulary for each language, but its model shares one: "
            "its tokenizer is that of another run; put the right one back or use another checkpoint"
        )
    model = Transformer(config, tokenizer.source_size, tokenizer.target_size)
    shapes = {name: weight.shape for name, weight in model.state_dict().items()}
    check_weights(shapes, checkpoint.weights, checkpoint.path)
    model.load_state_dict(checkpoint.weights)
    return model.to(device).eval(), tokenizer


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
