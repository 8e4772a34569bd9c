"""Translate and score lines of text. Validation, evaluation and `nmt translate` all decode with an engine."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple, Self

from tqdm import tqdm

from nmt.config.schema import DecodingConfig
from nmt.decoding.batches import DecodingPlan, batches_by_length, serial_plan
from nmt.decoding.beam import Hypothesis
from nmt.decoding.limits import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS
from nmt.errors import UserError
from nmt.text.blocks import blocks
from nmt.text.special import EOS
from nmt.text.tokenizer import Tokenizer

WINDOW_LINES = 2048
"""The largest number of lines to read ahead, so that sentences of similar length are decoded together."""
WINDOW_CHARACTERS = 1 << 22
"""The largest number of characters to read ahead."""

Done = Callable[[int], object]
"""Called with the number of sentences that have just been finished."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One translation of a line."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Translation:
    """The translations of a line, best first. An empty line has one, which is empty."""

    candidates: list[Candidate]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.candidates[0].text


class Likelihood(NamedTuple):
    """How probable a given translation is."""

    log_probability: float
    """Sum over its tokens."""
    tokens: int
    """Number of its tokens, EOS included."""


class Engine(ABC):
    """Translates and scores lines. Subclasses search and score one batch of token ids."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        config: DecodingConfig,
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        max_target_tokens: int = sys.maxsize,
    ) -> None:
        """Set the largest number of tokens in a source and a target sentence, EOS included."""
        self.tokenizer = tokenizer
        self.config = config
        self.max_source_tokens = max_source_tokens
        self.max_target_tokens = min(max_target_tokens, MAX_TARGET_TOKENS)

    def with_search(self, config: DecodingConfig, seed: int) -> Self:
        """Return an engine with the same model and other settings; both may translate at the same time."""
        engine = copy(self)
        engine.config = config
        return engine

    @abstractmethod
    def search(self, sources: list[list[int]], prefixes: list[list[int]] | None) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each source of a batch; sources end with EOS, hypotheses begin with prefixes.

        A sentence has no hypothesis if the model gives no finite scores.
        """

    @abstractmethod
    def likelihoods(self, sources: list[list[int]], targets: list[list[int]]) -> list[Likelihood]:
        """Return how probable each target of a batch is, given its source; all end with EOS."""

    def plan(self, lengths: Sequence[int]) -> DecodingPlan:
        """Divide sentences of these lengths into batches, and choose how to run `search` over them."""
        return serial_plan(lengths, self.config.batch_tokens)

    def translate(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] | None = None,
        window: int = WINDOW_LINES,
        numbers: Iterable[int] | None = None,
        done: Done = lambda count: None,
    ) -> Iterator[Translation]:
        """Yield the translation of each line, in order.

        Args:
            lines: the text. An empty line stays empty; a line that is too long is truncated, with a warning.
            prefixes: the beginning of each line's translation.
            window: lines to read ahead.
            numbers: line numbers for warnings, if not 1, 2, 3, ...
            done: called after each batch.
        """
        line_numbers = iter(numbers or count(1))
        prefix_lines = None if prefixes is None else iter(prefixes)
        for block in blocks(lines, window, len, WINDOW_CHARACTERS):
            # A line of spaces counts as empty, even if the tokenizer would return tokens for it.
            sources = self.tokenizer.encode_source([line if line.strip() else "" for line in block])
            encoded_prefixes = None if prefix_lines is None else self._encode_prefixes(prefix_lines, len(block))
            found = self.translate_ids(
                sources, prefixes=encoded_prefixes, numbers=islice(line_numbers, len(block)), done=done
            )
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
        """Return the best hypotheses of each source sentence. Sources and hypotheses have no special ids.

        This is what `translate` does between encoding and decoding text. An empty sentence has one empty hypothesis,
        found without the model.
        """
        sentences = [self._finish_source(*each) for each in zip(sources, numbers or count(1), strict=False)]
        results = [[Hypothesis([], 0.0, 0.0)] for _ in sentences]
        done(sum(not sentence for sentence in sentences))

        def search(batch: list[int]) -> list[list[Hypothesis]]:
            batch_prefixes = prefixes and [prefixes[index][: self.max_target_tokens - 1] for index in batch]
            return self.search([sentences[index] for index in batch], batch_prefixes)

        batches, executor = self.plan([len(sentence) for sentence in sentences])
        with closing(executor.run(search, batches)) as finished:
            for batch, found in finished:
                if not all(found):
                    raise UserError(
                        "the model gives no finite scores, so its training has diverged: use an earlier checkpoint, "
                        "and continue training from it with a lower learning rate"
                    )
                for index, hypotheses in zip(batch, found, strict=True):
                    results[index] = hypotheses
                done(len(batch))
        return results

    def score(
        self, sources: Sequence[str], targets: Sequence[str], done: Done = lambda count: None
    ) -> list[Likelihood]:
        """Return how probable each target line is as the translation of its source line.

        Only the beginning of a sentence that is too long counts.
        """
        source_ids = [[*ids[: self.max_source_tokens - 1], EOS] for ids in self.tokenizer.encode_source(sources)]
        target_ids = [[*ids[: self.max_target_tokens - 1], EOS] for ids in self.tokenizer.encode_target(targets)]
        lengths = [max(len(source), len(target)) for source, target in zip(source_ids, target_ids, strict=True)]
        results = [Likelihood(0.0, 0)] * len(lengths)
        for batch in batches_by_length(lengths, self.config.batch_tokens):
            found = self.likelihoods([source_ids[index] for index in batch], [target_ids[index] for index in batch])
            for index, likelihood in zip(batch, found, strict=True):
                results[index] = likelihood
            done(len(batch))
        return results

    def _encode_prefixes(self, prefixes: Iterator[str], lines: int) -> list[list[int]]:
        """Encode the prefixes of the next lines."""
        encoded = self.tokenizer.encode_target(list(islice(prefixes, lines)))
        if len(encoded) < lines:
            raise UserError("there are fewer prefixes than lines: give one prefix per line, which may be empty")
        return encoded

    def _finish_source(self, source: Sequence[int], line: int) -> list[int]:
        """Append EOS to a source sentence, and cut the sentence if it is too long; leave an empty one empty."""
        limit = self.max_source_tokens - 1
        if len(source) > limit:
            _warn(
                f"line {line} has {len(source):,} tokens, more than the {limit:,} that this model translates: "
                "the rest is left out; split the line into sentences"
            )
        return [*source[:limit], EOS] if source else []


def _warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
