"""The page of the server. A request only chooses among the paths of `load_page`; it never names a file to open."""

from dataclasses import dataclass
from importlib.resources import files

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Sent with every file of the page: it loads nothing from other hosts, runs no inline script, and is not framed."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page."""

    content: bytes
    media_type: str


def load_page() -> dict[str, StaticFile]:
    """Read the files of the page; the keys are the paths that serve them."""
    found = {}
    for file in sorted(files(__name__).joinpath("static").iterdir(), key=lambda file: file.name):
        path = "/" if file.name == INDEX else f"/{file.name}"
        found[path] = StaticFile(file.read_bytes(), MEDIA_TYPES[f".{file.name.rpartition('.')[2]}"])
    return found
