"""Read the fields of a request; whatever is wrong becomes an error of one line that quotes nothing of the request."""

import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from nmt.config.folders import expanded
from nmt.errors import UserError
from nmt.serving.messages import RequestError
from nmt.serving.text import MAX_SENTENCES
from nmt.text.lines import read_lines

FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 50
MIN_KEY_CHARACTERS = 8
"""The shortest key; a shorter one can be guessed."""


class Fields:
    """The fields of a JSON object, or of a form and the query, which have text only."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    @classmethod
    def of(cls, request: Request, body: bytes) -> "Fields":
        """Return the fields of a request. A body is JSON, whatever it says that it is, unless it is a form."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == FORM or not body:
            return cls({**request.query_params, **_parse_form(body)})
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise RequestError(400, f"the body is not JSON, and not of the type {FORM}") from error
        if not isinstance(found, dict):
            raise RequestError(400, "the body is not a JSON object")
        return cls(found)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a field of text."""
        value = self.values.get(name)
        return default if value is None and default is not None else _checked(name, value)

    def filled(self, name: str) -> str:
        """Return a field of text that may not be empty."""
        if not (value := self.text(name)):
            raise missing(name)
        return value

    def texts(self, name: str) -> tuple[list[str], bool]:
        """Return a field that holds a text or a list of texts, and whether it was a list."""
        value = self.values.get(name)
        if not isinstance(value, list):
            return [_checked(name, value)], False
        if len(value) > MAX_SENTENCES:
            raise RequestError(413, f"a request may not have more than {MAX_SENTENCES} sentences")
        return [_checked(name, each) for each in value], True

    def number(self, name: str, default: int, limits: range) -> int:
        """Return a field that holds a whole number, which a form writes as text."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value not in limits:
            raise RequestError(400, f"{name} must be a whole number from {limits[0]} to {limits[-1]}")
        return value

    def flag(self, name: str) -> bool:
        """Return a field that is true or false, and false if it is missing."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise RequestError(400, f"{name} must be true or false")
        return bool(value)

    def pairs(self, name: str, most: int) -> list[tuple[str, str]]:
        """Return a field that lists pairs of texts, none of which may be empty."""
        value = [] if self.values.get(name) is None else self.values[name]
        if not isinstance(value, list) or len(value) > most:
            raise RequestError(400, f"{name} must be a list of at most {most} pairs")
        if not all(isinstance(each, list) and len(each) == 2 for each in value):
            raise RequestError(400, f"{name} must be a list of pairs of texts")
        found = [(_checked(name, source).strip(), _checked(name, target).strip()) for source, target in value]
        if not all(source and target for source, target in found):
            raise RequestError(400, f"{name} has an empty text")
        return found


def missing(name: str) -> RequestError:
    """Return the error for a field that is missing, in LibreTranslate's words."""
    return RequestError(400, f"Invalid request: missing {name} parameter")


def _parse_form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError as error:
        raise RequestError(400, f"a form must be UTF-8 with at most {MAX_FIELDS} fields") from error


def _checked(name: str, value: object) -> str:
    if value is None:
        raise missing(name)
    if not isinstance(value, str):
        raise RequestError(400, f"{name} must be text")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise RequestError(400, f"{name} has characters that no text has")
    return value


def read_keys(file: str) -> list[bytes]:
    """Return the API keys in a file, one per line; none if there is no file."""
    if not file:
        return []
    keys = [line.strip() for line in read_lines(expanded(file)) if line.strip()]
    if not keys or not all(len(key) >= MIN_KEY_CHARACTERS and key.isascii() and key.isprintable() for key in keys):
        raise UserError(
            f"serve.key_file={file} must have a key on each line, of at least {MIN_KEY_CHARACTERS} ASCII letters, "
            "digits and signs, which an HTTP header can hold"
        )
    return [key.encode() for key in keys]


def check_key(request: Request, fields: Fields, keys: Sequence[bytes]) -> str:
    """Refuse a request without a valid key, if the server asks for one; return the name of its client.

    A key is a bearer token, the header X-API-Key, or the field api_key, as LibreTranslate's clients send it. Clients
    are told apart by key, else by address.
    """
    if not keys:
        return request.client.host if request.client else ""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key")
    given = given or fields.values.get("api_key")
    if not isinstance(given, str) or not given:
        raise RequestError(401, "this server asks for an API key", {"WWW-Authenticate": "Bearer"})
    encoded = given.encode(errors="surrogatepass")
    # every key is compared, and each in constant time, so that the time tells nothing of the keys
    if not sum(hmac.compare_digest(encoded, key) for key in keys):
        raise RequestError(403, "Invalid API key")
    return f"key {given}"
