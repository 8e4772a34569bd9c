"""The Hub's real client with a local Hub: damaged files, and no network."""

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pyarrow
import pyarrow.parquet
import pytest

from nmt.config.data import DataConfig
from nmt.data.sources import registry
from nmt.errors import UserError
from tests.unit.data.sources.small_hub import SmallHub, serving, shard

FIRST, SECOND = (f"de-en/train-0000{number}-of-00002.parquet" for number in (0, 1))
ROWS = {FIRST: 900, SECOND: 300, "de-en/validation-00000-of-00001.parquet": 7, "de-en/test-00000-of-00001.parquet": 5}


def repository() -> dict[str, bytes]:
    """Return two configurations, one in the layout of WMT14."""
    files = {name: shard(("de", "en"), name.split("/")[1].split("-of")[0], rows) for name, rows in ROWS.items()}
    return {"README.md": b"# WMT14\n", "fr-en/test.csv": b"en,fr\none,un\n", **files}


@pytest.fixture
def small_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallHub]:
    """Connect the client to a small Hub, with an empty cache and without waiting."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache [v2]"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with serving(repository()) as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield server


def train(config: DataConfig | None = None) -> list[tuple[str, str]]:
    return list(registry.pairs(config or DataConfig(), "train"))


def test_pairs_come_in_order_and_in_the_configured_direction(small_hub: SmallHub, tmp_path: Path) -> None:
    pairs = train()
    assert len(pairs) == 1200
    assert pairs[0] == ("train-00000 0 en", "train-00000 0 de")
    assert pairs[-1] == ("train-00001 299 en", "train-00001 299 de")
    german = DataConfig(source_lang="de", target_lang="en")
    assert next(registry.pairs(german, "valid")) == ("validation-00000 0 de", "validation-00000 0 en")
    french = DataConfig(hub_config="fr-en", target_lang="fr")
    assert list(registry.pairs(french, "test")) == [("one", "un")]
    (tmp_path / "a.en").write_text("one\ntwo\n")
    assert list(registry.pairs(DataConfig(test=[f"{tmp_path}/a.en"] * 2), "test")) == [("one", "one"), ("two", "two")]
    assert train() == pairs
    assert small_hub.sends == dict.fromkeys({*repository()} - {"README.md", "de-en/test-00000-of-00001.parquet"}, 1)


@pytest.mark.parametrize("columns", [["text.en", "text.de"], ["translation.de", "text.en"]])
def test_columns_whose_names_have_dots_are_found(small_hub: SmallHub, tmp_path: Path, columns: list[str]) -> None:
    table = pyarrow.table({"text.en": ["one"], "text.de": ["eins"], "translation": [{"de": "eins"}], "id": [1]})
    pyarrow.parquet.write_table(table, tmp_path / "table")
    small_hub.files["dots/test.parquet"] = (tmp_path / "table").read_bytes()
    found = list(registry.pairs(DataConfig(hub_config="dots", columns=columns), "test"))
    assert found == [("one", "eins") if columns[0] == "text.en" else ("eins", "one")]


@pytest.mark.usefixtures("small_hub")
def test_data_sets_that_do_not_exist_are_refused() -> None:
    for config, message in (
        (DataConfig(hub_dataset="wmt/other"), r"cannot fetch wmt/other .*\(.*404"),
        (DataConfig(hub_dataset="/home/me/copy"), r"cannot fetch /home/me/copy .*data\.source=files data\.train="),
        (DataConfig(hub_config="cs-en"), r"holds no shards cs-en/train-\*\.parquet: check data\.hub_config"),
        (DataConfig(train=["train", "extra"]), "holds no shards of extra: check the names of the splits"),
    ):
        with pytest.raises(UserError, match=message):
            train(config)


def test_damaged_files_are_refused_and_fetched_again(small_hub: SmallHub, tmp_path: Path) -> None:
    small_hub.sent[FIRST] = small_hub.files[FIRST][:-1000]
    with pytest.raises(UserError, match=r"cannot fetch .*(size|[Ii]ncomplete|closed|end)[^\n]*$"):
        train()
    small_hub.sent[FIRST] = small_hub.files[FIRST][:5000] + b"?" + small_hub.files[FIRST][5001:]
    with pytest.raises(UserError, match=r"train-00000-of-00002.parquet of wmt/wmt14 .* arrived damaged: run"):
        train()
    del small_hub.sent[FIRST]
    assert len(train()) == 1200
    assert small_hub.sends[SECOND] == 1


def test_cache_is_enough_without_a_network(small_hub: SmallHub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(list(registry.pairs(DataConfig(), "test"))) == 5
    small_hub.is_down = True
    for offline in (False, True):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
        assert len(list(registry.pairs(DataConfig(), "test"))) == 5
        with pytest.raises(UserError, match=r"holds no shards de-en/train-|cannot fetch"):
            train()
        with pytest.raises(UserError, match=r"cannot fetch .*data\.source=files.*experiment=demo\.$") as error:
            train(DataConfig(hub_revision="f" * 40))
        assert "\n" not in str(error.value)
