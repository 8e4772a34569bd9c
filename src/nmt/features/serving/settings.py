"""The settings of the server."""

import re
from collections.abc import Container
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from nmt.config.checks import check_at_least, check_between, check_plain_name
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config

COST_PER_BYTE = 5
"""A text of the largest size, translated as usual, costs about four per byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """Where `serve` listens, which models it offers, and how much it accepts."""

    host: str = "127.0.0.1"
    """Address to listen on. By default only programs on this machine reach the server."""
    port: int = 5000
    """Port to listen on; 0 is any free one, which the first line of output names."""
    models: list[str] = field(default_factory=list)
    """Models to serve, the default one first, each NAME:FOLDER or FOLDER (a run, a checkpoint or an export for
    CTranslate2, as in docs/python.md); empty is the model that `name`, `checkpoint` and `engine` choose."""
    processes: int = 0
    """Processes per model, which share the CPU's threads; 0 is one per core on a CPU, up to four, and one on a GPU."""
    key_file: str = ""
    """File with the API keys that are accepted, one per line; empty asks for none."""
    origins: list[str] = field(default_factory=list)
    """Origins of web pages, such as https://example.org, that may use the server from a browser, besides the server's
    own page (CORS); [*] is every page."""
    hosts: list[str] = field(default_factory=list)
    """Names by which clients may call the server, besides addresses and localhost; [*] is any name. Empty is any name
    too, unless the server listens on this machine only and asks for no key: see docs/serving.md."""
    max_bytes: int = 200_000
    """Largest request in bytes."""
    max_sentences: int = 500
    """Most sentences in a request."""
    max_cost: int = 0
    """Largest cost of a request: its characters times the hypotheses per sentence, and the characters of the details
    that it asks for; 0 is five for each byte of max_bytes."""
    queue: int = 2_000
    """Most sentences that wait for a model. Requests that find no room are refused with 429."""
    batch: int = 64
    """Most sentences that are translated together."""
    wait_ms: float = 5.0
    """Milliseconds that an idle model waits for further sentences after the first."""
    timeout: float = 60.0
    """Most seconds for an answer."""
    read_timeout: float = 10.0
    """Most seconds for a client to send its request."""
    drain: float = 30.0
    """Most seconds to finish open requests after SIGTERM."""
    connections: int = 1_000
    """Most open connections."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_between("serve.port", self.port, 0, 65_535)
        check_between("serve.processes", self.processes, 0, 64)
        check_between("serve.max_bytes", self.max_bytes, 1, 100_000_000)
        check_at_least("serve.max_cost", self.max_cost, 0)
        for name in ("max_sentences", "queue", "batch", "connections"):
            check_between(f"serve.{name}", getattr(self, name), 1, 1_000_000)
        for name in ("timeout", "read_timeout", "drain"):
            check_between(f"serve.{name}", getattr(self, name), 0.1, 3600)
        check_between("serve.wait_ms", self.wait_ms, 0, 1000)
        if self.max_sentences > self.queue:
            raise ConfigError(
                f"serve.max_sentences={self.max_sentences} is more than serve.queue={self.queue}: "
                "lower the first or raise the second"
            )
        for origin in self.origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"serve.origins={origin} must be an origin in lower case, without a path, "
                    "such as https://example.org or http://localhost:8080, or *"
                )
        names = [name for name, _ in self.named_folders]
        for name in names:
            check_plain_name("serve.models", name)
            if names.count(name) > 1:
                raise ConfigError(f"serve.models has two models with the name {name}: give them names, as NAME:FOLDER")

    @property
    def cost_limit(self) -> int:
        """The largest cost of a request."""
        return self.max_cost or COST_PER_BYTE * self.max_bytes

    @property
    def named_folders(self) -> list[tuple[str, str]]:
        """The name and the folder of each model of `models`; without a name, the folder's own."""
        return [_named_folder(entry) for entry in self.models]


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]_-]+")
"""As browsers write it in the header Origin, which is compared letter by letter."""


def _named_folder(entry: str) -> tuple[str, str]:
    name, colon, folder = entry.partition(":")
    if colon and "/" not in name:
        return name, folder
    return entry.rstrip("/").rpartition("/")[2], entry


def checked(config: "Config", given: Container[str]) -> "Config":
    """Return the settings; refuse those of a model that have no effect on the models of `serve.models`."""
    names = ("checkpoint", "engine", "decoding", *(f"decoding.{each.name}" for each in fields(config.decoding)))
    ignored = [name for name in names if name in given]
    if config.of(ServeConfig).models and ignored:
        raise ConfigError(
            f"serve.models and {', '.join(ignored)}: each of these models has a checkpoint, an engine and a search of "
            "its own; leave out the one or the other, or name the folder of a checkpoint or an export in serve.models"
        )
    return config
