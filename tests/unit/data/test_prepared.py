"""A prepared corpus is refused if the settings name other text than it was prepared from."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pyarrow
import pyarrow.parquet
import pytest

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import make_tokenizer, prepare
from nmt.data.prepared import require_prepared, require_text
from nmt.errors import UserError
from nmt.storage.files import seal

SPLITS = ("train", "valid", "test")


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_tokenizer, "run_in_process", lambda function, *args: function(*args))


def write_pairs(path: Path, first: int, count: int = 40) -> str:
    numbers = range(first, first + count)
    sides = {"en": [f"number {n} goes" for n in numbers], "de": [f"zahl {n} geht" for n in numbers]}
    pyarrow.parquet.write_table(pyarrow.table(sides), path)
    return str(path)


def with_data(config: Config, **settings: Any) -> Config:
    return replace(config, data=replace(config.data, **settings))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Prepare a small corpus and return its settings."""
    names: dict[str, Any] = {
        split: [write_pairs(tmp_path / f"{split}.parquet", 100 * n)] for n, split in enumerate(SPLITS)
    }
    config = Config(
        data=DataConfig(corpus="toy", source="files", **names),
        tokenizer=TokenizerConfig(vocab_size=60),
        runtime=RuntimeConfig(workers=1),
        paths=PathsConfig(data=str(tmp_path / "data")),
    )
    prepare.prepare(config, lambda _: None)
    return config


@pytest.mark.parametrize("split", SPLITS)
def test_other_files_are_refused_with_both_names(config: Config, tmp_path: Path, split: str) -> None:
    other = write_pairs(tmp_path / "other.parquet", 500)
    changed = with_data(config, **{split: [other]})
    expected = rf"data\.{split}=\[.*/{split}\.parquet\], not \[.*/other\.parquet\]: run `make data` .*data\.corpus\.$"
    with pytest.raises(UserError, match=expected) as refused:
        require_prepared(changed)
    assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match=expected):
        require_text(changed, [split])
    prepare.prepare(changed, lambda _: None)
    require_prepared(changed)


def test_text_that_changed_under_the_same_name_is_refused(config: Config) -> None:
    write_pairs(Path(config.data.train[0]), 7)
    with pytest.raises(
        UserError, match=r"prepared from other text of train than data\.train=\[.*\] has now: run `make"
    ):
        require_prepared(config)
    require_text(config, ["test"])


class KilledError(BaseException):
    """Simulates the end of the process: no code may catch it."""


def killed(*_: object) -> NoReturn:
    raise KilledError


def test_token_ids_of_text_that_was_collected_again_are_refused(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pairs(Path(config.data.train[0]), 7)
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "make_tokenizer", killed)
        with pytest.raises(KilledError):
            prepare.prepare(config, lambda _: None)
    with pytest.raises(UserError, match=r"is not prepared \(encode train\): run `make data`"):
        require_prepared(config)
    prepare.prepare(config, lambda _: None)
    require_prepared(config)


def test_raw_files_may_be_moved_away_or_elsewhere(config: Config, tmp_path: Path) -> None:
    moved = {
        split: [shutil.copy(getattr(config.data, split)[0], f"{tmp_path}/moved-{split}.parquet")] for split in SPLITS
    }
    for split in SPLITS:
        Path(getattr(config.data, split)[0]).unlink()
    require_prepared(config)
    require_text(config, SPLITS)
    require_prepared(with_data(config, **moved))


def test_prepared_folder_may_be_moved(config: Config, tmp_path: Path) -> None:
    shutil.move(tmp_path / "data", tmp_path / "elsewhere")
    require_prepared(replace(config, paths=PathsConfig(data=str(tmp_path / "elsewhere"))))


def test_other_source_is_refused(config: Config) -> None:
    with pytest.raises(UserError, match=r"data\.source=files, not hub; data\.train=\[.*\], not \[train\]"):
        require_prepared(with_data(config, source="hub", train=["train"]))


@pytest.mark.parametrize("setting", ["hub_dataset", "hub_config", "hub_revision"])
def test_other_data_set_of_the_hub_is_refused(config: Config, setting: str) -> None:
    hub = with_data(config, source="hub", hub_dataset="someone/corpus", hub_config="de-en", hub_revision="a" * 40)
    hub = with_data(hub, train=["train"], valid=["validation"], test=["test"])
    edit_manifest(config, lambda content: as_if_from_the_hub(content, hub.data))
    require_prepared(hub)
    with pytest.raises(UserError, match=rf"data\.{setting}=.*, not other: "):
        require_prepared(with_data(hub, **{setting: "other"}))
    with pytest.raises(UserError, match=r"data\.test=\[test\], not \[validation\]: "):
        require_text(with_data(hub, test=["validation"]), ["test"])


