"""Sources: each gives pairs in the configured direction, and a fingerprint of their content."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from nmt.config.data import DataConfig
from nmt.data.sources import registry
from nmt.demo import source as demo
from nmt.errors import UserError


def shard(path: Path, name: str, rows: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = [{"translation": {"de": f"{name} {row} deutsch", "en": f"{name} {row} english"}} for row in range(rows)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """Return a local folder in the Hub's layout."""
    root = tmp_path / "wmt"
    for split, count in (("train", 2), ("validation", 1), ("test", 1)):
        for number in range(count):
            shard(root / "de-en" / f"{split}-0000{number}-of-0000{count}.parquet", f"{split} {number}")
    return root


@pytest.mark.parametrize("name", ["plain", "data [v2]", "*"])
def test_hub_folder_of_any_name_is_read(hub: Path, name: str) -> None:
    hub = hub.rename(hub.with_name(name))
    config = DataConfig(hub_revision="mine", hub_dataset=str(hub))
    pairs = list(registry.pairs(config, "train"))
    assert pairs[0] == ("train 0 0 english", "train 0 0 deutsch")
    assert [source.split()[1:3] for source, _ in pairs] == [[a, b] for a in "01" for b in "012"]
    assert list(registry.pairs(config, "valid"))[2] == ("validation 0 2 english", "validation 0 2 deutsch")


def test_hub_direction_is_swapped_by_the_languages(hub: Path) -> None:
    config = DataConfig(hub_revision="mine", hub_dataset=str(hub), source_lang="de", target_lang="en")
    assert next(registry.pairs(config, "test")) == ("test 0 0 deutsch", "test 0 0 english")


def test_hub_errors_name_the_cause(hub: Path) -> None:
    with pytest.raises(UserError, match="has the columns de, en, translation, but not en and fr"):
        next(registry.pairs(DataConfig(hub_revision="mine", hub_dataset=str(hub), target_lang="fr"), "train"))
    with pytest.raises(UserError, match="no shards of dev"):
        registry.pairs(DataConfig(hub_revision="mine", hub_dataset=str(hub), valid=["dev"]), "valid")
    with pytest.raises(UserError, match="no shards of trian"):
        registry.pairs(DataConfig(hub_revision="mine", hub_dataset=str(hub), train=["train", "trian"]), "train")
    damaged = hub / "de-en" / "train-00001-of-00002.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"train-00001-of-00002\.parquet is not a whole Parquet file"):
        list(registry.pairs(DataConfig(hub_revision="mine", hub_dataset=str(hub)), "train"))
    damaged.unlink()
    with pytest.raises(UserError, match=r"train-00001-of-00002\.parquet is missing, though train-00000"):
        registry.pairs(DataConfig(hub_revision="mine", hub_dataset=str(hub)), "train")


def test_hub_without_network_names_alternatives() -> None:
    with pytest.raises(UserError, match=r"cannot fetch wmt/wmt14 .*data\.source=files.*experiment=demo") as error:
        registry.pairs(DataConfig(), "train")
    assert "\n" not in str(error.value)


def test_hub_fingerprint_is_its_revision() -> None:
    configs = [
        DataConfig(),
        DataConfig(hub_revision="f" * 40),
        DataConfig(hub_config="fr-en"),
        DataConfig(hub_dataset="a/b"),
    ]
    prints = [registry.fingerprint(config, "train") for config in configs]
    assert all(left != right for i, left in enumerate(prints) for right in prints[:i])
    assert registry.fingerprint(DataConfig(), "train") != registry.fingerprint(DataConfig(), "test")


def files_config(folder: Path) -> DataConfig:
    for name, text in (("a.en", "one\ntwo\n"), ("a.de", "eins\nzwei\n")):
        (folder / name).write_text(text)
    names = [str(folder / "a.en"), str(folder / "a.de")]
    return DataConfig(source="files", train=names, valid=names, test=[])


def test_hub_training_with_a_test_set_of_files(hub: Path, tmp_path: Path) -> None:
    files = files_config(tmp_path).train
    config = DataConfig(hub_revision="mine", hub_dataset=str(hub), test=files)
    assert list(registry.pairs(config, "test")) == [("one", "eins"), ("two", "zwei")]
    assert len(list(registry.pairs(config, "train"))) == 6
    assert registry.fingerprint(config, "test") == registry.fingerprint(files_config(tmp_path), "train")


@pytest.mark.parametrize("named", [{"valid": [], "test": []}, {"test": []}, {"valid": []}])
def test_held_out_pairs_are_not_in_the_training_text(tmp_path: Path, named: dict[str, Any]) -> None:
    pairs = [(f"sentence {number // 2}", f"Satz {number}") for number in range(2000)]
    names = [str(tmp_path / f"own.{language}") for language in ("en", "de")]
    for name, side in zip(names, zip(*pairs, strict=True), strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in side))
    whole = DataConfig(source="files", train=names, valid=["v.parquet"], test=["t.parquet"])
    config = replace(whole, hold_out=0.1, **named)
    found = {split: list(registry.pairs(config, split)) for split in ("train", *named)}
    assert sorted(pair for split_pairs in found.values() for pair in split_pairs) == sorted(pairs)
    places = [{source for source, _ in split_pairs} for split_pairs in found.values()]
    assert sum(map(len, places)) == 1000  # both pairs of a source sentence are in one split
    for split in named:
        assert 140 <= len(found[split]) <= 260
        assert registry.fingerprint(config, split) == registry.fingerprint(whole, "train")
    assert list(registry.pairs(whole, "train")) == pairs


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda path: os.utime(path, (1, 1)), True),
        (lambda path: path.write_text("one\ntwo!\n"), False),
        (lambda path: path.write_text("two\none\n"), False),
    ],
)
def test_fingerprint_of_files_is_their_content(tmp_path: Path, change: Callable[[Path], object], same: bool) -> None:
    config = files_config(tmp_path)
    before = registry.fingerprint(config, "train")
    change(tmp_path / "a.en")
    assert (registry.fingerprint(config, "train") == before) is same


@pytest.mark.parametrize("source", ["en", "de"])
def test_demo_gives_pairs_and_alignments_in_both_directions(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.setattr(demo, "SIZES", {"train": 3, "valid": 2, "test": 4})
    config = DataConfig(source="demo", source_lang=source, target_lang="de" if source == "en" else "en")
    assert list(registry.source_named("demo").splits) == ["test", "unseen", "valid", "train"]
    alignments = registry.source_of(config, "unseen").alignments
    assert alignments is not None
    drawn = demo.draw(demo.SEED, **demo.SIZES)["unseen"]
    pairs = zip(registry.pairs(config, "unseen"), alignments(config, "unseen"), drawn, strict=True)
    for pair, links, expected in pairs:
        found = expected.sentence.alignment()
        assert (pair, links) == ((expected.pair, found) if source == "en" else (expected.pair[::-1], found.reversed()))


def test_demo_has_no_other_language() -> None:
    with pytest.raises(UserError, match="English and German, or English and trees, not en and fr"):
        registry.pairs(DataConfig(source="demo", target_lang="fr"), "train")
