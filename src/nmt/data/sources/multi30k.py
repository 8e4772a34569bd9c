"""The raw English-German text of Multi30k, task 1, which is fetched from its authors' repository."""

import gzip
import hashlib
import http.client
import urllib.request
import zlib
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.folders import expanded, is_address
from nmt.data.sources import files
from nmt.data.sources.source import Fingerprint, split_names
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


def fingerprint(config: DataConfig, split: str) -> Fingerprint:
    """Identify a split by the content of its files, after fetching those of Multi30k that are missing."""
    for name in split_names(config, split, "its files"):
        if (known := TEXTS.get(Path(name).name)) and not is_address(name):
            _fetch_or_check(expanded(name), *known)
    return files.fingerprint(config, split)


def _fetch_or_check(path: Path, name: str, sha256: str) -> None:
    """Fetch a text if it is not there, and refuse another file in its place."""
    if path.exists():
        if checksum(path) != sha256:
            raise UserError(
                f"{path} is not the text of Multi30k (its checksum is another one): delete it to fetch that, or take "
                "this one with data.source=files"
            )
        return
    address = f"{ADDRESS}/{name}"
    print(f"data: fetching {path} from {address}", flush=True)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as response:
            content = gzip.decompress(response.read())
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        raise UserError(
            f"cannot fetch {address} ({error}): check the network and run the same command again, or put the "
            f"decompressed file at {path}"
        ) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{address} arrived damaged: its checksum is another one; run the same command again")
    with replacing(path) as partial:
        partial.write_bytes(content)


SOURCE = files.SOURCE._replace(fingerprint=fingerprint, may_download=True)