def as_if_from_the_hub(content: dict[str, Any], data: DataConfig) -> None:
    content["settings"]["data"] |= {name: getattr(data, name) for name in ("source", "train", "valid", "test")}
    content["settings"]["data"] |= {n: getattr(data, n) for n in ("hub_dataset", "hub_config", "hub_revision")}
    for split in SPLITS:
        content["steps"][f"collect {split}"]["inputs"]["source"] = {
            "dataset": data.hub_dataset,
            "config": data.hub_config,
            "revision": data.hub_revision,
            "splits": getattr(data, split),
        }


def edit_manifest(config: Config, edit: Callable[[dict[str, Any]], None]) -> None:
    path = config.data_folder / "manifest.json"
    content = json.loads(path.read_text())
    edit(content)
    content.pop("seal")
    content["seal"] = seal(content)
    path.write_text(json.dumps(content))


def test_other_languages_and_tags_of_the_test_text_are_refused(config: Config) -> None:
    with pytest.raises(UserError, match=r"data\.target_lang=de, not fr"):
        require_text(with_data(config, target_lang="fr"), ["test"])
    with pytest.raises(UserError, match=r"data\.tag=, not @de@"):
        require_text(with_data(config, tag="@de@"), ["test"])


def test_interrupted_preparation_keeps_the_settings_of_the_finished_one(config: Config, tmp_path: Path) -> None:
    other = with_data(config, train=[write_pairs(tmp_path / "other.parquet", 500)])
    with pytest.raises(UserError, match="vocab_size=9000"):
        prepare.prepare(replace(other, tokenizer=TokenizerConfig(vocab_size=9000)), lambda _: None)
    with pytest.raises(UserError, match="from other text of train than"):
        require_prepared(config)
    (tmp_path / "other.parquet").unlink()
    with pytest.raises(UserError, match=r"data\.train=\[.*\], not \[.*other\.parquet\]"):
        require_prepared(other)


def test_tokenizer_of_another_folder_is_refused(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = replace(config, tokenizer=replace(config.tokenizer, folder=str(tmp_path / "first")))
    shutil.copytree(config.data_folder, tmp_path / "first")
    larger = replace(config, tokenizer=replace(config.tokenizer, vocab_size=58))
    prepare.prepare(larger, lambda _: None)
    shutil.copytree(config.data_folder, tmp_path / "second")
    prepare.prepare(kept, lambda _: None)
    require_prepared(kept)
    monkeypatch.setenv("HOME", str(tmp_path))
    at_home = replace(kept, tokenizer=replace(kept.tokenizer, folder="~/first"))
    require_prepared(at_home)
    for each in (at_home, kept):
        prepare.prepare(each, lambda _: None)
    other = replace(kept, tokenizer=replace(kept.tokenizer, folder=str(tmp_path / "second")))
    with pytest.raises(UserError, match=r"tokenizer\.folder=.*/first, not .*/second: "):
        require_prepared(other)
    gone = replace(kept, tokenizer=replace(kept.tokenizer, folder=str(tmp_path / "gone")))
    with pytest.raises(UserError, match=r"tokenizer\.folder=.*/first, not .*/gone: "):
        require_prepared(gone)
    shutil.move(tmp_path / "first", tmp_path / "moved")
    require_prepared(kept)
    require_prepared(replace(kept, tokenizer=replace(kept.tokenizer, folder=str(tmp_path / "moved"))))


def test_tokenizer_with_another_number_of_vocabularies_is_not_kept(config: Config, tmp_path: Path) -> None:
    shutil.copytree(config.data_folder, tmp_path / "joint")
    apart = replace(config, model=replace(config.model, tie_embeddings=False))
    apart = replace(apart, tokenizer=replace(config.tokenizer, joint=False, folder=str(tmp_path / "joint")))
    with pytest.raises(
        UserError, match=r"has one vocabulary, but .*set tokenizer\.joint=true, or tokenizer\.folder=''"
    ):
        prepare.prepare(apart, lambda _: None)
