"""The names of files say languages, but only those that differ by nothing else."""

import pytest

from nmt.data.sources.file_languages import languages_in_names


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
        ("a.en", "b.de"),
        ("train.en", "train.en.de"),
        ("train.en", "train.de.gz"),
        ("train.en", "train.en"),
        ("train.en", "train.trees"),
        ("x.zh_CN", "x.zh_TW"),
        ("train.1", "train.2"),
        ("", ""),
        ("train.EN", "train.DE"),
    ],
)
def test_other_names_say_none(source: str, target: str) -> None:
    assert languages_in_names(source, target) is None
