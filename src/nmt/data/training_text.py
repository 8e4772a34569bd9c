"""Open the training text: that of one corpus, or of several that are mixed."""

from pathlib import Path

from nmt.config.data import DataConfig
from nmt.data.corpora import training_splits
from nmt.data.mixtures.mixed_store import MixedStore
from nmt.data.mixtures.settings import shares_of
from nmt.data.store import Pairs, PairStore


def open_training_text(folder: Path, data: DataConfig) -> Pairs:
    """Open the training text in a folder."""
    stores = {each.corpus: PairStore.open(folder, each.name) for each in training_splits(data)}
    if len(stores) == 1:
        return next(iter(stores.values()))
    tokens = {name: len(store.source_tokens) + len(store.target_tokens) for name, store in stores.items()}
    return MixedStore(stores, shares_of(data, tokens))
