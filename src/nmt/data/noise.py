"""BPE-dropout of the training text (Provilkov et al., 2020), decided by the seed and the place in the data alone.

It splits words into pieces anew in each epoch, leaving out merges at random. SentencePiece samples too, but a merge
that it leaves out never comes back: at 0.1 it made 1.31 times as many pieces of Tatoeba's German as BPE, and the
algorithm of the paper 1.15 times as many. It also needs the text, of which unknown characters are lost in the ids.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.data import NoiseConfig
from nmt.data.batches import IntArray
from nmt.data.store import SIDES, PairStore, in_memory, take
from nmt.errors import UserError
from nmt.text.sentencepiece_model import BPE, NORMAL, Piece, model_type, read_pieces
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

Flags = npt.NDArray[np.bool_]

NO_MERGE = np.iinfo(np.int64).max
"""The rank of two symbols that cannot be merged."""


class Sentences(NamedTuple):
    """One side of some pairs."""

    tokens: IntArray
    """The ids of all sentences, one after the other, without special ones; 64-bit for computations."""
    lengths: IntArray

    def starts(self) -> IntArray:
        """Return the index at which each sentence starts."""
        return np.cumsum(self.lengths) - self.lengths


Noise = Callable[[PairStore, IntArray, int, int], PairStore]
"""Returns the pairs of a global batch, changed and in their order, given the text, their numbers, the epoch and the
number of the batch in it."""


def make_noise(config: NoiseConfig, tokenizer: Tokenizer, seed: int, max_pieces: int) -> Noise | None:
    """Return the noise that the settings ask for; None if it is off.

    A batch is always changed in the same way, so that a resumed run, and each of several processes, gets the same text.
    Sides may become longer, but a pair of which one would have more than `max_pieces` stays as it is.
    """
    if not config.bpe_dropout:
        return None
    if any(model_type(model) != BPE for model in tokenizer.contents):
        raise UserError(
            "noise.bpe_dropout needs a BPE tokenizer, and that of the data is of another type: prepare the data with "
            "tokenizer.model_type=bpe, or set noise.bpe_dropout=0"
        )
    merges = [Merges.of(read_pieces(model)) for model in tokenizer.contents]

    def noise(text: PairStore, pairs: IntArray, epoch: int, batch: int) -> PairStore:
        random = np.random.default_rng([seed, epoch, batch])
        gathered = (text.gather(side, pairs) for side in SIDES)
        clean = [Sentences(ids.astype(np.int64), lengths) for ids, lengths in gathered]
        noisy = [bpe_dropout(*each, config.bpe_dropout, random) for each in zip(clean, merges, strict=True)]
        too_long = np.maximum(noisy[0].lengths, noisy[1].lengths) > max_pieces
        if too_long.any():
            noisy = [_choose(too_long, *sides) for sides in zip(clean, noisy, strict=True)]
        return in_memory(*noisy)

    return noise


def _choose(chosen: Flags, first: Sentences, second: Sentences) -> Sentences:
    """Return the sentences of the first where they are chosen, and of the second elsewhere."""
    lengths = np.where(chosen, first.lengths, second.lengths)
    starts = np.where(chosen, first.starts(), len(first.tokens) + second.starts())
    return Sentences(take(np.concatenate((first.tokens, second.tokens)), starts, lengths), lengths)


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
        by_score = sorted((index for text, index in ids.items() if len(text) > 1), key=lambda i: -pieces[i].score)
        ranks = {}
        for rank, index in enumerate(by_score):
            text = pieces[index].text
            for place in range(1, len(text)):
                left, right = ids.get(text[:place]), ids.get(text[place:])
                if left is not None and right is not None:
                    ranks[left * len(pieces) + right] = rank
        pairs = sorted(ranks)
        characters = [
            [ids[each] for each in piece.text]
            if piece.kind == NORMAL and all(each in ids for each in piece.text)
            else [index]  # it is special, or has characters without a piece
            for index, piece in enumerate(pieces)
        ]
        return cls(
            np.array(pairs, np.int64),
            np.array([ranks[pair] for pair in pairs], np.int64),
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


def bpe_dropout(sentences: Sentences, merges: Merges, share: float, random: np.random.Generator) -> Sentences:
    """Return the sentences in other pieces.

    Each word begins as characters. At each step, each possible merge is left out with probability `share`, and the
    first of the others, by rank and then from the left, is done. The word is finished when there is no other.

    Args:
        sentences: The sentences, in any pieces of the vocabulary.
        merges: The merges of the vocabulary.
        share: The probability with which a merge is left out.
        random: Decides which merges are left out.
    """
    tokens, of_pieces = sentences.tokens, merges.characters
    counts = of_pieces.lengths[tokens]
    symbols = take(of_pieces.tokens, of_pieces.starts()[tokens], counts)
    owners = np.repeat(np.repeat(np.arange(len(sentences.lengths)), sentences.lengths), counts)
    begins_word = merges.begins_word[tokens]
    begins_word[sentences.starts()[sentences.lengths > 0]] = True
    pieces = _merge(symbols, (np.cumsum(counts) - counts)[begins_word], merges, share, random)
    kept = pieces >= 0
    return Sentences(pieces[kept], np.bincount(owners[kept], minlength=len(sentences.lengths)))


def _merge(symbols: IntArray, starts: IntArray, merges: Merges, share: float, random: np.random.Generator) -> IntArray:
    """Return the piece that each character begins, or -1 if it begins none.

    Args:
        symbols: The characters of all words.
        starts: The index at which each word starts.
        merges: The merges of the vocabulary.
        share: The probability with which a merge is left out.
        random: Draws a number for each possible merge, at each step.
    """
    pieces, origins = np.full(len(symbols), -1), np.arange(len(symbols))
    lengths = np.diff(np.append(starts, len(symbols)))
    ranks = np.append(merges.rank(symbols[:-1], symbols[1:]), NO_MERGE)[: len(symbols)]  # of each with the next one
    ranks[starts[1:] - 1] = NO_MERGE
    while len(symbols):  # those of the words that are not finished
        possible = np.flatnonzero(ranks != NO_MERGE)
        possible = possible[random.random(len(possible)) >= share]
        order = np.full(len(symbols), NO_MERGE)
        order[possible] = (ranks[possible] << 32) + possible
        first = np.minimum.reduceat(order, starts)
        goes_on = first != NO_MERGE
        finished = np.repeat(~goes_on, lengths)
        pieces[origins[finished]] = symbols[finished]
        merged = first[goes_on] & 0xFFFF_FFFF
        symbols[merged] = merges.merged[ranks[merged]]
        kept = ~finished
        kept[merged + 1] = False
        symbols, origins, ranks = symbols[kept], origins[kept], ranks[kept]
        lengths = lengths[goes_on] - 1
        starts = np.cumsum(lengths) - lengths
        merged = (np.cumsum(kept) - 1)[merged]
        ranks[merged] = NO_MERGE
        lefts = np.concatenate((merged[merged > starts] - 1, merged[merged < starts + lengths - 1]))
        ranks[lefts] = merges.rank(symbols[lefts], symbols[lefts + 1])
    return pieces
