"""Token stores: they are read as written, and errors name damaged files."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from nmt.data.store import SOURCE, TARGET, PairStore, id_type, writing
from nmt.errors import UserError

SENTENCES = [([5, 6], [7]), ([], [8, 9]), ([10], []), ([400, 65_534], [11, 12, 13])]


def fill(folder: Path, vocabulary: int = 65_535, pairs_per_append: int = 2) -> PairStore:
    with writing(folder, "train", ("en", "de"), vocabulary) as writer:
        for start in range(0, len(SENTENCES), pairs_per_append):
            for_each_side = zip(*SENTENCES[start : start + pairs_per_append], strict=True)
            sides = [
                (np.array([*chain(*ids)], id_type(vocabulary)), np.array([*map(len, ids)], np.int32))
                for ids in for_each_side
            ]
            writer.append(*chain(*sides))
    return PairStore.open(folder, "train")


@pytest.mark.parametrize(("vocabulary", "width", "pairs_per_append"), [(65_535, 2, 1), (65_536, 4, 3), (65_536, 4, 4)])
def test_store_reads_back_what_was_written(tmp_path: Path, vocabulary: int, width: int, pairs_per_append: int) -> None:
    store = fill(tmp_path, vocabulary, pairs_per_append)
    store.verify()
    assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))] == SENTENCES
    assert store.lengths(SOURCE).tolist() == [2, 0, 1, 2]
    assert store.lengths(TARGET).tolist() == [1, 2, 0, 3]
    assert (tmp_path / "train.en.tokens").stat().st_size == 5 * width


def test_open_store_keeps_its_text_while_another_is_written_in_its_place(tmp_path: Path) -> None:
    store, nothing = fill(tmp_path), (np.zeros(0, np.uint16), np.zeros(3, np.int32))
    with writing(tmp_path, "train", ("en", "de"), 100) as writer:
        writer.append(*nothing, *nothing)
    assert [PairStore.open(tmp_path, "train").source(pair).tolist() for pair in range(3)] == [[], [], []]
    assert (store.source(3).tolist(), store.target(3).tolist()) == SENTENCES[3]


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4] + b"?" + path.read_bytes()[5:])


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("train.en.tokens", lambda path: path.write_bytes(path.read_bytes()[:-1])),
        ("train.en.offsets", Path.unlink),
        ("train.de.tokens", lambda path: path.write_bytes(path.read_bytes() + b"\0\0")),
        ("train.de.tokens", flip),
        ("train.de.offsets", lambda path: np.array([0, 1, 1, 1, 2], "<i8").tofile(path)),
        ("train.store.json", lambda path: path.write_text('{"files": {}, "pairs": 4}')),
        ("train.store.json", lambda path: path.write_text('{"files": [], "pairs": 4}')),
        ("train.store.json", lambda path: path.write_text(path.read_text().replace('"pairs"', '"pair"'))),
        ("train.en.tokens", lambda path: other_type(path.with_name("train.store.json"))),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    fill(tmp_path)
    damage(tmp_path / name)
    with pytest.raises(UserError, match=rf"{name} is missing, damaged .* run `make data`"):
        PairStore.open(tmp_path, "train").verify()


def other_type(path: Path) -> None:
    path.write_text(path.read_text().replace('"<u2"', '"<f2"'))


def test_failed_write_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), writing(tmp_path, "train", ("en", "de"), 100):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match=r"no prepared train data in .*: run `make data`"):
        PairStore.open(tmp_path, "train")
