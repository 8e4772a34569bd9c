"""Open the training text: that of one corpus, or of several that a feature mixes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from nmt.config.data import DataConfig
from nmt.config.registry import imported
from nmt.data.corpora import training_splits
from nmt.data.store import Pairs, PairStore
from nmt.discovery import features

LinesOf = Callable[[], Iterable[str]]


class Mixing(Protocol):
    """How several corpora become one training text: see `Feature.mixing`."""

    def join(self, data: DataConfig, stores: Mapping[str, PairStore]) -> Pairs:
        """Return the pairs of all corpora as one text, which plans its own batches; `stores` are by corpus."""

    def shares(self, data: DataConfig, sizes: Mapping[str, int]) -> dict[str, float]:
        """Return the share of each corpus in the training text, given the corpora's sizes."""

    def sample(
        self, data: DataConfig, texts: Mapping[str, LinesOf], sizes: Mapping[str, int], total: int
    ) -> tuple[Iterator[str], int]:
        """Return about `total` lines of all corpora in their shares, and the number of these lines.

        `texts` yield the lines of each corpus, and `sizes` are their numbers of lines.
        """


def mixing() -> Mixing:
    """Return how corpora are mixed; only a feature that adds corpora needs to know it."""
    found: Mixing = next(imported(feature.mixing) for feature in features().values() if feature.mixing)
    return found


def open_training_text(folder: Path, data: DataConfig) -> Pairs:
    """Open the training text in a folder."""
    stores = {each.corpus: PairStore.open(folder, each.name) for each in training_splits(data)}
    return next(iter(stores.values())) if len(stores) == 1 else mixing().join(data, stores)
