"""The search that the settings describe: beam search or sampling, under the constraints of each sentence."""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Choose, Hypothesis, NextTokenScorer, beam_search
from nmt.decoding.beginnings import Spellings, finish_words, force_prefixes, spellings_of
from nmt.decoding.constraints import Constraints
from nmt.decoding.controls import at_least, without_repeats, without_unknown
from nmt.decoding.diverse import diverse_beam_search
from nmt.decoding.noise import noisy_scorer
from nmt.decoding.sampling import sample
from nmt.decoding.terms import RequiredTerms, distinct_tokens
from nmt.errors import UserError


class ConfiguredSearch:
    """Searches with the settings, for any next-token scorer."""

    def __init__(self, config: DecodingConfig, vocabulary: Sequence[str], device: torch.device) -> None:
        """Take the target vocabulary, and the device of the scores."""
        self.config = config
        self.vocabulary = vocabulary
        self.device = device

    def __call__(
        self, scorer: NextTokenScorer, max_lengths: Tensor, constraints: Sequence[Constraints], seeds: Tensor
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each sentence, which keep its constraints.

        Args:
            scorer: scores the next tokens. With `groups` above 1, each sentence stands that many times in the batch.
            max_lengths: (B,) longest translation of each sentence.
            constraints: the constraints of each sentence.
            seeds: (B,) the seed of each sentence, for sampling and noise.
        """
        config = self.config
        with_terms = any(each.terms for each in constraints)
        if with_terms and config.strategy != "beam":
            raise UserError("terms need a beam: samples cannot have them")
        scorer = self._begun(self._controlled(scorer, max_lengths, constraints), constraints)
        if config.strategy == "sample":
            return sample(scorer, max_lengths, config, seeds)
        if config.noise:
            scorer = noisy_scorer(scorer, seeds, config.noise)
        choose: Choose | None = None
        width = config.beam // config.groups
        if with_terms:
            terms = RequiredTerms([each.terms for each in constraints], max_lengths, self._spellings.after_word, width)
            scorer, choose = terms.wrap(scorer), terms.choose
        if config.groups == 1:
            return beam_search(scorer, max_lengths, beam=width, alpha=config.alpha, nbest=config.nbest, choose=choose)
        return diverse_beam_search(
            scorer,
            max_lengths,
            beam=width,
            alpha=config.alpha,
            nbest=config.nbest,
            groups=config.groups,
            diversity=config.diversity,
            choose=choose,
        )

    def _controlled(
        self, scorer: NextTokenScorer, max_lengths: Tensor, constraints: Sequence[Constraints]
    ) -> NextTokenScorer:
        """Return a scorer that forbids what the settings forbid."""
        if self.config.suppress_unknown:
            scorer = without_unknown(scorer)
        if self.config.min_length:
            scorer = at_least(scorer, self.config.min_length, max_lengths)
        if self.config.no_repeat_ngram:
            exempt = distinct_tokens([each.terms for each in constraints], max_lengths.device)
            scorer = without_repeats(scorer, self.config.no_repeat_ngram, exempt)
        return scorer

    def _begun(self, scorer: NextTokenScorer, constraints: Sequence[Constraints]) -> NextTokenScorer:
        """Return a scorer that forces the beginnings of the sentences."""
        if any(each.last_word or each.word_ends for each in constraints):
            scorer = finish_words(
                scorer,
                self._spellings,
                [len(each.forced) for each in constraints],
                ["".join(self.vocabulary[token] for token in each.last_word) for each in constraints],
                [each.word_ends for each in constraints],
            )
        if any(each.forced for each in constraints):
            scorer = force_prefixes(scorer, [each.forced for each in constraints], self.device)
        return scorer

    @cached_property
    def _spellings(self) -> Spellings:
        return spellings_of(tuple(self.vocabulary), self.device)
