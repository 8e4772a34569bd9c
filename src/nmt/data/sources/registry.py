"""The source of each split, and the splits that are held out from the training text.

To add a source, write a module with a `SOURCE`, and name it in `nmt.config.registry`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b

from nmt.config.data import DataConfig, is_text
from nmt.config.folders import is_address
from nmt.config.registry import load
from nmt.data import alignments
from nmt.data.sources import files, sacrebleu_sets
from nmt.data.sources.source import Fingerprint, Pair, Source
from nmt.errors import UserError
from nmt.storage.files import checksum
from nmt.text.alignments import GoldAlignment, read_alignments
from nmt.text.lines import on_one_line


def source_named(name: str) -> Source:
    """Return the source that a value of `data.source` names; it is imported when it is first used."""
    source: Source = load("data.source", name)
    return source


def source_of(config: DataConfig, split: str) -> Source:
    """Return the source of a split: development and test text may be a test set of sacreBLEU, or files of your own."""
    names = {"train": config.train, "valid": config.valid, "test": config.test}.get(split, [])
    if split != "train" and any(name.startswith(sacrebleu_sets.PREFIX) for name in names):
        return sacrebleu_sets.SOURCE
    are_files = config.source == "hub" and any("/" in name or "." in name for name in names)
    return files.SOURCE if are_files else source_named(config.source)


def has_text(config: DataConfig, split: str) -> bool:
    """Return whether one of several corpora has this split: it is named, held out, or part of what is generated."""
    is_generated = not source_named(config.source).is_named
    return split == "train" or is_generated or bool(getattr(config, split)) or split in held_out(config)


def held_out(config: DataConfig) -> list[str]:
    """Return the splits without text of their own, which get some of the training pairs."""
    if not config.hold_out or not source_named(config.source).is_named:
        return []
    return [split for split, names in (("valid", config.valid), ("test", config.test)) if not names]


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Return the fingerprint of the text from which a split is read: the training text if it is held out."""
    its_text = "train" if split in held_out(config) else split
    source, given = source_of(config, its_text), alignments.given_file(config, split)
    found = source.fingerprint(config, its_text)
    if given is None or source.alignments:
        return found
    if not given.is_file():
        raise UserError(f"{given} does not exist or is not a file: check data.{split}_alignments.")
    return {**found, alignments.NAME: checksum(given)}


def fingerprint_if_here(config: DataConfig, split: str, *, may_fetch: bool = False) -> Fingerprint | None:
    """Return the fingerprint of a split; None if its files are gone, or if they may not be fetched for it."""
    names: list[str] = getattr(config, "train" if split in held_out(config) else split, [])
    if not may_fetch and (source_of(config, split) is sacrebleu_sets.SOURCE or any(map(is_address, names))):
        return None
    try:
        return fingerprint(config, split)
    except UserError:
        return None


def further_references(config: DataConfig, split: str) -> list[list[str]]:
    """Return the sentences of each reference of a split after the first one."""
    if split in ("train", *held_out(config)):
        return []
    return source_of(config, split).further_references(config, split)


def alignments_of(config: DataConfig, split: str) -> Callable[[], Iterator[GoldAlignment]] | None:
    """Return what reads the word alignments of a split, from the source or the given file; None if neither has any.

    The training text has them only if they are asked for.
    """
    if not is_text(config.target_lang) or (split == "train" and not config.train_alignments):
        return None
    if own := source_of(config, split).alignments:
        return partial(own, config, split)
    given = alignments.given_file(config, split)
    return partial(read_alignments, given) if given else None


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split, source side first."""
    others = held_out(config)
    if split in others or (split == "train" and others):
        return (pair for pair in _training_pairs(config) if _split_of(pair, config.hold_out, others) == split)
    return _training_pairs(config) if split == "train" else source_of(config, split).pairs(config, split)


def _training_pairs(config: DataConfig) -> Iterator[Pair]:
    """Yield the training pairs, with their alignments if these are used."""
    training, read = source_of(config, "train").pairs(config, "train"), alignments_of(config, "train")
    return alignments.aligned("train", training, read()) if read else training


def _split_of(pair: Pair, share: float, held_out_splits: list[str]) -> str:
    """Choose the split of a training pair by its source sentence, so that no sentence is in two splits."""
    sentence = on_one_line(pair[0]).strip().encode()
    number = int.from_bytes(blake2b(sentence, digest_size=8).digest()) / 2**64 / share
    return held_out_splits[int(number)] if number < len(held_out_splits) else "train"
