"""API keys: read them from a file, and compare them in constant time."""

import hmac
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from nmt.config.folders import expanded
from nmt.errors import UserError
from nmt.serving.errors import RequestError
from nmt.text.lines import read_lines

MIN_CHARACTERS = 8
"""The shortest key; a shorter one can be guessed."""


def read_keys(file: str) -> list[bytes]:
    """Return the keys in a file, one per line; none if there is no file."""
    if not file:
        return []
    keys = [line.strip() for line in read_lines(expanded(file)) if line.strip()]
    if not keys or min(map(len, keys)) < MIN_CHARACTERS:
        raise UserError(f"serve.key_file={file} must have a key of at least {MIN_CHARACTERS} characters on each line")
    if not all(key.isascii() and key.isprintable() for key in keys):
        raise UserError(
            f"serve.key_file={file} has a key that no HTTP header can hold: use ASCII letters, digits and signs"
        )
    return [key.encode() for key in keys]


def check_key(request: Request, values: Mapping[str, Any]) -> None:
    """Refuse a request without a valid key, if the server asks for one.

    A key is a bearer token, the header X-API-Key, or the field api_key, as LibreTranslate's clients send it.
    """
    keys: list[bytes] = request.app.state.keys
    if not keys:
        return
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key") or values.get("api_key")
    if not isinstance(given, str) or not given:
        raise RequestError(401, "this server asks for an API key", {"WWW-Authenticate": "Bearer"})
    encoded = given.encode(errors="surrogatepass")
    # every key is compared, and each in constant time, so that the time tells nothing of the keys
    if not sum(hmac.compare_digest(encoded, key) for key in keys):
        raise RequestError(403, "Invalid API key")
