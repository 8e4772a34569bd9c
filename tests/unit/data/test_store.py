"""Token stores: they are read as written, and errors name damaged files."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from nmt.data.store import PairStore, id_type, writing
from nmt.errors import UserError

SENTENCES = [([5, 6], [7]), ([], [8, 9]), ([10], []), ([400, 65_534], [11, 12, 13])]


def fill(folder: Path, vocabulary: int = 65_535, pairs_per_append: int = 2) -> PairStore:
    folder.mkdir(exist_ok=True)
    dtype = id_type(vocabulary)
    with writing(folder, "train", ("en", "de"), vocabulary) as writer:
        for start in range(0, len(SENTENCES), pairs_per_append):
            sides: list[np.ndarray] = []
            for side in (0, 1):
                ids = [pair[side] for pair in SENTENCES[start : start + pairs_per_append]]
                sides += [
                    np.array(list(chain.from_iterable(ids)), dtype),
                    np.array([len(each) for each in ids], np.int32),
                ]
            writer.append(*sides)
    return PairStore.open(folder, "train")


@pytest.mark.parametrize("pairs_per_append", [1, 3, 4])
@pytest.mark.parametrize(("vocabulary", "width"), [(65_535, 2), (65_536, 4)])
def test_store_reads_back_what_was_written(tmp_path: Path, pairs_per_append: int, vocabulary: int, width: int) -> None:
    store = fill(tmp_path, vocabulary, pairs_per_append)
    assert len(store) == 4
    assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(4)] == SENTENCES
    assert store.source_lengths.tolist() == [2, 0, 1, 2]
    assert store.target_lengths.tolist() == [1, 2, 0, 3]
    assert store.source_lengths.dtype == np.int32
    assert (tmp_path / "train.en.tokens").stat().st_size == 5 * width
    store.verify()


def test_store_of_empty_sentences(tmp_path: Path) -> None:
    nothing = np.zeros(0, np.uint16), np.zeros(3, np.int32)
    with writing(tmp_path, "valid", ("en", "de"), 100) as writer:
        writer.append(*nothing, *nothing)
    store = PairStore.open(tmp_path, "valid")
    assert len(store) == 3
    assert store.source(2).tolist() == []


def test_open_store_keeps_its_text_while_another_is_written_in_its_place(tmp_path: Path) -> None:
    store, (source, target) = fill(tmp_path), SENTENCES[3]
    other, length = np.full(3, 9, np.uint16), np.array([3], np.int32)
    with writing(tmp_path, "train", ("en", "de"), 100) as writer:
        writer.append(other, length, other, length)
    assert PairStore.open(tmp_path, "train").source(0).tolist() == [9, 9, 9]
    assert (store.source(3).tolist(), store.target(3).tolist()) == (source, target)


def test_missing_split_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no prepared train data in .*: run `make data`"):
        PairStore.open(tmp_path, "train")


@pytest.mark.parametrize("name", ["train.en.tokens", "train.en.offsets", "train.de.tokens", "train.de.offsets"])
@pytest.mark.parametrize("damage", ["cut", "gone", "longer"])
def test_file_of_the_wrong_size_is_refused_on_opening(tmp_path: Path, name: str, damage: str) -> None:
    fill(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(content[:-1] if damage == "cut" else content + b"\0\0")
    with pytest.raises(UserError, match=rf"{name} is missing, damaged .* run `make data`"):
        PairStore.open(tmp_path, "train")


def test_offsets_of_another_store_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    np.array([0, 1, 1, 1, 2], "<i8").tofile(tmp_path / "train.en.offsets")
    with pytest.raises(UserError, match=r"train\.en\.offsets is missing, damaged"):
        PairStore.open(tmp_path, "train")


def test_verify_detects_a_changed_byte(tmp_path: Path) -> None:
    store = fill(tmp_path)
    path = tmp_path / "train.de.tokens"
    content = bytearray(path.read_bytes())
    content[4] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"train\.de\.tokens is missing, damaged"):
        store.verify()


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '{"files": {}, "pairs": 4}', '{"files": [], "pairs": 4}'])
def test_damaged_description_is_refused(tmp_path: Path, content: str) -> None:
    fill(tmp_path)
    (tmp_path / "train.store.json").write_text(content)
    with pytest.raises(UserError, match=r"train\.store\.json"):
        PairStore.open(tmp_path, "train")


def test_unknown_number_type_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "train.store.json"
    path.write_text(path.read_text().replace('"<u2"', "[]"))
    with pytest.raises(UserError, match=r"train\.en\.tokens is missing, damaged"):
        PairStore.open(tmp_path, "train")


def test_failed_write_leaves_no_files(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def fail() -> None:
        with writing(tmp_path, "train", ("en", "de"), 100):
            raise StopError

    with pytest.raises(StopError):
        fail()
    assert list(tmp_path.iterdir()) == []
