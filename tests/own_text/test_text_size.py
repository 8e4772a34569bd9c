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
from tests.integration.toy import pairs, write_pairs


def write(folder: Path, lines: list[tuple[str, str]], **further: object) -> Config:
    """Write two files, and return the settings of a run on them that gives nothing else."""
    words = [f"data.train={write_pairs(folder / 'train', lines)}", f"paths.data={folder}/data"]
    words += [f"paths.outputs={folder}/outputs", *(f"{name}={value}" for name, value in further.items())]
    return compose(["experiment=own", *words])


def completed(config: Config, *given: str) -> Config:
    return with_values_for_text(config, {"data.train", *given})


def vocabulary(config: Config) -> int:
    return completed(config).tokenizer.vocab_size


def test_vocabulary_grows_with_the_text_within_limits_and_has_a_piece_for_each_character() -> None:
    found = [vocabulary_for(TextSize(10**power, 10**power, 100)) for power in range(4, 11)]
    assert found == sorted(found)
    assert found[-1] == 32_000
    captions = TextSize(characters=4_000_000, words=40_000, alphabet=100)  # about those of Multi30k
    assert vocabulary_for(captions) == 12_000
    assert vocabulary_for(captions._replace(characters=400_000)) == pytest.approx(12_000 / 10**0.2, abs=50)
    assert vocabulary_for(captions._replace(alphabet=5000, characters=10_000)) == 10_000


@pytest.mark.parametrize("words", [60, 300, 3000])
def test_tokenizer_can_be_trained_with_the_vocabulary_of_its_text(words: int) -> None:
    random.seed(words)
    known = ["".join(random.choices("abcdefghijklmnoprstuvwz", k=random.randint(2, 9))) for _ in range(words)]
    lines = [" ".join(random.choices(known, k=8)) for _ in range(words)]
    text = " ".join(lines)
    size = TextSize(len(text), len(set(text.split())), len(set(text)))
    model, _ = train(lines, len(lines), TokenizerConfig(vocab_size=vocabulary_for(size)))
    assert model


def test_size_is_that_of_the_pairs_that_are_kept_for_training(tmp_path: Path) -> None:
    lines = [("a bc d", "x"), ("a a", "yz y"), ("e", "")]
    config = write(tmp_path, lines, **{"data.hold_out": 0})
    together = TextSize(len("a bc d x") + len("a a yz y"), len({"a", "bc", "d", "x", "yz", "y"}), 8)
    assert measure_text(config) == together
    assert measure_text(with_values(config, {"data.max_words": 2})) == TextSize(len("a a yz y"), 3, 4)
    apart = with_values(config, {"tokenizer.joint": False, "model.tie_embeddings": False})
    assert measure_text(apart) == TextSize(characters=len("x yz y "), words=3, alphabet=len("abcd "))
    config = write(tmp_path, pairs(400, 1), **{"data.hold_out": 0.2})
    everything = sum(len(" ".join(pair)) for pair in pairs(400, 1))
    assert 0.5 * everything < measure_text(config).characters < 0.7 * everything


@pytest.mark.parametrize("further", [{"data.max_words": 5}, {"tokenizer.joint": False, "model.tie_embeddings": False}])
def test_text_with_a_small_side_or_few_short_pairs_can_be_prepared(tmp_path: Path, further: dict[str, object]) -> None:
    short = [(f"{source} now", "perhaps, or certainly not") for source in ("one", "two", "three", "four")]
    lines = [*short * 20, *((source, "yes, or no, or maybe later") for source, _ in pairs(300, 1))]
    config = completed(write(tmp_path, lines, **{"data.hold_out": 0.1}, **further))
    assert prepare(config, say=lambda _: None).tokenizer().target_vocabulary == config.tokenizer.vocab_size


def test_text_that_grew_is_the_reason_why_training_refuses_it(tmp_path: Path) -> None:
    prepare(completed(write(tmp_path, pairs(200, 1))), say=lambda _: None)
    grown = completed(write(tmp_path, pairs(9000, 2)))
    with pytest.raises(UserError, match=r"was prepared from other text of test than data\.train=\[.*\] has now: run"):
        require_prepared(grown)


def test_text_that_is_missing_or_empty_leaves_the_vocabulary_as_it_is(tmp_path: Path) -> None:
    config = write(tmp_path, pairs(40, 1))
    usual = config.tokenizer.vocab_size
    named = dict(zip(LANGUAGES, ("en", "de"), strict=True))
    assert vocabulary(config) != usual
    (tmp_path / "train.de").write_text("")
    assert (values_for_text(config, OF_DATA), vocabulary(config)) == (named, usual)
    (tmp_path / "train.de").unlink()
    assert (values_for_text(config, OF_DATA), vocabulary(config)) == (named, usual)


def test_prepared_corpus_keeps_its_vocabulary_until_its_text_changes(tmp_path: Path) -> None:
    small = {"data.hold_out": 0.1, "tokenizer.vocab_size": 150}
    config = write(tmp_path, pairs(120, 1), **small)
    prepare(config, say=lambda _: None)
    config = write(tmp_path, pairs(120, 1), **{"data.hold_out": 0.1})
    assert vocabulary(config) == 150
    (tmp_path / "train.de").rename(tmp_path / "moved")
    assert vocabulary(config) == 150
    config = write(tmp_path, pairs(600, 2), **{"data.hold_out": 0.1})
    assert vocabulary(config) not in (150, config.tokenizer.vocab_size)


class _InterruptedError(Exception):
    pass


def test_vocabulary_after_an_interrupted_preparation_is_that_of_the_new_text(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("tokenizer: "):
            raise _InterruptedError

    prepare(completed(write(tmp_path, pairs(120, 1), **{"data.hold_out": 0.1})), say=lambda _: None)
    config = write(tmp_path, pairs(600, 2), **{"data.hold_out": 0.1})
    new = completed(config)
    with pytest.raises(_InterruptedError):
        prepare(new, say=interrupt)
    assert completed(config) == new
    prepare(completed(config), say=lambda _: None)
    assert completed(config) == new


def test_share_to_hold_out_falls_with_the_text_and_stays_that_of_a_prepared_corpus(tmp_path: Path) -> None:
    shares = {0: 0.05, 2000: 0.05, 10_000: 0.03, 29_000: 0.01, 1_000_000: 0.01}
    assert {size: share_to_hold_out(size) for size in shares} == shares
    config = write(tmp_path, pairs(9000, 1))
    assert completed(config).data.hold_out == round(300 / 9000, 3)
    assert completed(config, "data.hold_out").data.hold_out == config.data.hold_out == 0.01
    with_tests = {f"data.{split}": config.data.train for split in ("valid", "test")}
    assert completed(with_values(config, with_tests)).data.hold_out == 0.01
    config = write(tmp_path, pairs(200, 1), **{"data.hold_out": 0.2})
    prepare(completed(config, "data.hold_out"), say=lambda _: None)
    assert completed(write(tmp_path, pairs(200, 1))).data.hold_out == 0.2


def test_languages_are_those_of_the_file_names_and_stay_those_of_a_prepared_corpus(tmp_path: Path) -> None:
    def languages(config: Config, *given: str) -> tuple[str, str]:
        data = completed(config, *given).data
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
    prepare(
        with_values(earlier, {"tokenizer.vocab_size": 150}), say=lambda _: None
    )  # as versions did that did not look at the names
    assert languages(earlier) == ("en", "de")
    elsewhere = {"data.train": ["s3://none/train.ja", "s3://none/train.ko"]}
    assert languages(with_values(earlier, elsewhere)) == ("ja", "ko")
