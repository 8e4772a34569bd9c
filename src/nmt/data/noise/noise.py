"""Noise on the training text, decided by (seed, epoch, sentence) alone.

To add a kind of noise, write a function from pairs to pairs, add it to `KINDS` and its setting to the schema.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nmt.config.data import NoiseConfig
from nmt.config.tree import Config
from nmt.data.batches import IntArray
from nmt.data.noise.bpe_dropout import bpe_dropout
from nmt.data.noise.draws import Draws, uniform
from nmt.data.noise.merges import Merges
from nmt.data.noise.sentences import Flags, NoisyPairs, Sentences
from nmt.data.store import SOURCE, TARGET, Pairs, PairStore, in_memory
from nmt.errors import UserError
from nmt.text.sentencepiece_model import BPE, USER_DEFINED, model_type, read_pieces
from nmt.text.special import UNK
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

Change = Callable[[NoisyPairs], NoisyPairs]
"""Returns pairs with noise."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Changes the training text of a global batch."""

    changes: tuple[Change, ...]
    """The kinds of noise, in the order in which they are applied."""
    seed: int
    max_pieces: int
    """A kind of noise that makes a side longer than this is left out for the pair, which keeps the kinds before it."""
    is_tag: Flags
    """Whether a piece of the source vocabulary is a symbol, such as the tag of a corpus, which noise leaves alone."""

    def __call__(self, text: Pairs, pairs: IntArray, epoch: int) -> PairStore:
        """Return some pairs of the training text, changed and in their order; sides may become longer.

        The result is a function of the arguments alone, so that a resumed run, and each of several processes, gets the
        same text.
        """
        source, target = (Sentences.of_ids(*text.gather(side, pairs, sys.maxsize)) for side in (SOURCE, TARGET))
        untagged, tags = self._without_tags(source)
        noisy = NoisyPairs(untagged, target, Draws(self.seed, epoch, pairs))
        for change in self.changes:
            after = change(noisy)
            too_long = np.maximum(after.source.lengths + tags.lengths, after.target.lengths) > self.max_pieces
            noisy = after.replaced(noisy, too_long) if too_long.any() else after
        source, target = noisy.source.after(tags), noisy.target
        return in_memory((source.tokens, source.lengths), (target.tokens, target.lengths))

    def _without_tags(self, source: Sentences) -> tuple[Sentences, Sentences]:
        """Divide sentences into the text, and the tags at their starts, which say where the text comes from."""
        tagged = source.lengths > 0
        tagged[tagged] = self.is_tag[source.tokens[source.starts()[tagged]]]
        places = source.starts()[tagged]
        text = Sentences(np.delete(source.tokens, places), source.lengths - tagged)
        return text, Sentences(source.tokens[places], tagged.astype(np.int64))


def noise_of(config: Config, tokenizer: Tokenizer) -> Noise | None:
    """Return the noise that the settings of a run ask for; None if it is all off."""
    return make_noise(config.noise, tokenizer, config.seed, config.data.max_pieces)


def make_noise(config: NoiseConfig, tokenizer: Tokenizer, seed: int, max_pieces: int) -> Noise | None:
    """Return the noise that the settings ask for; None if it is all off."""
    changes = tuple(change for make in KINDS if (change := make(config, tokenizer)) is not None)
    if not changes:
        return None
    pieces = read_pieces(tokenizer.contents[0], "the tokenizer of the source side")
    return Noise(changes, seed, max_pieces, np.array([piece.kind == USER_DEFINED for piece in pieces]))


def _bpe_dropout(config: NoiseConfig, tokenizer: Tokenizer) -> Change | None:
    source_share, target_share = config.bpe_dropout_source, config.bpe_dropout_target
    if not source_share and not target_share:
        return None
    source_model, target_model = tokenizer.contents
    source_merges = _merges(source_model, "source") if source_share else None
    same = source_merges is not None and source_model == target_model
    target_merges = source_merges if same else _merges(target_model, "target") if target_share else None

    def changed(pairs: NoisyPairs) -> NoisyPairs:
        source, target = pairs.source, pairs.target
        if source_merges is not None:
            source = bpe_dropout(source, source_merges, source_share, pairs.draws.keys("source pieces"))
        if target_merges is not None and target_share:
            target = bpe_dropout(target, target_merges, target_share, pairs.draws.keys("target pieces"))
        return replace(pairs, source=source, target=target)

    return changed


def _merges(model: bytes, side: str) -> Merges:
    if model_type(model) != BPE:
        raise UserError(
            f"noise.bpe_dropout_{side} needs a BPE tokenizer, and that of the {side} side is of another type: "
            f"prepare the data with tokenizer.model_type=bpe, or set noise.bpe_dropout_{side}=0"
        )
    return Merges.of(read_pieces(model, f"the tokenizer of the {side} side"))


def _word_dropout(config: NoiseConfig, tokenizer: Tokenizer) -> Change | None:
    if not config.word_dropout:
        return None
    begins_word = np.array([piece.startswith(SPACE_MARK) for piece in tokenizer.vocabularies[0]])

    def changed(pairs: NoisyPairs) -> NoisyPairs:
        source = pairs.source
        starts = source.word_starts(begins_word)
        owners = source.numbers()[starts]
        words = np.arange(len(starts)) - np.searchsorted(owners, owners)
        dropped = uniform(pairs.draws.keys("words")[owners], words) < config.word_dropout
        lengths = np.diff(np.append(starts, len(source.tokens)))
        tokens = np.where(np.repeat(dropped, lengths), UNK, source.tokens)
        return replace(pairs, source=Sentences(tokens, source.lengths))

    return changed


KINDS: tuple[Callable[[NoiseConfig, Tokenizer], Change | None], ...] = (_bpe_dropout, _word_dropout)
"""All kinds of noise, in the order in which they are applied; each returns None if the settings leave it off."""
