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
from nmt.data.sources import files, multi30k
from nmt.data.sources.registry import fingerprint, fingerprint_if_here
from tests.integration.toy import refuse, succeed

WORDS = {"en": "a man sees a red tree", "de": "ein Mann sieht einen roten Baum"}
PREPARE = ["data", "experiment=multi30k", "tokenizer.vocab_size=60", "runtime.workers=1"]
RAW = Path("data/raw/multi30k")


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
    folder = tmp_path / "there"
    folder.mkdir()
    texts = {}
    for name, (file, _) in multi30k.TEXTS.items():
        content = "".join(f"{WORDS[name[-2:]]} {name} {number}\n" for number in range(40)).encode()
        (folder / file).write_bytes(gzip.compress(content, mtime=0))
        texts[name] = (file, hashlib.sha256(content).hexdigest())
    Server.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(multi30k, "ADDRESS", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(multi30k, "TEXTS", texts)
        monkeypatch.chdir(tmp_path)
        yield folder
        server.shutdown()


def test_files_are_fetched_once_and_only_those_that_are_missing() -> None:
    data = compose(PREPARE[1:]).data
    known = fingerprint_if_here(data, "train")
    assert Server.asked == [], "only nmt data fetches"
    succeed(PREPARE)
    assert {each.name for each in RAW.iterdir()} == {*multi30k.TEXTS}
    assert sorted(Server.asked) == sorted(f"/{file}" for file, _ in multi30k.TEXTS.values())
    assert Path("data/multi30k/train.de").read_text() == (RAW / "train.de").read_text()
    assert known == fingerprint(data, "train") == files.fingerprint(data, "train")
    Server.asked.clear()
    (RAW / "val.de").unlink()
    succeed([*PREPARE, "data.corpus=again"])
    assert Server.asked == ["/val.de.gz"]


def test_nothing_damaged_is_kept(there: Path) -> None:
    for content in (b"cut", gzip.compress(b"another text\n"), gzip.compress(bytes(9))[:-4], b""):
        (there / "test_2016_flickr.en.gz").write_bytes(content)
        said = refuse(PREPARE)
        assert "test_2016_flickr.en.gz" in said
        assert "check the network and run the same command again, or put the decompressed file at" in said
        assert not (RAW / "test2016.en").exists()


def test_another_text_of_this_name_is_refused_and_other_files_are_read() -> None:
    RAW.mkdir(parents=True)
    (RAW / "val.en").write_text("mine\n")
    assert "val.en is not the text of Multi30k" in refuse(PREPARE)
    for language in ("en", "de"):
        (RAW / f"mine.{language}").write_text("my own text\n")
    succeed([*PREPARE, f"data.valid=[{RAW}/mine.en,{RAW}/mine.de]"])
