"""What translates lines, whatever it does so with."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from threading import Lock
from typing import NamedTuple

from tqdm import tqdm

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Hypothesis
from nmt.errors import UserError
from nmt.text.blocks import blocks
from nmt.text.special import EOS
from nmt.text.tokenizer import Tokenizer

WINDOW = 2048
"""Lines to look ahead, so that sentences of like length are decoded together."""
ROOM = 1 << 22
"""Characters to look ahead at most."""
MAX_SOURCE_TOKENS = 1024
"""Most word pieces of a line, its end mark included, that are translated; learned positions may know fewer."""
MAX_TARGET_TOKENS = 4096
"""Most word pieces of a translation, or of a prefix or a translation that is given."""
MIN_SENTENCE_COST = 16
"""Word pieces that a sentence counts at least: even a short one takes a beam's rows of the vocabulary."""

Done = Callable[[int], object]
"""Told how many more sentences are done."""
Search = Callable[[list[int]], list[list[Hypothesis]]]
"""Finds the best hypotheses of each sentence of a batch, given by its index."""
Take = Callable[[list[int], list[list[Hypothesis]]], None]
"""Told what was found for a batch."""


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
        longest_source: int = MAX_SOURCE_TOKENS,
        longest_target: int = sys.maxsize,
    ) -> None:
        """The longest are word pieces, end marks included."""
        self.tokenizer = tokenizer
        self.config = config
        self.longest_source = longest_source
        self.longest_target = min(longest_target, MAX_TARGET_TOKENS)

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
        lock = Lock()

        def search(batch: list[int]) -> list[list[Hypothesis]]:
            begun = prefixes and [prefixes[index][: self.longest_target - 1] for index in batch]
            return self.search([sentences[index] for index in batch], begun)

        def take(batch: list[int], found: list[list[Hypothesis]]) -> None:
            if not all(found):
                raise UserError(
                    "the model gives no finite scores, so its training has diverged: use an earlier checkpoint, "
                    "and train on from there with a lower learning rate"
                )
            for index, hypotheses in zip(batch, found, strict=True):
                results[index] = hypotheses
            with lock:
                done(len(batch))

        self.search_all(search, take, [len(sentence) for sentence in sentences])
        return results

    def search_all(self, search: Search, take: Take, lengths: Sequence[int]) -> None:
        """Have all sentences searched, in batches of their indices, given how long they are."""
        for batch in batches_by_length(lengths, self.config.batch_tokens):
            take(batch, search(batch))

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


def batches_by_length(lengths: Sequence[int], budget: int, most: int = sys.maxsize) -> Iterator[list[int]]:
    """Which sentences to take together, `most` at most: longest first, up to `budget` word pieces or one sentence.

    Empty sentences are in no batch.
    """
    batch: list[int] = []
    cost = 0
    for index in sorted((index for index, length in enumerate(lengths) if length), key=lambda index: -lengths[index]):
        own = max(lengths[index], MIN_SENTENCE_COST)
        if batch and (cost + own > budget or len(batch) == most):
            yield batch
            batch, cost = [], 0
        batch.append(index)
        cost += own
    if batch:
        yield batch


def _warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
