"""Multi30k is fetched from a server with the layout of its repository, once and whole."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from nmt.config.compose import compose
from nmt.data.sources import multi30k
from nmt.data.sources.registry import fingerprint_if_here
from nmt.errors import UserError
from tests.integration.toy import refuse, succeed

WORDS = {"en": "a man sees a red tree", "de": "ein Mann sieht einen roten Baum"}


class Server(SimpleHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve small files in the layout of the repository, and yield their folder."""
    folder = tmp_path / "dataset" / "data" / "task1" / "raw"
    folder.mkdir(parents=True)
    texts = {}
    for name, (file, _) in multi30k.TEXTS.items():
        content = "".join(f"{WORDS[name[-2:]]} {name} {number}\n" for number in range(40)).encode()
        (folder / file).write_bytes(gzip.compress(content, mtime=0))
        texts[name] = (file, hashlib.sha256(content).hexdigest())
    Server.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(tmp_path / "dataset"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(multi30k, "ADDRESS", f"http://127.0.0.1:{server.server_port}/data/task1/raw")
        monkeypatch.setattr(multi30k, "TEXTS", texts)
        monkeypatch.chdir(tmp_path)
        yield folder
        server.shutdown()


PREPARE = ["data", "experiment=multi30k", "tokenizer.vocab_size=60", "runtime.workers=1"]


def test_files_are_fetched_once_and_only_those_that_are_missing(tmp_path: Path) -> None:
    succeed(PREPARE)
    raw = tmp_path / "data" / "raw" / "multi30k"
    assert {each.name for each in raw.iterdir()} == {*multi30k.TEXTS}
    assert sorted(Path(each).name for each in Server.asked) == sorted(file for file, _ in multi30k.TEXTS.values())
    assert (tmp_path / "data" / "multi30k" / "train.de").read_text() == (raw / "train.de").read_text()
    Server.asked.clear()
    (raw / "val.de").unlink()
    succeed(PREPARE)
    assert [Path(each).name for each in Server.asked] == ["val.de.gz"]


def test_files_in_place_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed(PREPARE)
    monkeypatch.setattr(multi30k, "ADDRESS", "http://127.0.0.1:1")
    succeed(PREPARE)
    (tmp_path / "data" / "raw" / "multi30k" / "train.en").unlink()
    assert fingerprint_if_here(compose(PREPARE[1:]).data, "train") is None, "only nmt data fetches"
    assert "check the network and run the same command again, or put the decompressed file at" in refuse(PREPARE)


@pytest.mark.parametrize(
    "content",
    [b"cut", gzip.compress(b"another text\n", mtime=0), gzip.compress(bytes(9), mtime=0)[:-4], b""],
    ids=["no gzip", "another text", "cut", "empty"],
)
def test_nothing_damaged_is_kept(tmp_path: Path, there: Path, content: bytes) -> None:
    (there / "test_2016_flickr.en.gz").write_bytes(content)
    assert "test_2016_flickr.en.gz" in refuse(PREPARE)
    raw = tmp_path / "data" / "raw" / "multi30k"
    assert not raw.exists() or [*raw.iterdir()] == []


def test_another_text_of_this_name_is_refused_and_other_files_are_read(tmp_path: Path) -> None:
    raw = tmp_path / "data" / "raw" / "multi30k"
    raw.mkdir(parents=True)
    (raw / "val.en").write_text("mine\n")
    (raw / "val.de").write_text("meins\n")
    assert "val.en is not the text of Multi30k" in refuse(PREPARE)
    for language in ("en", "de"):
        (raw / f"val.{language}").rename(raw / f"mine.{language}")
    succeed([*PREPARE, f"data.valid=[{raw}/mine.en,{raw}/mine.de]"])
    (raw / "train.en").write_text("mine\n")
    with pytest.raises(UserError, match="is not the text"):
        multi30k.fingerprint(compose(PREPARE[1:]).data, "train")
