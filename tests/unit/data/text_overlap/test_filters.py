"""Filters of training text that is also in development or test text, against sets of words."""

import pickle
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import data as command
from nmt.config.data import DataConfig
from nmt.config.tree import Config
from nmt.data import held_out_text
from nmt.data.corpora import CorpusSplit
from nmt.data.engine import Workers
from nmt.data.filters import overlap_runs as word_runs
from nmt.data.filters.overlap_runs import contain_sentences, learn, runs_of
from nmt.data.filters.overlap_words import words_of
from nmt.data.filters.pipeline import (
    FILTERS,
    FilterChain,
    chunks,
    filter_settings,
    setting_of,
    training_filters,
)
from nmt.data.filters.shared import SharedFilterChain
from nmt.data.manifest import read_manifest
from nmt.data.overlap import HeldOutPair
from nmt.data.prepared import require_prepared
from nmt.data.sources.source import Pair
from nmt.errors import ConfigError
from tests.unit.data.test_shared_filters import InThisProcess
from tests.unit.data.text_overlap.test_overlap import config_with, pairs

EN_DE = ("en", "de")
HELD_OUT = [
    HeldOutPair(EN_DE, "The cat sleeps.", "Die Katze schläft."),
    HeldOutPair(EN_DE, "Yes!", "Ja!"),
    HeldOutPair(EN_DE, "?!", "...!"),
    HeldOutPair(("fr", "en"), "Un chien.", "A dog."),
]


def data(**settings: Any) -> DataConfig:
    return DataConfig(max_words=0, **settings)


def kept(config: DataConfig, found: Sequence[Pair], text: Sequence[HeldOutPair] = HELD_OUT) -> list[Pair]:
    chosen = [each.knowing(config, lambda: text) for each in training_filters(config)]
    return FilterChain(chosen, config).apply(list(found))


PAIRS: list[Pair] = [
    ("the  CAT sleeps", "die katze, schläft"),
    ("The cat sleeps.", "Sie schläft."),
    ("It sleeps.", "Die Katze schläft"),
    ("The cats sleep.", "Die Katzen schlafen."),
    ("Die Katze schläft.", "The cat sleeps."),
    ("?!", "!"),
    ("A dog.", "Ein Hund."),
]


def test_whole_sentences_are_compared_without_case_and_punctuation_in_their_languages() -> None:
    assert kept(data(drop_overlap="pair"), PAIRS) == PAIRS[1:]
    assert kept(data(drop_overlap="side"), PAIRS) == [PAIRS[3], PAIRS[4]]
    assert kept(data(), PAIRS) == PAIRS


def test_pairs_of_the_other_direction_are_the_same_pairs() -> None:
    backwards = data(drop_overlap="pair", source_lang="de", target_lang="en")
    assert kept(backwards, PAIRS) == [*PAIRS[:4], *PAIRS[5:]]
    assert kept(data(drop_overlap="pair", target_lang="fr"), [("A dog.", "un chien")]) == []
    assert kept(data(drop_overlap="side", target_lang="cs"), [("new", "Un chien."), ("a dog", "")]) == [
        ("new", "Un chien.")
    ]


def test_targets_that_repeat_anyway_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_runs, "RUN_WORDS", 2)
    text = [HeldOutPair(("en", "trees"), "a b c d", "(S (X x))")]
    repeated: list[Pair] = [("new", "(S (X x))"), ("a b c d", "(S)")]
    assert kept(data(drop_overlap="side", target_lang="trees"), repeated, text) == repeated[:1]
    shares = data(overlap_share=0.5, target_lang="trees")
    assert kept(shares, repeated, text) == repeated[:1]


def test_without_development_and_test_text_nothing_is_dropped() -> None:
    assert kept(data(drop_overlap="side", overlap_share=0.1), PAIRS, []) == PAIRS
    assert kept(data(overlap_share=0.1), [], HELD_OUT) == []


