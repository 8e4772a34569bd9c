"""The training text of a mixture: several stores that look like one, and a plan of batches that mixes them."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from nmt.data.batches import Batching, IntArray, PairLengths
from nmt.data.mixtures.plan import MixturePlan
from nmt.data.store import Ids, LengthArray, PairStore, take


class MixedStore:
    """The pairs of several corpora, one corpus after the other."""

    def __init__(self, stores: Mapping[str, PairStore], shares: Mapping[str, float]) -> None:
        """Take the stores by the names of their corpora, and the shares of these in the tokens."""
        self._names, self._stores = list(stores), list(stores.values())
        self._shares = [shares[name] for name in stores]
        self._starts = np.cumsum([0, *map(len, self._stores)])

    def __len__(self) -> int:
        """Return the number of pairs."""
        return int(self._starts[-1])

    @property
    def source_lengths(self) -> LengthArray:
        """The lengths of the source sentences in word pieces, computed at each call."""
        return np.concatenate([store.source_lengths for store in self._stores])

    @property
    def target_lengths(self) -> LengthArray:
        """The lengths of the target sentences in word pieces, computed at each call."""
        return np.concatenate([store.target_lengths for store in self._stores])

    @property
    def checksums(self) -> list[str]:
        """The checksums of the files of all stores."""
        return [checksum for store in self._stores for checksum in store.checksums]

    def source(self, index: int) -> Ids:
        """Return the ids of a source sentence."""
        corpus = int(self._corpora(np.array(index)))
        return self._stores[corpus].source(index - int(self._starts[corpus]))

    def target(self, index: int) -> Ids:
        """Return the ids of a target sentence."""
        corpus = int(self._corpora(np.array(index)))
        return self._stores[corpus].target(index - int(self._starts[corpus]))

    def gather(self, column: str, pairs: IntArray, limit: int) -> tuple[Ids, IntArray]:
        """See `Pairs.gather`."""
        corpora = self._corpora(pairs)
        by_corpus = np.argsort(corpora, kind="stable")
        tokens, lengths = zip(
            *(
                store.gather(column, pairs[corpora == corpus] - self._starts[corpus], limit)
                for corpus, store in enumerate(self._stores)
            ),
            strict=True,
        )
        of_corpora = np.concatenate(lengths)
        back = np.argsort(by_corpus)
        starts = of_corpora.cumsum() - of_corpora
        return take(np.concatenate(tokens), starts[back], of_corpora[back]), of_corpora[back]

    def planner(self, lengths: PairLengths, batching: Batching) -> MixturePlan:
        """Return what plans the epochs of the mixture."""
        return MixturePlan(lengths, [len(store) for store in self._stores], self._shares, batching)

    def corpus_counts(self, pairs: IntArray, lengths: PairLengths) -> dict[str, tuple[int, int]]:
        """Return for each corpus how many of these pairs and of their tokens come from it."""
        corpora, tokens = self._corpora(pairs), lengths.source[pairs] + lengths.target[pairs]
        count = len(self._names)
        pair_counts, token_counts = np.bincount(corpora, minlength=count), np.bincount(corpora, tokens, count)
        return {name: (int(pair_counts[index]), int(token_counts[index])) for index, name in enumerate(self._names)}

    def corpus_of(self, pair: int) -> str:
        """Return the corpus that a pair comes from."""
        return self._names[int(self._corpora(np.array(pair)))]

    def verify(self) -> None:
        """Refuse damaged files."""
        for store in self._stores:
            store.verify()

    def _corpora(self, pairs: IntArray) -> npt.NDArray[np.intp]:
        """Return the index of the corpus of each pair."""
        return np.searchsorted(self._starts, pairs, side="right") - 1
