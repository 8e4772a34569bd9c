"""The vocabulary grows with the text, can always be learned, and stays that of a prepared corpus."""

import random
from pathlib import Path

import pytest

from nmt.config.commands import LANGUAGES, OF_DATA
from nmt.config.compose import compose
from nmt.config.data import TokenizerConfig
from nmt.config.keys import with_values
from nmt.config.tree import Config
from nmt.data.prepare import prepare
from nmt.data.prepared import require_prepared
from nmt.errors import UserError
from nmt.own_text.complete import (
    TextSize,
    measure_text,
    share_to_hold_out,
    values_for_text,
    vocabulary_for,
    with_values_for_text,
)
from nmt.text.train_tokenizer import train
from tests.integration.toy import pairs

CAPTIONS = TextSize(characters=4_000_000, words=40_000, alphabet=100)
"""About the size of 29 thousand captions on both sides."""


def write(folder: Path, lines: list[tuple[str, str]], **further: object) -> Config:
    """Write two files, and return the settings of a run on them that gives nothing else."""
    for side, language in enumerate(("en", "de")):
        (folder / f"train.{language}").write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    words = [f"data.train=[{folder}/train.en,{folder}/train.de]", f"paths.data={folder}/data"]
    words += [f"paths.outputs={folder}/outputs", *(f"{name}={value}" for name, value in further.items())]
    return compose(["experiment=own", *words])


def _completed(config: Config) -> Config:
    return with_values_for_text(config, frozenset({"data.train"}))


def completed(config: Config) -> int:
    return _completed(config).tokenizer.vocab_size


def test_vocabulary_grows_with_the_text_within_limits() -> None:
    sizes = [CAPTIONS._replace(characters=10**power, words=10**power) for power in range(4, 11)]
    found = [vocabulary_for(size) for size in sizes]
    assert found == sorted(found)
    assert found[-1] == 32_000
    assert vocabulary_for(CAPTIONS) == 12_000
    assert vocabulary_for(CAPTIONS._replace(characters=400_000)) == pytest.approx(12_000 / 10**0.2, abs=50)


def test_text_with_many_characters_has_a_piece_for_each() -> None:
    assert vocabulary_for(CAPTIONS._replace(alphabet=5000, characters=10_000)) == 10_000


@pytest.mark.parametrize("words", [60, 300, 3000])
def test_tokenizer_can_be_trained_with_the_vocabulary_of_its_text(words: int) -> None:
    random.seed(words)
    known = ["".join(random.choices("abcdefghijklmnoprstuvwz", k=random.randint(2, 9))) for _ in range(words)]
    lines = [" ".join(random.choices(known, k=8)) for _ in range(words)]
    text = " ".join(lines)
    size = TextSize(len(text), len(set(text.split())), len(set(text)))
    model, _ = train(lines, len(lines), TokenizerConfig(vocab_size=vocabulary_for(size)))
    assert model


def test_size_is_that_of_the_pairs_that_are_not_held_out(tmp_path: Path) -> None:
    config = write(tmp_path, [("a bc d", "x"), ("a a", "yz y")], **{"data.hold_out": 0})
    together = TextSize(len("a bc d x") + len("a a yz y"), len({"a", "bc", "d", "x", "yz", "y"}), 8)
    assert measure_text(config) == together
    apart = with_values(config, {"tokenizer.joint": False, "model.tie_embeddings": False})
    assert measure_text(apart) == TextSize(characters=len("x yz y "), words=3, alphabet=len("abcd "))
    config = write(tmp_path, pairs(400, 1), **{"data.hold_out": 0.2})
    everything = sum(len(" ".join(pair)) for pair in pairs(400, 1))
    assert 0.5 * everything < measure_text(config).characters < 0.7 * everything


def test_size_is_that_of_the_pairs_that_filters_keep(tmp_path: Path) -> None:
    lines = [("a bc d", "x"), ("a a", "yz y"), ("e", "")]
    config = write(tmp_path, lines, **{"data.hold_out": 0, "data.max_words": 2})
    assert measure_text(config) == TextSize(len("a a yz y"), 3, 4)


@pytest.mark.parametrize("further", [{"data.max_words": 5}, {"tokenizer.joint": False, "model.tie_embeddings": False}])
def test_text_with_a_small_side_or_few_short_pairs_can_be_prepared(tmp_path: Path, further: dict[str, object]) -> None:
    short = [(f"{source} now", "perhaps, or certainly not") for source in ("one", "two", "three", "four")]
    lines = [*short * 20, *((source, "yes, or no, or maybe later") for source, _ in pairs(300, 1))]
    config = _completed(write(tmp_path, lines, **{"data.hold_out": 0.1}, **further))
    assert prepare(config, say=lambda _: None).tokenizer().target_vocabulary == config.tokenizer.vocab_size


def test_text_that_grew_is_the_reason_why_training_refuses_it(tmp_path: Path) -> None:
    prepare(_completed(write(tmp_path, pairs(200, 1))), say=lambda _: None)
    grown = _completed(write(tmp_path, pairs(9000, 2)))
    with pytest.raises(UserError, match=r"was prepared from other text of test than data\.train=\[.*\] has now: run"):
        require_prepared(grown)


