"""Where the pairs come from: the Hub, files, or the embedded grammar, behind one pair of functions."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from nmt.config.schema import DataConfig
from nmt.data.sources import hub
from nmt.data.sources.files import Pair, inputs, kind, read_pairs
from nmt.data.sources.tables import on_one_line
from nmt.errors import UserError
from nmt.storage.files import checksums

DEMO_SIZES = {"train": 30_000, "valid": 500, "test": 1000}


def splits(config: DataConfig) -> list[str]:
    """Names of a source's splits, the small ones first, so that their mistakes show at once."""
    return ["test", "unseen", "valid", "train"] if config.source == "demo" else ["test", "valid", "train"]


def held_out(config: DataConfig) -> list[str]:
    """The splits that name no text of their own and are set aside from the training text."""
    if config.source == "demo" or not config.hold_out:
        return []
    return [split for split, names in (("valid", config.valid), ("test", config.test)) if not names]


def fingerprint(config: DataConfig, seed: int, split: str) -> dict[str, Any]:
    """What the text depends on that a split is read from: equal fingerprints, equal text."""
    split = "train" if split in held_out(config) else split
    names = _names(config, split)
    if config.source == "demo":
        from nmt import grammar  # noqa: PLC0415 (only this source needs it)

        return {"demo": grammar.fingerprint(), "seed": seed, "sizes": DEMO_SIZES}
    on_hub = config.source == "hub" and not _are_files(names)
    if on_hub and not hub.is_local(config):
        return {
            "dataset": config.hub_dataset,
            "config": config.hub_config,
            "revision": config.hub_revision,
            "splits": names,
        }
    paths = hub.local_shards(config, names) if on_hub else inputs(names, split)
    sums = checksums(paths)
    return {"files": [{"kind": kind(path), "sha256": sum_} for path, sum_ in zip(paths, sums, strict=True)]}


def pairs(config: DataConfig, seed: int, split: str) -> Iterator[Pair]:
    """The pairs of a split, source side first."""
    aside = held_out(config)
    if split in aside or (split == "train" and aside):
        return (pair for pair in _read(config, seed, "train") if _side_of(pair, config.hold_out, aside) == split)
    return _read(config, seed, split)


def _side_of(pair: Pair, share: float, aside: Sequence[str]) -> str:
    """The split that a training pair goes to; its source sentence decides, so that none stands in two of them."""
    source = on_one_line(pair[0]).strip().encode()
    place = int.from_bytes(blake2b(source, digest_size=8).digest()) / 2**64 / share
    return aside[int(place)] if place < len(aside) else "train"


def _read(config: DataConfig, seed: int, split: str) -> Iterator[Pair]:
    """All pairs that the settings name for a split."""
    languages = (config.source_lang, config.target_lang)
    names = _names(config, split)
    if config.source == "demo":
        if languages not in (("en", "de"), ("de", "en")):
            raise UserError(f"the demo corpus is English and German, not {languages[0]} and {languages[1]}.")
        english_first = languages[0] == "en"
        return (pair if english_first else pair[::-1] for pair in _demo(seed)[split])
    if config.source == "files" or _are_files(names):
        return read_pairs(inputs(names, split), languages, config.columns)
    return hub.read(config, names, languages)


def _are_files(names: Sequence[str]) -> bool:
    """Whether names are those of files rather than of the Hub's splits: a test set of one's own beside its training."""
    return any("/" in name or "." in name for name in names)


def _names(config: DataConfig, split: str) -> list[str]:
    """Return the Hub splits or files that the settings name for a split."""
    if config.source == "demo":
        return [split]
    names = {"train": config.train, "valid": config.valid, "test": config.test}[split]
    if not names:
        what = "a split" if config.source == "hub" else "its files"
        aside = "" if split == "train" else ", or set part of the training text aside: data.hold_out=0.01"
        raise UserError(f"data.{split} is empty: name {what}{aside}.")
    return names


@lru_cache(maxsize=1)
def _demo(seed: int) -> dict[str, list[Pair]]:
    from nmt import grammar  # noqa: PLC0415 (only this source needs it)

    return grammar.generate(seed, **DEMO_SIZES)
