"""Tags of corpora: words put before source sentences, which must occur nowhere else."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nmt.data.corpora import CorpusSplit
from nmt.data.manifest import JsonObject
from nmt.data.sources.registry import read_from
from nmt.data.store import SIDES, Column, PairStore
from nmt.errors import UserError
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer

TAGS_TASK = "tags"
BLOCK_TOKENS = 1 << 24
"""Tokens that are searched together."""
LETTERS_SHOWN = 80
"""The largest number of letters of a sentence that an error shows."""


def tags_of(splits: Iterable[CorpusSplit]) -> list[str]:
    """Return the different tags of the corpora, in order."""
    return list(dict.fromkeys(split.data.tag for split in splits if split.data.tag))


def untagged(line: str, tag: str) -> str:
    """Return a source sentence without its tag, which may be empty."""
    return line.removeprefix(f"{tag} ") if tag else line


def tag_ids(tokenizer: Tokenizer, tags: Iterable[str], name: str, more_pieces: str = "") -> dict[str, int]:
    """Return the id of each tag; refuse a tokenizer that has none for one of them.

    Args:
        tokenizer: The tokenizer.
        tags: The tags.
        name: What errors call the tokenizer.
        more_pieces: The settings with which it has other pieces, in words; empty if there are none.
    """
    ids = {}
    for tag in tags:
        found = tokenizer.encode_source([tag])[0]
        if len(found) != 1 or found == [UNK]:
            raise UserError(
                f"the tokenizer of {name} has no piece for the tag {tag}: take one of its own tags"
                + (f", or set {more_pieces}" if more_pieces else "")
            )
        ids[tag] = found[0]
    return ids


def check_tags(folder: Path, splits: list[CorpusSplit]) -> JsonObject:
    """Refuse a tag that also occurs in the text of a corpus: as a word of the text, it would mean something else."""
    tokenizer = Tokenizer.load(folder)
    ids = tag_ids(tokenizer, tags_of(splits), str(folder))
    for split in splits:
        store = PairStore.open(folder, split.name)
        for side, column in enumerate(SIDES if tokenizer.joint else SIDES[:1]):
            for tag, tag_id in ids.items():
                is_first = side == 0 and tag == split.data.tag  # of each sentence
                pair = _first_pair_with(tag_id, store.columns[column], skipped=int(is_first))
                if pair is not None:
                    found = store.gather(column, np.array([pair]))[0].tolist()
                    sentence = tokenizer.decode(found) if side else tokenizer.decode_source(found)
                    raise UserError(_refusal(tag, split, side, untagged(sentence, split.data.tag)))
    return {}


def _first_pair_with(tag_id: int, column: Column, skipped: int) -> int | None:
    """Return the first sentence with a tag in it, not counting the first `skipped` tokens of each sentence."""
    tokens, offsets = column
    for start in range(0, len(tokens), BLOCK_TOKENS):
        found = np.flatnonzero(tokens[start : start + BLOCK_TOKENS] == tag_id) + start
        pairs = offsets.searchsorted(found, side="right") - 1
        pairs = pairs[found - offsets[pairs] >= skipped]
        if len(pairs):
            return int(pairs[0])
    return None


def _refusal(tag: str, split: CorpusSplit, side: int, sentence: str) -> str:
    start = max(0, sentence.find(tag) - LETTERS_SHOWN // 2)
    shown = sentence[start : start + LETTERS_SHOWN]
    return (
        f"the tag {tag} is a word of the text: it occurs in {shown!r} of {split.name} "
        f"({split.languages[side]}, from {split.prefix}{read_from(split.data, split.split)}): choose another tag"
    )
