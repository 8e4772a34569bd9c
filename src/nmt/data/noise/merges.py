"""The merges of a BPE model, as arrays."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nmt.data.batches import IntArray
from nmt.data.store import take
from nmt.text.sentencepiece_model import NORMAL, Piece
from nmt.text.tokenizer import SPACE_MARK

NO_MERGE = np.iinfo(np.int64).max
"""The rank of two symbols that cannot be merged."""


@dataclass(frozen=True, slots=True)
class Merges:
    """Which symbols can be merged, and which merge comes first.

    Like SentencePiece, it merges any two neighbours whose text together is a piece; pieces with higher scores first.
    """

    vocabulary: int
    pairs: IntArray
    """left * vocabulary + right of each merge, in ascending order."""
    ranks: IntArray
    """The rank of each of these merges: lower ranks come first."""
    merged: IntArray
    """The piece that a merge of each rank makes."""
    characters: IntArray
    """The ids of the characters of all pieces; a piece that is not split is its own only character."""
    character_counts: IntArray
    """The number of characters of each piece."""
    character_starts: IntArray
    """Where those of each piece start."""
    begins_word: npt.NDArray[np.bool_]
    """Whether a piece begins with the mark of a space."""

    @classmethod
    def of(cls, pieces: list[Piece]) -> "Merges":
        """Return the merges of a BPE model with these pieces."""
        ids = {piece.text: index for index, piece in enumerate(pieces) if piece.kind == NORMAL}
        long = [index for text, index in ids.items() if len(text) > 1]
        by_score = sorted(long, key=lambda index: -pieces[index].score)
        pairs, ranks = [], []
        for rank, index in enumerate(by_score):
            text = pieces[index].text
            for place in range(1, len(text)):
                left, right = ids.get(text[:place]), ids.get(text[place:])
                if left is not None and right is not None:
                    pairs.append(left * len(pieces) + right)
                    ranks.append(rank)
        order = np.argsort(np.array(pairs, np.int64))
        characters = [_characters(piece, index, ids) for index, piece in enumerate(pieces)]
        counts = np.array([len(of_piece) for of_piece in characters])
        return cls(
            len(pieces),
            np.array(pairs, np.int64)[order],
            np.array(ranks, np.int64)[order],
            np.array(by_score, np.int64),
            np.array([each for of_piece in characters for each in of_piece], np.int64),
            counts,
            np.cumsum(counts) - counts,
            np.array([piece.text.startswith(SPACE_MARK) for piece in pieces]),
        )

    def rank(self, left: IntArray, right: IntArray) -> IntArray:
        """Return the rank of the merge of each left with its right symbol; NO_MERGE if there is none."""
        if not len(self.pairs):
            return np.full(len(left), NO_MERGE)
        wanted = left * self.vocabulary + right
        places = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        return np.where(self.pairs[places] == wanted, self.ranks[places], NO_MERGE)

    def split(self, tokens: IntArray) -> tuple[IntArray, IntArray]:
        """Return the characters of pieces, one after the other, and the number of characters of each."""
        counts = self.character_counts[tokens]
        return take(self.characters, self.character_starts[tokens], counts), counts


def _characters(piece: Piece, index: int, ids: dict[str, int]) -> list[int]:
    """Return the ids of a piece's characters, or its own id if it is special or has characters without a piece."""
    if piece.kind == NORMAL and all(character in ids for character in piece.text):
        return [ids[character] for character in piece.text]
    return [index]
