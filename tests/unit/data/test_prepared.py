"""A prepared corpus is refused if the settings name other text than it was prepared from."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.tree import Config, PathsConfig
from nmt.data import prepare
from nmt.data.prepared import require_prepared, require_text
from nmt.errors import UserError
from tests.unit.data.corpus import KilledError, append, killed, with_data, with_tokenizer

SPLITS = ("train", "valid", "test")


@pytest.fixture
def prepared(config: Config) -> Config:
    prepare.prepare(config, lambda _: None)
    return config


@pytest.mark.parametrize(
    ("changes", "of_test", "message"),
    [
        ({"max_pieces": 41}, False, r"data\.max_pieces=40, not 41"),
        ({"train": ["no.en", "no.de"]}, False, r"data\.train=\[.*en.*de\], not \[no\.en,no\.de\]"),
        ({"test": ["no.en", "no.de"]}, True, r"data\.test=\[.*en.*de\], not \[no\.en,no\.de\]"),
        ({"target_lang": "fr"}, True, r"data\.target_lang=de, not fr"),
        ({"tag": "@de@"}, True, r"data\.tag=, not @de@"),
        (
            {"source": "hub", "train": ["train"]},
            False,
            r"data\.source=files, not hub; data\.train=\[.*\], not \[train\]",
        ),
    ],
)
def test_changed_settings_are_refused_with_both_values(
    prepared: Config, changes: dict[str, Any], of_test: bool, message: str
) -> None:
    require_prepared(prepared)
    changed, expected = with_data(prepared, **changes), f"prepared with {message}: run `make data` .*data.corpus"
    with pytest.raises(UserError, match=expected) as refused:
        require_prepared(changed)
    assert "\n" not in str(refused.value)
    if of_test:
        with pytest.raises(UserError, match=expected):
            require_text(changed, ["test"])
    else:
        require_text(changed, ["valid"])


def test_other_text_under_the_same_name_is_refused(prepared: Config) -> None:
    for raw in prepared.data.train:
        append(raw, "more\n")
    with pytest.raises(UserError, match=r"from other files than there are now \(collect train\): run `make"):
        require_prepared(prepared)
    require_text(prepared, ["test"])


def test_unprepared_and_interrupted_corpora_are_refused(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"is not prepared, or .* \(collect test\): run `make data`"):
        require_prepared(config)
    require_text(config, SPLITS)
    prepare.prepare(config, lambda _: None)
    for raw in config.data.train:
        append(raw, "more\n")
    for function in ("tokenizer_task", "_encode"):
        with monkeypatch.context() as patch:
            patch.setattr(prepare, function, killed)
            with pytest.raises(KilledError):
                prepare.prepare(config, lambda _: None)
        with pytest.raises(UserError, match=r"is not prepared, or .* \((tokenizer|encode test)\): run `make data`"):
            require_prepared(config)
    prepare.prepare(config, lambda _: None)
    require_prepared(config)


def test_interrupted_preparation_keeps_the_settings_of_the_finished_one(prepared: Config) -> None:
    other = with_data(prepared, train=prepared.data.valid)
    with pytest.raises(UserError, match="vocab_size=9000"):
        prepare.prepare(with_tokenizer(other, vocab_size=9000), lambda _: None)
    with pytest.raises(UserError, match=r"from other files .* \(collect train\)"):
        require_prepared(prepared)


def test_raw_files_and_prepared_folders_may_be_moved(prepared: Config, tmp_path: Path) -> None:
    moved = {split: [shutil.copy(raw, f"{raw}.moved") for raw in getattr(prepared.data, split)] for split in SPLITS}
    for split in SPLITS:
        for raw in getattr(prepared.data, split):
            Path(raw).unlink()
    require_prepared(prepared)
    require_text(prepared, SPLITS)
    require_prepared(with_data(prepared, **moved))
    shutil.move(tmp_path / "data", tmp_path / "elsewhere")
    require_prepared(replace(prepared, paths=PathsConfig(data=str(tmp_path / "elsewhere"))))


def test_tokenizer_of_another_folder_is_refused(
    prepared: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(prepared.data_folder, tmp_path / "first")
    with pytest.raises(UserError, match=r"prepared with tokenizer\.vocab_size=100, not 80: run `make data`"):
        require_prepared(with_tokenizer(prepared, vocab_size=80))
    prepare.prepare(with_tokenizer(prepared, vocab_size=90), lambda _: None)
    shutil.copytree(prepared.data_folder, tmp_path / "second")
    kept = with_tokenizer(prepared, folder=str(tmp_path / "first"))
    prepare.prepare(kept, lambda _: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    for same in (kept, with_tokenizer(kept, folder="~/first")):
        require_prepared(same)
        prepare.prepare(same, lambda _: None)
    prepare.prepare(kept, lambda _: None)
    for other in ("second", "gone"):
        with pytest.raises(UserError, match=rf"tokenizer\.folder=.*/first, not .*/{other}: "):
            require_prepared(with_tokenizer(kept, folder=str(tmp_path / other)))
    shutil.move(tmp_path / "first", tmp_path / "moved")
    require_prepared(kept)
    require_prepared(with_tokenizer(kept, folder=str(tmp_path / "moved")))
    apart = replace(kept, model=replace(kept.model, tie_embeddings=False))
    with pytest.raises(
        UserError, match=r"has one vocabulary, but .*set tokenizer\.joint=true, or tokenizer\.folder=''"
    ):
        prepare.prepare(with_tokenizer(apart, joint=False, folder=str(tmp_path / "moved")), lambda _: None)
