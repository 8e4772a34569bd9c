"""Development and test text that is also in the training text, against sets of sentences and of words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import data as command
from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data.corpora import CorpusSplit
from nmt.data.filters.overlap import count_overlap, learn, read_splits
from nmt.data.manifest import Overlap, read_manifest
from nmt.data.prepared import require_prepared
from nmt.data.sources.source import Languages, Pair
from tests.integration import toy
from tests.integration.toy import write_sides
from tests.unit.data.corpus import config_in
from tests.unit.data.filters.test_pipeline import run

Texts = list[tuple[str, str]]
EN_DE = ("en", "de")
LETTERS = str.maketrans("0123456789", "abcdefghij")
HELD_OUT = [
    (EN_DE, "The cat sleeps.", "Die Katze schläft."),
    (EN_DE, "Yes!", "Ja!"),
    (EN_DE, "?!", "...!"),
    (("fr", "en"), "Un chien.", "A dog."),
]
PAIRS: list[Pair] = [
    ("the  CAT sleeps", "die katze, schläft"),
    ("The cat sleeps.", "Sie schläft."),
    ("It sleeps.", "Die Katze schläft"),
    ("The cats sleep.", "Die Katzen schlafen."),
    ("Die Katze schläft.", "The cat sleeps."),
    ("?!", "!"),
    ("A dog.", "Ein Hund."),
]


def pairs(count: int, seed: int) -> Texts:
    """Return sentence pairs that differ in letters."""
    return [(source.translate(LETTERS), target.translate(LETTERS)) for source, target in toy.pairs(count, seed)]


TRAIN: Texts = [*pairs(200, 1), ("a b", "c d"), ("twice", "one"), ("twice", "two")]


def data(**settings: Any) -> DataConfig:
    return DataConfig(max_words=0, **settings)


def kept(config: DataConfig, found: list[Pair], text: Sequence[tuple[Languages, str, str]] = HELD_OUT) -> list[Pair]:
    return run(found, config, held_out=learn(text))[0]


@pytest.mark.parametrize(
    ("settings", "dropped"),
    [
        ({}, []),
        ({"drop_overlap": "pair"}, [0]),
        ({"drop_overlap": "side"}, [0, 1, 2, 5, 6]),
        ({"drop_overlap": "pair", "source_lang": "de", "target_lang": "en"}, [4]),
    ],
)
def test_sentences_are_compared_by_letters_in_their_languages(settings: dict[str, Any], dropped: list[int]) -> None:
    assert kept(data(**settings), PAIRS) == [pair for number, pair in enumerate(PAIRS) if number not in dropped]
    assert kept(data(**settings), PAIRS, []) == PAIRS


def test_sides_are_compared_in_each_direction_but_not_trees() -> None:
    assert kept(data(drop_overlap="pair", target_lang="fr"), [("A dog.", "un chien")]) == []
    other = data(drop_overlap="side", target_lang="cs")
    assert kept(other, [("new", "Un chien."), ("a dog", "")]) == [("new", "Un chien.")]
    text = [(("en", "trees"), "a b c d", "(S (X x))")]
    repeated: list[Pair] = [("new", "(S (X x))"), ("a b c d", "(S)")]
    assert kept(data(drop_overlap="side", target_lang="trees"), repeated, text) == repeated[:1]


def config_with(folder: Path, **texts: Texts) -> Config:
    return config_in(folder, 90, **{name: write_sides(folder / name, text) for name, text in texts.items()})


def test_dropped_pairs_are_counted_and_the_warning_goes_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = pairs(200, 1)
    test = [(f"{source} .", target) for source, target in train[:20]]
    texts = {"train": train, "valid": [*pairs(9, 7), (train[30][0], "new")], "test": test}
    config = config_with(tmp_path, **texts)
    for drop, count, warned in (("", 0, True), ("pair", 20, True), ("side", 21, False)):
        config = replace(config, data=replace(config.data, drop_overlap=drop))
        command.run(config)
        said = capsys.readouterr()
        assert read_manifest(config.data_folder).collected("train").dropped.get("overlap", 0) == count
        expected = "warning: of 10 valid pairs, the source of 1 (10.0%) and the target of 0 (0.0%) are also in the tr"
        assert (expected in said.err) is ("(data.drop_overlap=side drops such pairs)" in said.err) is warned
        assert (f"overlap (data.drop_overlap={drop})" in said.out) is bool(drop)
        require_prepared(config)
    config = replace(config, data=replace(config.data, test=write_sides(tmp_path / "other", train[:15])))
    command.run(config)
    assert read_manifest(config.data_folder).collected("train").dropped["overlap"] == 16


def test_overlap_with_text_of_any_corpus_and_direction_is_counted_by_language_without_tags(tmp_path: Path) -> None:
    test = [*TRAIN[:40], ("new", TRAIN[50][1]), ("twice", "zwei"), ("no", "twice"), *pairs(30, 9)]
    texts: list[tuple[str, str, DataConfig, Texts]] = [
        ("main", "train", DataConfig(), TRAIN[:20]),
        ("more", "train", DataConfig(tag="<more>"), [(f"<more> {source}", target) for source, target in TRAIN[10:60]]),
        ("back", "train", DataConfig(source_lang="de", target_lang="en"), [pair[::-1] for pair in TRAIN[60:]]),
        ("french", "train", DataConfig(target_lang="fr"), [("x", target) for _, target in test]),
        ("main", "test", DataConfig(), test),
    ]
    splits = []
    for corpus, split, config, text in texts:
        splits.append(CorpusSplit(corpus, split, config))
        write_sides(tmp_path / splits[-1].name, text, splits[-1].data.languages)
    sources, targets = ({pair[side] for pair in TRAIN} for side in (0, 1))
    assert count_overlap(tmp_path, splits, lambda _: None) == {
        "test": Overlap(
            sentences=len(test),
            source=sum(source in sources for source, _ in test),
            target=sum(target in targets for _, target in test),
            pair=sum(pair in TRAIN for pair in test),
        )
    }
    assert next(read_splits(tmp_path, splits[1:2])) == (EN_DE, *TRAIN[10])