def test_text_that_is_missing_or_empty_leaves_the_vocabulary_as_it_is(tmp_path: Path) -> None:
    config = write(tmp_path, pairs(40, 1))
    usual = config.tokenizer.vocab_size
    named = dict(zip(LANGUAGES, ("en", "de"), strict=True))
    assert completed(config) != usual
    (tmp_path / "train.de").write_text("")
    assert (values_for_text(config, OF_DATA), completed(config)) == (named, usual)
    (tmp_path / "train.de").unlink()
    assert (values_for_text(config, OF_DATA), completed(config)) == (named, usual)


def test_prepared_corpus_keeps_its_vocabulary_until_its_text_changes(tmp_path: Path) -> None:
    small = {"data.hold_out": 0.1, "tokenizer.vocab_size": 150}
    config = write(tmp_path, pairs(120, 1), **small)
    prepare(config, say=lambda _: None)
    config = write(tmp_path, pairs(120, 1), **{"data.hold_out": 0.1})
    assert completed(config) == 150
    (tmp_path / "train.de").rename(tmp_path / "moved")
    assert completed(config) == 150
    config = write(tmp_path, pairs(600, 2), **{"data.hold_out": 0.1})
    assert completed(config) not in (150, config.tokenizer.vocab_size)


class _InterruptedError(Exception):
    pass


def test_vocabulary_after_an_interrupted_preparation_is_that_of_the_new_text(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("tokenizer: "):
            raise _InterruptedError

    prepare(_completed(write(tmp_path, pairs(120, 1), **{"data.hold_out": 0.1})), say=lambda _: None)
    config = write(tmp_path, pairs(600, 2), **{"data.hold_out": 0.1})
    new = _completed(config)
    with pytest.raises(_InterruptedError):
        prepare(new, say=interrupt)
    assert _completed(config) == new
    prepare(_completed(config), say=lambda _: None)
    assert _completed(config) == new


@pytest.mark.parametrize(
    ("pairs", "share"), [(0, 0.05), (5, 0.05), (2000, 0.05), (10_000, 0.03), (29_000, 0.01), (1_000_000, 0.01)]
)
def test_short_texts_hold_out_a_larger_share(pairs: int, share: float) -> None:
    assert share_to_hold_out(pairs) == share


def test_held_out_share_is_derived_and_stays_that_of_a_prepared_corpus(tmp_path: Path) -> None:
    def share(config: Config, *given: str) -> float:
        return with_values_for_text(config, frozenset({"data.train", *given})).data.hold_out

    config = write(tmp_path, pairs(9000, 1))
    assert share(config) == round(300 / 9000, 3)
    assert share(config, "data.hold_out") == config.data.hold_out == 0.01
    with_tests = [f"data.{split}=[{tmp_path}/train.en,{tmp_path}/train.de]" for split in ("valid", "test")]
    assert share(compose(["experiment=own", f"data.train={config.data.train}", *with_tests])) == 0.01
    config = write(tmp_path, pairs(200, 1), **{"data.hold_out": 0.2})
    prepare(with_values_for_text(config, frozenset({"data.train", "data.hold_out"})), say=lambda _: None)
    assert share(write(tmp_path, pairs(200, 1))) == 0.2


def test_languages_are_those_of_the_file_names_and_stay_those_of_a_prepared_corpus(tmp_path: Path) -> None:
    def languages(config: Config, *given: str) -> tuple[str, str]:
        data = with_values_for_text(config, frozenset({"data.train", *given})).data
        return data.source_lang, data.target_lang

    def renamed(*endings: str, **further: object) -> Config:
        config = write(tmp_path, pairs(200, 1), **further)
        files = [tmp_path / f"text.{ending}" for ending in endings]
        for file, language in zip(files, ("en", "de"), strict=True):
            (tmp_path / f"train.{language}").replace(file)
        return with_values(config, {"data.train": list(map(str, files))})

    assert languages(renamed("fr", "pt-BR")) == ("fr", "pt-BR")
    assert languages(renamed("de", "en")) == ("de", "en")
    assert languages(renamed("fr", "es", **{"training.init_from": "other"})) == ("fr", "es")
    assert languages(renamed("source", "target")) == ("en", "de")
    assert languages(renamed("fr", "es", **{"data.target_lang": "it"}), "data.target_lang") == ("fr", "it")
    assert languages(renamed("fr", "es", **{"own.derive": "false"})) == ("en", "de")
    earlier = renamed("fr", "es")
    vocabulary = {"tokenizer.vocab_size": 150}
    prepare(with_values(earlier, vocabulary), say=lambda _: None)  # as versions did that did not look at the names
    assert languages(earlier) == ("en", "de")
    elsewhere = {"data.train": ["s3://none/train.ja", "s3://none/train.ko"]}
    assert languages(with_values(earlier, elsewhere)) == ("ja", "ko")
