"""Random changes of the training text, drawn anew in each epoch, and decided by (seed, epoch, sentence) alone.

BPE-dropout (Provilkov et al., 2020) splits words into pieces anew, leaving out merges at random. SentencePiece samples
too, but a merge that it leaves out never comes back: at 0.1 it made 1.31 times as many pieces of Tatoeba's German as
BPE, and the algorithm of the paper 1.15 times as many. Its random numbers have one seed for the whole process, and it
needs the text, of which unknown characters are lost in the ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from nmt.config.data import NoiseConfig
from nmt.data.batches import IntArray
from nmt.data.store import SIDES, Pairs, PairStore, in_memory, take
from nmt.errors import UserError
from nmt.text.sentencepiece_model import BPE, NORMAL, USER_DEFINED, Piece, model_type, read_pieces
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

Keys = npt.NDArray[np.uint64]
"""A key per sentence, from which its random numbers are made."""
Flags = npt.NDArray[np.bool_]

STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64, whose output function mixes the bits."""
STEP_SHIFT = 32
"""The counter of a random number is the step of BPE, shifted by this, plus the place of the left symbol."""
NO_MERGE = np.iinfo(np.int64).max
"""The rank of two symbols that cannot be merged."""


class Sentences(NamedTuple):
    """One side of some pairs."""

    tokens: IntArray
    """The ids of all sentences, one after the other, without special ones; 64-bit for computations."""
    lengths: IntArray

    @classmethod
    def of(cls, ids: IntArray, lengths: IntArray) -> "Sentences":
        """Return sentences whose ids are concatenated."""
        return cls(ids.astype(np.int64), lengths)

    def starts(self) -> IntArray:
        """Return the index at which each sentence starts."""
        return np.cumsum(self.lengths) - self.lengths

    def owners(self) -> IntArray:
        """Return for each token the number of its sentence."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def word_starts(self, begins_word: Flags) -> IntArray:
        """Return the indices of the tokens that begin a word, given which tokens of the vocabulary do."""
        starts = begins_word[self.tokens]
        starts[self.starts()[self.lengths > 0]] = True
        return np.flatnonzero(starts)

    def replaced(self, others: "Sentences", chosen: Flags) -> "Sentences":
        """Return these sentences with the chosen ones replaced by others."""
        lengths = np.where(chosen, others.lengths, self.lengths)
        starts = np.where(chosen, len(self.tokens) + others.starts(), self.starts())
        return Sentences(take(np.concatenate((self.tokens, others.tokens)), starts, lengths), lengths)


@dataclass(frozen=True, slots=True)
class Noise:
    """Changes the training text of a global batch."""

    bpe_dropout: float
    seed: int
    max_pieces: int
    """It is left out for a pair of which it makes a side longer than this."""
    merges: "tuple[Merges, Merges]"
    """Those of the source and of the target side."""
    is_tag: Flags
    """Whether a piece of the source vocabulary is a symbol, such as the tag of a corpus, which noise leaves alone."""

    def __call__(self, text: Pairs, pairs: IntArray, epoch: int) -> PairStore:
        """Return some pairs of the training text, changed and in their order; sides may become longer.

        The result is a function of the arguments alone, so that a resumed run, and each of several processes, gets the
        same text.
        """
        clean, target = (Sentences.of(*text.gather(side, pairs)) for side in SIDES)
        tagged = clean.lengths > 0
        tagged[tagged] = self.is_tag[clean.tokens[clean.starts()[tagged]]]
        tags = clean.tokens[clean.starts()[tagged]]
        clean = Sentences(np.delete(clean.tokens, clean.starts()[tagged]), clean.lengths - tagged)
        source, noisy = (
            bpe_dropout(side, merges, self.bpe_dropout, keys_of(self.seed, epoch, pairs, f"{name} pieces"))
            for name, side, merges in zip(("source", "target"), (clean, target), self.merges, strict=True)
        )
        too_long = np.maximum(source.lengths + tagged, noisy.lengths) > self.max_pieces
        if too_long.any():
            source, noisy = source.replaced(clean, too_long), noisy.replaced(target, too_long)
        tokens = np.insert(source.tokens, source.starts()[tagged], tags)
        return in_memory((tokens, source.lengths + tagged), noisy)


def make_noise(config: NoiseConfig, tokenizer: Tokenizer, seed: int, max_pieces: int) -> Noise | None:
    """Return the noise that the settings ask for; None if it is off."""
    if not config.bpe_dropout:
        return None
    if any(model_type(model) != BPE for model in tokenizer.contents):
        raise UserError(
            "noise.bpe_dropout needs a BPE tokenizer, and that of the data is of another type: prepare the data with "
            "tokenizer.model_type=bpe, or set noise.bpe_dropout=0"
        )
    source, target = map(read_pieces, tokenizer.contents)
    is_tag = np.array([piece.kind == USER_DEFINED for piece in source])
    return Noise(config.bpe_dropout, seed, max_pieces, (Merges.of(source), Merges.of(target)), is_tag)


def keys_of(seed: int, epoch: int, sentences: IntArray, kind: str) -> Keys:
    """Return a key for a kind of noise, given the number of each sentence in the corpus."""
    (start,) = np.random.SeedSequence([seed, epoch, crc32(kind.encode())]).generate_state(1, np.uint64)
    return _mixed(start + sentences.astype(np.uint64) * STRIDE)


def uniform(keys: Keys, counters: IntArray) -> npt.NDArray[np.floating[Any]]:
    """Return a random number, at least 0 and below 1, for each key with its counter."""
    numbers = _mixed(keys + counters.astype(np.uint64) * STRIDE)
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(numbers: Keys) -> Keys:
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class Merges:
    """The merges of a BPE model: which symbols can be merged, and which merge comes first.

    Like SentencePiece, it merges any two neighbours whose text together is a piece; pieces with higher scores first.
    """

    pairs: IntArray
    """left * vocabulary + right of each merge, in ascending order."""
    ranks: IntArray
    """The rank of each of these merges: lower ranks come first."""
    merged: IntArray
    """The piece that a merge of each rank makes."""
    characters: Sentences
    """The ids of the characters of each piece; a piece that is not split is its own only character."""
    begins_word: Flags
    """Whether a piece begins with the mark of a space."""

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> "Merges":
        """Return the merges of a BPE model with these pieces."""
        ids = {piece.text: index for index, piece in enumerate(pieces) if piece.kind == NORMAL}
        long = [index for text, index in ids.items() if len(text) > 1]
        by_score = sorted(long, key=lambda index: -pieces[index].score)
        ranks = {}
        for rank, index in enumerate(by_score):
            text = pieces[index].text
            for place in range(1, len(text)):
                left, right = ids.get(text[:place]), ids.get(text[place:])
                if left is not None and right is not None:
                    ranks[left * len(pieces) + right] = rank
        pairs = np.array(sorted(ranks), np.int64)
        characters = [
            [ids[each] for each in piece.text]
            if piece.kind == NORMAL and all(each in ids for each in piece.text)
            else [index]  # it is special, or has characters without a piece
            for index, piece in enumerate(pieces)
        ]
        return cls(
            pairs,
            np.array([ranks[pair] for pair in pairs.tolist()], np.int64),
            np.array(by_score, np.int64),
            Sentences(np.concatenate(characters), np.array(list(map(len, characters)))),
            np.array([piece.text.startswith(SPACE_MARK) for piece in pieces]),
        )

    def rank(self, left: IntArray, right: IntArray) -> IntArray:
        """Return the rank of the merge of each left with its right symbol; NO_MERGE if there is none."""
        if not len(self.pairs):
            return np.full(len(left), NO_MERGE)
        wanted = left * len(self.begins_word) + right
        places = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        return np.where(self.pairs[places] == wanted, self.ranks[places], NO_MERGE)


def bpe_dropout(sentences: Sentences, merges: Merges, share: float, keys: Keys) -> Sentences:
    """Return the sentences in other pieces.

    Each word begins as characters. At each step, each possible merge is left out with probability `share`, and the
    first of the others, by rank and then from the left, is done. The word is finished when there is no other.

    Args:
        sentences: The sentences, in any pieces of the vocabulary.
        merges: The merges of the vocabulary.
        share: The probability with which a merge is left out.
        keys: The key of each sentence's random numbers.
    """
    counts = merges.characters.lengths[sentences.tokens]
    symbols = take(merges.characters.tokens, merges.characters.starts()[sentences.tokens], counts)
    owners = np.repeat(sentences.owners(), counts)
    places = np.arange(len(symbols)) - np.searchsorted(owners, owners)
    words = _Words(symbols, (np.cumsum(counts) - counts)[sentences.word_starts(merges.begins_word)], merges)
    pieces = np.full(len(symbols), -1)
    step = 0
    while len(words.symbols):
        possible = np.flatnonzero(words.ranks != NO_MERGE)
        origins = words.origins[possible]
        draws = uniform(keys[owners[origins]], places[origins] + (step << STEP_SHIFT))
        finished, found = words.merge_first(possible[draws >= share])
        pieces[finished] = found
        step += 1
    kept = pieces >= 0
    return Sentences(pieces[kept], np.bincount(owners[kept], minlength=len(sentences.lengths)))


class _Words:
    """The symbols of the words that are not finished, one word after the other."""

    def __init__(self, symbols: IntArray, starts: IntArray, merges: Merges) -> None:
        """Begin with the characters of words, which start at the indices `starts`."""
        self._merges = merges
        self.symbols = symbols
        self.origins = np.arange(len(symbols))
        """The index of the first character of each symbol."""
        self._starts = starts
        self._lengths = np.diff(np.append(starts, len(symbols)))
        self.ranks = np.append(merges.rank(symbols[:-1], symbols[1:]), NO_MERGE)[: len(symbols)]
        """The rank of the merge of each symbol with the next one of its word."""
        self.ranks[self._starts[1:] - 1] = NO_MERGE

    def merge_first(self, possible: IntArray) -> tuple[IntArray, IntArray]:
        """Do the first of the possible merges in each word; return the origins and symbols of words without one.

        Args:
            possible: The indices of the left symbols of possible merges.
        """
        order = np.full(len(self.symbols), NO_MERGE)
        order[possible] = (self.ranks[possible] << 32) + possible
        first = np.minimum.reduceat(order, self._starts)
        goes_on = first != NO_MERGE
        finished = np.repeat(~goes_on, self._lengths)
        result = self.origins[finished], self.symbols[finished]
        merged = first[goes_on] & 0xFFFF_FFFF
        self.symbols[merged] = self._merges.merged[self.ranks[merged]]
        kept = ~finished
        kept[merged + 1] = False
        self._keep(kept, goes_on)
        self._rank_again((np.cumsum(kept) - 1)[merged])
        return result

    def _keep(self, kept: npt.NDArray[np.bool_], words: npt.NDArray[np.bool_]) -> None:
        """Remove all other symbols: all of the other words, and one of each of these words."""
        self.symbols, self.origins, self.ranks = self.symbols[kept], self.origins[kept], self.ranks[kept]
        self._lengths = self._lengths[words] - 1
        self._starts = np.cumsum(self._lengths) - self._lengths

    def _rank_again(self, merged: IntArray) -> None:
        """Find the ranks of the merges on both sides of the merged symbol of each word."""
        self.ranks[merged] = NO_MERGE
        after_first, before_last = merged > self._starts, merged < self._starts + self._lengths - 1
        lefts = np.concatenate((merged[after_first] - 1, merged[before_last]))
        self.ranks[lefts] = self._merges.rank(self.symbols[lefts], self.symbols[lefts + 1])
