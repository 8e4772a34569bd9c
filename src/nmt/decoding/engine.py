"""Translate and score lines of text. Validation, evaluation and `nmt translate` all decode with an engine."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from itertools import count, islice, repeat
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from tqdm import tqdm

from nmt.compute.workers import in_parallel
from nmt.config.decoding import MBR, DecodingConfig
from nmt.decoding.attention import align
from nmt.decoding.batches import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, DecodingPlan, batches_by_length
from nmt.decoding.beam import Hypothesis
from nmt.decoding.constraints import UNCONSTRAINED, ConstraintEncoder, Constraints
from nmt.decoding.risk import rank_by_chrf
from nmt.decoding.translation import Candidate, Likelihood, Request, ScoredToken, Translation
from nmt.errors import UserError
from nmt.text.alignments import Link
from nmt.text.glossary import Glossary
from nmt.text.lines import blocks
from nmt.text.special import EOS
from nmt.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from nmt.decoding.attention import Weights

WINDOW_LINES = 2048
"""The largest number of lines to read ahead, so that sentences of similar length are decoded together."""
WINDOW_CHARACTERS = 1 << 22
"""The largest number of characters to read ahead."""
Done = Callable[[int], object]
"""Called with the number of sentences that have just been finished."""


class Engine(ABC):
    """Translates and scores lines. Subclasses search and score one batch of token ids."""

    name: str
    """Its name in records; that of an engine which commands can choose is the value of the setting `engine`."""
    device: torch.device
    """The device on which it runs."""
    shows_attention: ClassVar[bool] = False
    """Whether it shows the attention of a translation to its source."""
    guided = False
    """Whether a head of the model has learned word alignments: see `nmt.decoding.attention`."""
    same_batches = False
    """Whether the result must not depend, in any digit, on the number of cores of a CPU."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        config: DecodingConfig,
        max_source_tokens: int = MAX_SOURCE_TOKENS,
        max_target_tokens: int = sys.maxsize,
    ) -> None:
        """Set the largest number of tokens in a source and a target sentence, EOS included."""
        self.tokenizer, self.config = tokenizer, config
        self.max_source_tokens = max_source_tokens
        self.max_target_tokens = min(max_target_tokens, MAX_TARGET_TOKENS)
        self._encoders: dict[str, ConstraintEncoder] = {}

    def with_search(self, config: DecodingConfig, seed: int) -> Self:
        """Return an engine with the same model and other settings; both may translate at the same time."""
        engine = copy(self)
        engine.config = config
        engine.prepare_search(seed)
        return engine

    def prepare_search(self, seed: int) -> None:
        """Make and read what the settings of the search ask for."""
        config, self.seed = self.config, seed
        if config.alignments and not self.shows_attention:
            raise UserError("only engine=torch aligns words: choose it, or leave decoding.alignments off")
        if config.terms not in self._encoders:  # once for all searches of a server
            glossary = Glossary.read(config.terms)
            self._encoders[config.terms] = ConstraintEncoder(self.tokenizer, glossary, self.max_target_tokens)

    @abstractmethod
    def search(self, sources: list[list[int]], constraints: list[Constraints]) -> list[list[Hypothesis]]:
        """Return what `config.search` finds for each source of a batch.

        Sources end with EOS, hypotheses keep the constraints. A sentence without finite scores has no hypotheses.
        """

    @abstractmethod
    def label_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        """Return the log-probability of each token of each target of a batch; sources and targets end with EOS."""

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> "list[Weights]":
        """Return the attention of each target of a batch, which begins with BOS, to its source, which ends with EOS."""
        raise NotImplementedError(f"engine={self.name} shows no attention")

    def plan(self, lengths: Sequence[int]) -> DecodingPlan:
        """Divide sentences of these lengths into batches, and choose how to run `search` over them."""
        return DecodingPlan(list(batches_by_length(lengths, self.config.batch_tokens)))

    def translate(
        self,
        lines: Iterable[str | Request],
        *,
        window: int = WINDOW_LINES,
        numbers: Iterable[int] | None = None,
        token_scores: bool = False,
        done: Done = lambda count: None,
    ) -> Iterator[Translation]:
        """Yield the translation of each line, in order.

        Args:
            lines: the text. An empty line stays empty; a line that is too long is truncated, with a warning.
            window: lines to read ahead.
            numbers: line numbers for warnings, if not 1, 2, 3, ...
            token_scores: whether to fill `Candidate.tokens`; the translations are then scored once more.
            done: called after each batch.
        """
        line_numbers, encode = iter(numbers or count(1)), self._encoders[self.config.terms].encode
        requests = (line if isinstance(line, Request) else Request(line) for line in lines)
        for block in blocks(requests, window, lambda request: len(request.text), WINDOW_CHARACTERS):
            # A line of white space counts as empty, even if the tokenizer would return tokens for it.
            sources = self.tokenizer.encode_input([each.text if each.text.strip() else "" for each in block])
            block_numbers = islice(line_numbers, len(block))
            found = self.translate_ids(sources, encode(block), numbers=block_numbers, done=done)
            owners = [index for index, hypotheses in enumerate(found) for _ in hypotheses]
            listed = [each for hypotheses in found for each in hypotheses]
            texts = [self.tokenizer.decode(each.tokens) for each in listed]
            tokens: Iterable[tuple[ScoredToken, ...]] = repeat(())
            if token_scores:
                tokens = self._scored_tokens([sources[index] for index in owners], listed)
            links: Iterable[tuple[Link, ...]] = repeat(())
            if self.config.alignments:
                links = align(self, [block[index].text for index in owners], texts)
            candidates = map(_candidate, listed, texts, tokens, links)
            for hypotheses in found:
                yield Translation(list(islice(candidates, len(hypotheses))))

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        constraints: Sequence[Constraints] | None = None,
        *,
        numbers: Iterable[int] | None = None,
        done: Done = lambda count: None,
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each source sentence, which keep its constraints. No id is a special one.

        This is what `translate` does between encoding and decoding text. An empty sentence has one empty hypothesis,
        found without the model.
        """
        sentences = [self._finish_source(*each) for each in zip(sources, numbers or count(1), strict=False)]
        results = [[Hypothesis([], 0.0, 0.0)] for _ in sentences]
        done(sum(not sentence for sentence in sentences))

        def search(batch: list[int]) -> list[list[Hypothesis]]:
            batch_constraints = [constraints[index] if constraints else UNCONSTRAINED for index in batch]
            batch_sources = [sentences[index] for index in batch]
            found = self.search(batch_sources, batch_constraints)
            if self.config.strategy != MBR:
                return found
            return [rank_by_chrf(each, self.tokenizer.decode, self.config.nbest) for each in found]

        batches, workers = self.plan([len(sentence) for sentence in sentences])
        with closing(in_parallel(search, batches, workers)) as finished:
            for batch, found in finished:
                if not all(found):
                    raise UserError(
                        "the model gives no finite scores, so its training has diverged: use an earlier checkpoint, "
                        "and continue training from it with a lower learning rate; or, if decoding.* forbids or "
                        "requires words, no translation is left: lower one of these settings"
                    )
                for index, hypotheses in zip(batch, found, strict=True):
                    results[index] = hypotheses
                done(len(batch))
        return results

    def score(
        self, sources: Sequence[str], targets: Sequence[str], done: Done = lambda count: None
    ) -> list[Likelihood]:
        """Return how probable each target line is as the translation of its source line.

        Only the beginning of a sentence that is too long counts, with a warning.
        """
        sides = self.tokenizer.encode_input(sources), self.tokenizer.encode_target(targets)
        limits = self.max_source_tokens - 1, self.max_target_tokens - 1
        for name, ids, limit in zip(("source", "target"), sides, limits, strict=True):
            if cut := sum(len(each) > limit for each in ids):
                _warn(f"{cut:,} {name} sentences have more than {limit:,} tokens: only their beginnings are scored")
        return [Likelihood(sum(each), len(each)) for each in self.token_scores(*sides, done=done)]

    def token_scores(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], done: Done = lambda count: None
    ) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target sentence and of its EOS, given its source sentence.

        Sources and targets have no special ids; sentences that are too long are truncated.
        """
        source_ids = [[*ids[: self.max_source_tokens - 1], EOS] for ids in sources]
        target_ids = [[*ids[: self.max_target_tokens - 1], EOS] for ids in targets]
        lengths = [max(len(source), len(target)) for source, target in zip(source_ids, target_ids, strict=True)]
        results: list[list[float]] = [[] for _ in lengths]
        for batch in batches_by_length(lengths, self.config.batch_tokens):
            found = self.label_scores([source_ids[index] for index in batch], [target_ids[index] for index in batch])
            for index, scores in zip(batch, found, strict=True):
                results[index] = scores
            done(len(batch))
        return results

    def _scored_tokens(
        self, sources: Sequence[Sequence[int]], found: Sequence[Hypothesis]
    ) -> list[tuple[ScoredToken, ...]]:
        """Return the tokens of hypotheses with their scores, which takes one more pass over the translations."""
        scores = self.token_scores(sources, [each.tokens for each in found])
        pieces = [self.tokenizer.target_pieces(each.tokens) for each in found]
        # The score of EOS, the last one, belongs to no piece.
        return [tuple(map(ScoredToken, *each)) for each in zip(pieces, scores, strict=True)]

    def _finish_source(self, source: Sequence[int], line: int) -> list[int]:
        """Append EOS to a source sentence, and cut the sentence if it is too long; leave an empty one empty."""
        limit = self.max_source_tokens - 1
        if len(source) > limit:
            _warn(
                f"line {line} has {len(source):,} tokens, more than the {limit:,} that this model translates: "
                "the rest is left out; split the line into sentences"
            )
        return [*source[:limit], EOS] if source else []


def _candidate(
    hypothesis: Hypothesis, text: str, tokens: tuple[ScoredToken, ...], alignment: tuple[Link, ...]
) -> Candidate:
    mean = hypothesis.log_probability / (len(hypothesis.tokens) + 1)
    return Candidate(text, hypothesis.score, mean, tokens, alignment)


def _warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
