"""Word alignments of the training text: they follow their pairs through preparation, and become links of pieces."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data import prepare
from nmt.data.alignments import NAME
from nmt.data.mixture import open_training_text
from nmt.data.prepared import require_prepared
from nmt.data.sources import registry
from nmt.data.store import SOURCE, TARGET, PairStore
from nmt.errors import UserError
from nmt.text.tokenizer import SPACE_MARK, Tokenizer
from tests.integration.toy import WORDS, pairs, write_lines
from tests.unit.data.alignments.test_references import config_with, say_nothing

PAIRS = pairs(120, 1)
TRANSLATED = {target: source for source, target in WORDS.items()}


def truth(source: str, target: str) -> list[tuple[int, int]]:
    """The links of a pair of the toy language, in which every word has one translation, and a number is kept."""
    words = source.split()
    return [(words.index(TRANSLATED.get(word, word)), index) for index, word in enumerate(target.split())]


def config_of(folder: Path, **data: object) -> Config:
    """Return settings with a toy training text, and its alignments."""
    lines = [" ".join(f"{i}-{j}" for i, j in truth(*pair)) for pair in PAIRS]
    given = {"train_alignments": write_lines(folder / "links", lines), **data}
    test = [write_lines(folder / f"test.{side}", [PAIRS[0][side]]) for side in (0, 1)]
    return config_with(folder, test, **given)


def words_of_pieces(pieces: list[str]) -> list[int]:
    """The word of each piece; a word begins with a space."""
    return [number - 1 for number in accumulate(piece.startswith(SPACE_MARK) for piece in pieces)]


def check_links_of(store: PairStore, tokenizer: Tokenizer, index: int, tag_words: int = 0) -> None:
    """Compare the links of a pair with the true ones of its text."""
    source = tokenizer.source_pieces(store.source(index).tolist())
    target = tokenizer.target_pieces(store.target(index).tolist())
    numbers, counts = store.gather(NAME, np.array([index]), 10_000)
    assert counts.tolist() == [len(numbers)]
    spelled = ["".join(pieces).replace(SPACE_MARK, " ").split() for pieces in (source, target)]
    expected = {(i + tag_words, j) for i, j in truth(" ".join(spelled[0][tag_words:]), " ".join(spelled[1]))}
    read, said = words_of_pieces(source), words_of_pieces(target)
    every = {
        (t, s)
        for t, s in np.ndindex(len(target), len(source))
        if (read[s], said[t]) in expected and target[t] != SPACE_MARK != source[s]
    }
    found = list(map(tuple, numbers.reshape(-1, 2).tolist()))
    assert found == sorted(every)


def test_links_follow_their_pairs_through_the_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.encode.CHUNK_PAIRS", 50)
    config = config_of(tmp_path, max_words=7, max_pieces=20, deduplicate=True, hold_out=0.1, valid=[])
    config = replace(config, runtime=replace(config.runtime, workers=2))
    prepare.prepare(config, say_nothing)
    store, tokenizer = PairStore.open(config.data_folder, "train"), Tokenizer.load(config.data_folder)
    store.verify()
    assert 20 < len(store) < 110
    for index in range(len(store)):
        check_links_of(store, tokenizer, index)
    assert PairStore.open(config.data_folder, "valid").columns.keys() == {SOURCE, TARGET}


def test_links_of_a_mixture_are_those_of_its_corpora(tmp_path: Path) -> None:
    config = config_of(tmp_path, tag="<a>")
    more = {"train": config.data.train, "tag": "<b>"}
    config = replace(config, data=replace(config.data, mixture={"more": more}))
    prepare.prepare(config, say_nothing)
    text, tokenizer = open_training_text(config.data_folder, config.data), Tokenizer.load(config.data_folder)
    assert len(text) == 2 * len(PAIRS)
    check_links_of(text, tokenizer, 7, tag_words=1)
    assert text.gather(NAME, np.array([len(PAIRS) + 7, 7]), 100)[1].tolist()[0] == 0


def test_other_alignments_are_prepared_anew(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    prepare.prepare(config, say_nothing)
    before = PairStore.open(config.data_folder, "train").checksums
    write_lines(tmp_path / "links", ["0-0"] * len(PAIRS))
    prepare.prepare(config, say_nothing)
    assert PairStore.open(config.data_folder, "train").checksums != before
    require_prepared(config)
    without = replace(config, data=replace(config.data, train_alignments=""))
    with pytest.raises(UserError, match=r"was prepared with data\.train_alignments=.*, not : "):
        require_prepared(without)
    prepare.prepare(without, say_nothing)
    assert not list(config.data_folder.glob("train.alignments*"))
    assert PairStore.open(config.data_folder, "train").columns.keys() == {SOURCE, TARGET}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0"] * 119, "data.train_alignments has 119 lines, but data.train has 120 pairs"),
        (["0-0"] * 121, "data.train_alignments has 121 lines, but data.train has 120 pairs"),
        (["0-0", "99-0"], "data.train_alignments, line 2, has a link 99-0, but the sentences have"),
        (None, "links does not exist or is not a file: check data.train_alignments"),
    ],
)
def test_alignments_of_other_sentences_are_refused(tmp_path: Path, lines: list[str] | None, message: str) -> None:
    config = config_of(tmp_path)
    write_lines(tmp_path / "links", lines or [])
    if lines is None:
        (tmp_path / "links").unlink()
    with pytest.raises(UserError, match=message):
        prepare.prepare(config, say_nothing)


def test_the_demo_has_true_alignments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.demo.source.SIZES", {"train": 20, "valid": 2, "test": 2})
    config = DataConfig(source="demo", train_alignments="demo", source_lang="de", target_lang="en")
    found = list(registry.pairs(config, "train"))
    assert all(alignment.sure for _, _, alignment in found)
    assert [pair[:2] for pair in found] == list(registry.pairs(replace(config, train_alignments=""), "train"))
