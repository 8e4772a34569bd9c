"""The page on which people try models: static files without a build step, for whatever translates behind it.

The script `api.js` is not among the files: it is how the page reaches the models, and each feature that has a page
brings its own. It exports `models()`, `translate(request, signal)` and `choices(request, signal)`, and throws a
`Problem` (`problem.js`) if something goes wrong that the user should know.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from string import Template

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX, COLOURS = "index.html", "colours.css"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the page."""

    content: bytes
    media_type: str


def read_page(package: str, *, without_script: str) -> dict[str, StaticFile]:
    """Read the files of the page by name.

    Args:
        package: the package whose folder `static` has `api.js` and what it needs.
        without_script: what to say, after "This page needs JavaScript.", to browsers that run no scripts.
    """
    found = dict(sorted([*_static_files(__name__), *_static_files(package)]))
    page = Template(found[INDEX].content.decode()).substitute(without_script=without_script)
    return {**found, INDEX: StaticFile(page.encode(), found[INDEX].media_type)}


def colours() -> str:
    """Return the style sheet with the colours that all pages share."""
    return files(__name__).joinpath("static", COLOURS).read_text(encoding="utf-8")


def _static_files(package: str) -> Iterator[tuple[str, StaticFile]]:
    for file in files(package).joinpath("static").iterdir():
        yield file.name, StaticFile(file.read_bytes(), MEDIA_TYPES[f".{file.name.rpartition('.')[2]}"])