def sentences(seed: int, count: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices("abcd", k=generator.randrange(1, 14))) for _ in range(count)]


def contains(text: str, sentence: str, words: int, share: float) -> bool:
    """Return whether a text contains this share of the different runs of a sentence."""
    wanted, found = (
        {tuple(each[start : start + words]) for start in range(len(each) - words + 1)}
        for each in (sentence.split(), text.split())
    )
    return bool(wanted) and len(wanted & found) >= max(1, share * len(wanted))


@pytest.mark.parametrize(("words", "share"), [(2, 1.0), (3, 0.5), (3, 0.01), (5, 1 / 3), (13, 0.5)])
def test_runs_of_words_agree_with_sets(words: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_runs, "CHUNK_SENTENCES", 7)
    monkeypatch.setattr(word_runs, "MAX_SENTENCES", 1000)
    monkeypatch.setattr(word_runs, "RUN_WORDS", words)
    held_out, texts = sentences(1, 40), sentences(2, 300)
    known = learn(data(overlap_share=share), [HeldOutPair(EN_DE, each, "") for each in held_out])
    expected = [
        index
        for index, text in enumerate(texts)
        if any(contains(text, sentence, words, share) for sentence in held_out)
    ]
    assert contain_sentences(texts, known["en"]).tolist() == expected
    assert len(expected) < len(texts)
    assert expected or words == 13


def test_runs_do_not_cross_texts_and_have_an_order() -> None:
    hashes, of_texts = runs_of(["a b c", "", "b", "A, b! c", "c b a"], 2)
    assert of_texts.tolist() == [0, 0, 3, 3, 4, 4]
    assert hashes[:2].tolist() == hashes[2:4].tolist()
    assert len(np.unique(hashes)) == 4
    assert len(runs_of(["a b"], 3)[0]) == len(runs_of([], 3)[0]) == 0


def test_copies_with_changes_are_dropped_by_their_share() -> None:
    words = list("abcdefghijklmnopqrst")
    text = [HeldOutPair(EN_DE, " ".join(words), "z")]
    changed: list[Pair] = [(" ".join([*words[:number], "other", *words[number + 1 :]]), "x") for number in (0, 10)]
    assert kept(data(overlap_share=0.5), changed, text) == changed[1:], "12 of 13, and 5 of 13 runs of 8 words"
    assert kept(data(overlap_share=0.3), changed, text) == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_workers_drop_and_count_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_runs, "RUN_WORDS", 3)
    config = data(drop_overlap="side", overlap_share=0.4, deduplicate=True)
    text = [HeldOutPair(EN_DE, *each) for each in pairwise(sentences(3, 30))]
    found: list[Pair] = list(pairwise(sentences(4, 400)))
    chosen = [each.knowing(config, lambda: text) for each in training_filters(config)]
    alone = FilterChain(chosen, config)
    expected = [pair for chunk in chunks(iter(found), size) for pair in alone.apply(chunk)]
    with closing(SharedFilterChain(chosen, config, Pickling())) as shared:
        assert [pair for chunk in shared.apply_all(chunks(iter(found), size)) for pair in chunk] == expected
    assert shared.dropped == alone.dropped
    assert min(shared.dropped[name] for name in ("overlap", "overlap of runs")) > 0


class Pickling(InThisProcess):
    """Workers whose functions are made as in another process."""

    def workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> Workers:
        make, args = pickle.loads(pickle.dumps((make, args)))
        return super().workers(purpose, make, *args)


def test_a_slow_filter_knows_the_text_in_other_processes() -> None:
    config = data(overlap_share=0.5)
    text = [HeldOutPair(EN_DE, "a b c d e f g h", "")]
    found: list[Pair] = [(f"z a b c d e f g {'h' if number % 3 else 'i'}", "x") for number in range(5000)]
    chosen = [each.knowing(config, lambda: text) for each in training_filters(config)]
    with closing(FilterChain(chosen, config, Pickling())) as chain:
        assert chain.apply(found) == found[::3]


