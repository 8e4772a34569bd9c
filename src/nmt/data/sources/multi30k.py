"""The raw English-German text of Multi30k, task 1, which is fetched from its authors' repository."""

import gzip
import hashlib
import http.client
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.folders import expanded
from nmt.data.sources import files
from nmt.data.sources.source import Fingerprint, Pair, Source, split_names
from nmt.errors import UserError
from nmt.storage.files import checksum, replacing

ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
"""The folder in one commit of the repository, so the text never changes."""
TIMEOUT_SECONDS = 60
TEXTS = {
    "train.en": ("train.en.gz", "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
    "train.de": ("train.de.gz", "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
    "val.en": ("val.en.gz", "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
    "val.de": ("val.de.gz", "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
    "test2016.en": ("test_2016_flickr.en.gz", "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
    "test2016.de": ("test_2016_flickr.de.gz", "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
}
"""The files of the repository by the names of the files here, each with the checksum of its text, decompressed."""


def pairs(config: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split, after fetching those files of Multi30k that are missing."""
    for name in split_names(config, split, "its files"):
        if (path := expanded(name)).name in TEXTS:
            _fetch_or_check(path)
    return files.pairs(config, split)


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split as `files` does; the checksums of Multi30k's files are known without fetching them."""
    names = [Path(name).name for name in split_names(config, split, "its files")]
    if not all(name in TEXTS for name in names):
        return files.fingerprint(config, split)
    return {"files": [{"kind": "text", "sha256": TEXTS[name][1]} for name in names]}


def _fetch_or_check(path: Path) -> None:
    """Fetch a text if it is not there, and refuse another file in its place."""
    name, sha256 = TEXTS[path.name]
    if path.exists():
        if checksum(path) != sha256:
            raise UserError(f"{path} is not the text of Multi30k: delete it, or take it with data.source=files")
        return
    address = f"{ADDRESS}/{name}"
    print(f"data: fetching {path} from {address}", flush=True)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as response:
            content = gzip.decompress(response.read())
        if hashlib.sha256(content).hexdigest() != sha256:
            raise EOFError("its checksum is another one")
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        raise UserError(
            f"cannot fetch {address} ({error}): check the network and run the same command again, or put the "
            f"decompressed file at {path}"
        ) from error
    with replacing(path) as partial:
        partial.write_bytes(content)


SOURCE = Source(fingerprint, pairs, is_named=True)
