"""Search a batch as the settings and the constraints of its sentences ask.

Each restriction is a function from one next-token scorer to another, so that any search can have it.

Shapes: B sentences in the batch, R rows as in `NextTokenScorer`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import NEVER, Hypothesis, NextTokenScorer, beam_search
from nmt.decoding.constraints import Constraints
from nmt.decoding.restrictions import at_least, without_repeats
from nmt.decoding.sampling import sample
from nmt.decoding.terms import RequiredTerms, distinct_tokens, tokens_after_word
from nmt.errors import UserError
from nmt.text.special import PAD


class SearchBatch(NamedTuple):
    """The sentences that are searched together. All members have each sentence as often as it is sampled, in a row."""

    sources: Sequence[Sequence[int]]
    """Token ids, which end with EOS."""
    max_lengths: Tensor
    """(B,) longest translations, EOS included."""
    constraints: Sequence[Constraints]
    seed: int = 1


WellFormed = Callable[[NextTokenScorer, SearchBatch], NextTokenScorer]
"""Returns a scorer under which every hypothesis is a tree over the words of the sentence."""


def search(
    scorer: NextTokenScorer,
    batch: SearchBatch,
    config: DecodingConfig,
    vocabulary: Sequence[str],
    well_formed: WellFormed | None = None,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence of a batch, given the vocabulary of the target language."""
    device, constraints = batch.max_lengths.device, batch.constraints
    if well_formed:
        scorer = well_formed(scorer, batch)
    if config.min_length:
        scorer = at_least(scorer, config.min_length, batch.max_lengths)
    if config.no_repeat_ngram:
        required = distinct_tokens([each.terms for each in constraints], device)
        scorer = without_repeats(scorer, config.no_repeat_ngram, required)
    if any(each.beginning for each in constraints):
        scorer = force_prefixes(scorer, [each.beginning for each in constraints], device)
    choose = None
    if any(each.terms for each in constraints):
        if config.strategy != "beam":
            raise UserError("terms need a beam: samples cannot have them")
        after_word = tokens_after_word(tuple(vocabulary), device)
        terms = RequiredTerms([each.terms for each in constraints], batch.max_lengths, after_word, config.beam)
        scorer, choose = terms.wrap(scorer), terms.choose
    if config.strategy == "sample":
        # The samples are the same for the same seed and batch, in whichever process and order batches are searched.
        seed = crc32(repr((batch.seed, batch.sources)).encode())
        return sample(scorer, batch.max_lengths, config, torch.Generator(device).manual_seed(seed))
    return beam_search(
        scorer, batch.max_lengths, beam=config.beam, alpha=config.alpha, nbest=config.nbest, choose=choose
    )


def force_prefixes(scorer: NextTokenScorer, prefixes: Sequence[Sequence[int]], device: torch.device) -> NextTokenScorer:
    """Return a scorer under which every sentence begins with its prefix, whose tokens have probability 1."""
    longest = max(map(len, prefixes))
    table = torch.tensor([[*prefix, *[PAD] * (longest - len(prefix))] for prefix in prefixes], device=device)
    sentences = torch.arange(len(prefixes), device=device)  # (R,) the sentence of each row
    length = 0

    def forced(tokens: Tensor, parents: Tensor) -> Tensor:
        nonlocal sentences, length
        scores = scorer(tokens, parents)
        if length < longest:
            sentences = sentences[parents]
            wanted = table[sentences, length][:, None]
            only_wanted = torch.full_like(scores, NEVER).scatter(1, wanted, 0.0)
            scores = scores.where(wanted == PAD, only_wanted)
            length += 1
        return scores

    return forced
