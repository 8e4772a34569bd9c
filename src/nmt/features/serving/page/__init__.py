"""The page of the server. A request only chooses among the paths of `load_page`; it never names a file to open."""

from nmt.page import INDEX, StaticFile, read_page

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Sent with every file of the page: it loads nothing from other hosts, runs no inline script, and is not framed."""


def load_page() -> dict[str, StaticFile]:
    """Read the files of the page; the keys are the paths that serve them."""
    found = read_page(__name__, without_script="The API does not: send POST /v1/translate.")
    return {"/": found.pop(INDEX), **{f"/{name}": file for name, file in found.items()}}
