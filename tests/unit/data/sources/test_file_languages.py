"""The names of files say languages, but only those that differ by nothing else."""

from pathlib import Path

import pytest

from nmt.config.data import DataConfig
from nmt.data.sources.file_languages import languages_in_names, named_languages


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("train.en", "train.fr", ("en", "fr")),
        ("train.fr", "train.en", ("fr", "en")),
        ("train.en", "train.es", ("en", "es")),
        ("text/train.en.gz", "text/train.ja.gz", ("en", "ja")),
        ("train.en.txt.xz", "train.hr.txt.xz", ("en", "hr")),
        ("europarl-v7.de-en.en", "europarl-v7.de-en.de", ("en", "de")),
        ("s3://mine/en/train.txt", "s3://mine/cs/train.txt", ("en", "cs")),
        ("en.txt", "zh_CN.txt", ("en", "zh_CN")),
        ("dev.en-GB", "dev.pt-BR", ("en-GB", "pt-BR")),
        ("dev.eng_Latn", "dev.arb_Arab", ("eng_Latn", "arb_Arab")),
        ("dev.eng_Latn", "dev.fra_Latn", ("eng_Latn", "fra_Latn")),
        ("train.en-US", "train.es-US", ("en-US", "es-US")),
        ("train.en.txt", "train.es-419.txt", ("en", "es-419")),
        ("x.zh_CN", "x.zh_TW", ("zh_CN", "zh_TW")),
        ("a.en", "b.de", ("en", "de")),
        ("en/train.en", "de/train.de", ("en", "de")),
        ("train.en", "train.de.gz", ("en", "de")),
        ("corpus_en.txt", "corpus_de.txt", ("en", "de")),
        ("en", "de", ("en", "de")),
    ],
)
def test_languages_are_found(source: str, target: str, expected: tuple[str, str]) -> None:
    assert languages_in_names(source, target) == expected


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("train.src", "train.tgt"),
        ("source.txt", "target.txt"),
        ("a.en", "b.txt"),
        ("a.en", "b.en"),
        ("train.en", "train.en"),
        ("train.en", "train.trees"),
        ("train.1", "train.2"),
        ("", ""),
        ("train.EN", "train.DE"),
    ],
)
def test_other_names_say_none(source: str, target: str) -> None:
    assert languages_in_names(source, target) is None


def test_only_files_of_one_side_each_say_languages(tmp_path: Path) -> None:
    def named(train: list[str], **more: list[str]) -> tuple[str, str] | None:
        return named_languages(DataConfig(source="files", train=train, **{"valid": [], "test": [], **more}))  # type: ignore[arg-type]

    (tmp_path / "eu").mkdir()
    (tmp_path / "un").mkdir()
    assert named(["a.fr", "a.es"]) == ("fr", "es")
    assert named([f"{tmp_path}/eu", f"{tmp_path}/un"]) is None
    assert named(["hr.csv", "it.csv"]) is None
    assert named(["a.fr.parquet", "a.es.parquet"]) is None
    assert named(["table"], valid=["a.fr", "a.es"]) == ("fr", "es")
    assert named(["table"], valid=["valid"], test=["a.fr", "a.es"]) == ("fr", "es")
    assert named(["a.fr", "a.es", "b.it"]) is None
    assert named_languages(DataConfig(source="hub", train=["a.fr", "a.es"])) is None