def dropping(what: str, config: Config) -> Config:
    return replace(config, data=replace(config.data, drop_overlap=what))


def test_dropped_pairs_are_counted_and_the_warning_goes_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = pairs(200, 1)
    test = [(f"{source} .", target) for source, target in train[:20]]
    settings = {"train": train, "valid": [*pairs(9, 7), (train[30][0], "new")], "test": test}
    for drop, count, warned in (("", 0, True), ("pair", 20, True), ("side", 21, False)):
        config = dropping(drop, config_with(tmp_path, **settings))
        command.run(config)
        said = capsys.readouterr()
        manifest = read_manifest(config.data_folder)
        assert manifest.collected("train").dropped.get("overlap", 0) == count
        assert ("warning: of 10 valid pairs" in said.err) is warned
        assert (f"overlap (data.drop_overlap={drop})" in said.out) is bool(drop)
        assert ("held_out_text" in manifest.tasks["collect train"].inputs) is bool(drop)
        require_prepared(config)


def test_other_test_text_filters_the_training_text_again(tmp_path: Path) -> None:
    train = pairs(100, 1)
    for test in (train[:10], train[:15]):
        config = dropping("pair", config_with(tmp_path, train=train, valid=pairs(9, 7), test=test))
        command.run(config)
        assert read_manifest(config.data_folder).collected("train").dropped["overlap"] == len(test)


def test_the_text_of_all_corpora_is_compared_without_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_with(tmp_path, train=[("a", "b")])
    splits = [
        CorpusSplit("main", "train", config.data),
        CorpusSplit("main", "test", config.data),
        CorpusSplit("more", "valid", DataConfig(tag="<more>", source_lang="fr", target_lang="en")),
    ]
    monkeypatch.setattr(held_out_text, "corpus_splits", lambda _: splits)
    config.data_folder.mkdir(parents=True)
    for name, text in {
        "test.en": "a\n",
        "test.de": "b\n",
        "more.valid.fr": "<more> c\n",
        "more.valid.en": "d\n",
    }.items():
        (config.data_folder / name).write_text(text)
    assert list(held_out_text.held_out_pairs(config)) == [(EN_DE, "a", "b"), (("fr", "en"), "c", "d")]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.tokenizer_task.run_in_process", lambda function, *args: function(*args))


def test_settings_are_recorded_only_if_a_filter_is_on() -> None:
    ours = {setting_of(each.name): each for each in FILTERS if each.learn}
    assert {*ours} == {"drop_overlap", "overlap_share"}
    assert not {*filter_settings(DataConfig())} & {*ours}
    recorded = filter_settings(data(drop_overlap="pair", overlap_share=0.2))
    assert {name: recorded[name] for name in ours} == {"drop_overlap": "pair", "overlap_share": 0.2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drop_overlap": "sides"}, r"data\.drop_overlap=sides is not one of pair, side; .*side"),
        ({"overlap_share": 1.5}, r"data\.overlap_share=1\.5 must be at least 0 and at most 1"),
        ({"overlap_share": float("nan")}, r"data\.overlap_share=nan must be"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        data(**settings)


def test_words_have_no_case_and_no_punctuation() -> None:
    assert words_of("日本。 Ünï_1 don't") == ["日", "本", "ünï", "don", "t"]


def test_vowel_signs_make_a_difference_and_characters_of_text_without_spaces_are_words() -> None:
    text = [HeldOutPair(("hi", "zh"), "वह का है", "我非常喜欢我家里的那只狗,它也喜欢我。")]
    pairs: list[Pair] = [("वह की है", "他"), ("वह का है।", "他"), ("हाँ", "你说,我非常喜欢我家里的那只猫。")]
    languages = {"source_lang": "hi", "target_lang": "zh"}
    assert kept(data(drop_overlap="side", **languages), pairs, text) == [pairs[0], pairs[2]]
    assert kept(data(overlap_share=0.3, **languages), pairs, text) == pairs[:2]
