"""The Hub's real client with a local Hub: broken connections, busy answers, damaged files, no network."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest

from nmt.config.data import DataConfig
from nmt.data.sources import hub, registry
from nmt.errors import UserError
from tests.unit.data.sources.small_hub import DATASET, REVISION, SmallHub, serving, shard

ROWS = {
    "train-00000-of-00002": 900,
    "train-00001-of-00002": 300,
    "validation-00000-of-00001": 7,
    "test-00000-of-00001": 5,
}
FIRST = "de-en/train-00000-of-00002.parquet"
SECOND = "de-en/train-00001-of-00002.parquet"
COUNTS = {"train": 1200, "validation": 7, "test": 5}


def repository() -> dict[str, bytes]:
    """Return two configurations in the layout of WMT14."""
    files = {"README.md": b"# WMT14\n"}
    for languages in (("de", "en"), ("fr", "en")):
        for name, rows in ROWS.items():
            files[f"{'-'.join(languages)}/{name}.parquet"] = shard(languages, name.split("-of")[0], rows)
    return files


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the client an empty cache, and remove all waiting."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    monkeypatch.setattr("time.sleep", lambda _: None)
    for table in ("de-en", "fr-en"):
        monkeypatch.setitem(hub.KNOWN_PAIRS, (DATASET, REVISION, table), COUNTS)
    return tmp_path / "cache"


@pytest.fixture
def small_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallHub]:
    """Connect the client to a small Hub."""
    with serving(repository()) as server:
        use(server.url, monkeypatch)
        yield server


def use(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def train(config: DataConfig | None = None) -> list[tuple[str, str]]:
    return list(registry.pairs(config or DataConfig(), "train"))


def unfinished(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*.incomplete") if path.is_file()]


def test_known_counts_are_those_of_wmt14() -> None:
    known = {
        (config, split): count for (_, _, config), counts in hub.KNOWN_PAIRS.items() for split, count in counts.items()
    }
    assert known == {
        ("de-en", "train"): 4_508_785, ("de-en", "validation"): 3000, ("de-en", "test"): 3003,
        ("fr-en", "train"): 40_836_715, ("fr-en", "validation"): 3000, ("fr-en", "test"): 3003,
    }  # fmt: skip
    assert all(key[:2] == (DataConfig().hub_dataset, DataConfig().hub_revision) for key in hub.KNOWN_PAIRS)


def test_pairs_come_in_order_and_in_the_configured_direction(small_hub: SmallHub) -> None:
    pairs = train()
    assert len(pairs) == 1200
    assert pairs[0] == ("train-00000 0 en", "train-00000 0 de")
    assert pairs[-1] == ("train-00001 299 en", "train-00001 299 de")
    french = DataConfig(hub_config="fr-en", target_lang="fr")
    assert list(registry.pairs(french, "test"))[4] == ("test-00000 4 en", "test-00000 4 fr")
    german = DataConfig(source_lang="de", target_lang="en")
    assert next(registry.pairs(german, "valid")) == ("validation-00000 0 de", "validation-00000 0 en")
    assert {path for _, path, _ in small_hub.log if "resolve" in path and "fr-en" in path} == {
        f"/datasets/{DATASET}/resolve/{REVISION}/fr-en/test-00000-of-00001.parquet"
    }


def test_tables_of_other_forms_are_fetched_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "de-en/train-00000-of-00001.jsonl": b'{"en": "one", "de": "eins"}\n',
        "de-en/test.csv": b"en,de\ntwo,zwei\n",
        "test.csv": b"en,de\nthree,drei\n",
    }
    with serving(files) as server:
        use(server.url, monkeypatch)
        assert train() == train() == [("one", "eins")]
        assert list(registry.pairs(DataConfig(), "test")) == [("two", "zwei")]
        assert list(registry.pairs(DataConfig(hub_config="."), "test")) == [("three", "drei")]
        assert {path: len(server.downloads(path)) for path in files} == {
            "de-en/train-00000-of-00001.jsonl": 1, "de-en/test.csv": 1, "test.csv": 2,
        }  # fmt: skip


def test_interrupted_download_is_resumed(small_hub: SmallHub, cache: Path) -> None:
    small_hub.cut_after[FIRST] = 20_000
    assert len(train()) == 1200
    assert small_hub.downloads(FIRST) == ["", "bytes=16384-"]
    assert small_hub.downloads(SECOND) == [""]
    assert not unfinished(cache)


def test_data_sets_that_do_not_exist_are_refused(small_hub: SmallHub) -> None:
    with pytest.raises(UserError, match=r"cannot fetch wmt/other .*\(.*404"):
        train(DataConfig(hub_dataset="wmt/other"))
    with pytest.raises(UserError, match=r"holds no shards cs-en/train-\*\.parquet: check data\.hub_config"):
        train(DataConfig(hub_config="cs-en"))


def test_a_split_that_is_missing_is_refused_though_the_cache_has_the_other(small_hub: SmallHub) -> None:
    assert len(train()) == 1200
    with pytest.raises(UserError, match=r"holds no shards of extra: check the names of the splits"):
        train(DataConfig(train=["train", "extra"]))


def test_truncated_file_is_never_accepted(small_hub: SmallHub, cache: Path) -> None:
    small_hub.sent[FIRST] = small_hub.files[FIRST][:-1000]
    with pytest.raises(UserError, match=r"cannot fetch .*(size|[Ii]ncomplete|closed|end)") as error:
        train()
    assert "\n" not in str(error.value)
    assert not unfinished(cache)
    del small_hub.sent[FIRST]
    assert len(train()) == 1200


def test_file_with_a_wrong_checksum_is_refused_and_fetched_again(small_hub: SmallHub) -> None:
    content = bytearray(small_hub.files[FIRST])
    content[5000] ^= 1
    small_hub.sent[FIRST] = bytes(content)
    with pytest.raises(UserError, match=r"train-00000-of-00002.parquet of wmt/wmt14 arrived damaged: run"):
        train()
    del small_hub.sent[FIRST]
    assert len(train()) == 1200
    assert small_hub.downloads(SECOND) == [""]


def test_cache_works_offline_and_is_repaired_online(small_hub: SmallHub, cache: Path) -> None:
    train()
    small_hub.log.clear()
    assert len(train()) == 1200
    assert small_hub.log == []
    cached = next(cache.rglob("train-00000-of-00002.parquet")).resolve()
    cached.chmod(0o644)
    cached.write_bytes(cached.read_bytes()[:-1] + b"?")
    assert len(train()) == 1200
    assert small_hub.downloads(FIRST) == [""]
    assert small_hub.downloads(SECOND) == []


def test_incomplete_cache_offline_is_an_error(small_hub: SmallHub, monkeypatch: pytest.MonkeyPatch) -> None:
    list(registry.pairs(DataConfig(), "test"))
    small_hub.log.clear()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert len(list(registry.pairs(DataConfig(), "test"))) == 5
    with pytest.raises(UserError, match=r"cannot fetch .*data\.source=files.*experiment=demo"):
        train()
    assert small_hub.log == []


@pytest.mark.usefixtures("cache")
def test_missing_network_fails_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        use(f"http://127.0.0.1:{unused.getsockname()[1]}", monkeypatch)
        with pytest.raises(UserError, match=r"cannot fetch .*refused.*data\.source=files.*experiment=demo") as error:
            train()
    assert "\n" not in str(error.value)


def test_a_wrong_number_of_pairs_is_refused(small_hub: SmallHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hub.KNOWN_PAIRS, (DATASET, REVISION, "de-en"), {**COUNTS, "train": 1201})
    with pytest.raises(UserError, match=r"1,200 pairs of train, but de-en at revision b199e4\w+ has 1,201: "):
        train()
    assert len(list(registry.pairs(DataConfig(), "valid"))) == 7


def test_local_copy_is_counted_too(small_hub: SmallHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FIRST, SECOND):
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(small_hub.files[name])
    config = DataConfig(hub_dataset=str(tmp_path / "copy"))
    assert len(train(config)) == 1200
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(train(DataConfig(hub_dataset="~/copy"))) == 1200
    assert small_hub.log == []
    (tmp_path / "copy" / SECOND).write_bytes(shard(("de", "en"), "x", 299))
    with pytest.raises(UserError, match=r"copy has 1,199 pairs of train, but de-en .* has 1,200"):
        train(config)
    assert len(train(DataConfig(hub_dataset=config.hub_dataset, hub_revision="mine"))) == 1199


def test_command_line_prepares_from_the_hub(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    with serving(repository()) as server:
        server.cut_after[FIRST] = 20_000
        environment |= {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path), "HF_UPDATE_DOWNLOAD_COUNTS": "0"}
        words = [f"paths.data={tmp_path}", "tokenizer.vocab_size=60", "runtime.workers=1"]
        program = "import sys, nmt.cli, nmt.data.sources.hub as hub; hub.KNOWN_PAIRS.clear(); sys.exit(nmt.cli.main())"
        command = [sys.executable, "-c", program, "data", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "wmt14_en_de" / "manifest.json").read_text())
    assert manifest["source"]["hub_revision"] == REVISION
    assert manifest["steps"]["collect train"]["result"]["read"] == 1200
    assert (tmp_path / "wmt14_en_de" / "test.en").read_text().splitlines()[0] == "test-00000 0 en"
