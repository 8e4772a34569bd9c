"""Read the fields of a request; whatever is wrong becomes an error of one line that quotes nothing of the request."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from nmt.config.checks import is_utf8
from nmt.serving.errors import RequestError, too_many_sentences
from nmt.serving.keys import check_key

MULTIPART = "multipart/form-data"
FORM_TYPES = ("application/x-www-form-urlencoded", MULTIPART)
MAX_FIELDS = 50
"""The largest number of fields in a form."""
MAX_PART_BYTES = 100_000_000
"""The largest field of a multipart form: as large as any body may be."""
MAX_QUICK_BYTES = 10_000
"""The longest forms that are read immediately; others, which may be escaped letter by letter, are read in a thread."""


async def read_json(request: Request) -> dict[str, Any]:
    """Return the object in the body; refuse a request without a valid key."""
    values = await _read_json(request)
    check_key(request, values)
    return values


async def read_values(request: Request) -> dict[str, Any]:
    """Return the fields of a JSON object, or of a form and the query; refuse a request without a valid key."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    values = await _read_json(request) if kind == "application/json" else dict(request.query_params)
    if kind in FORM_TYPES:
        values |= {name: value for name, value in (await _read_form(request, kind)).items() if isinstance(value, str)}
    check_key(request, values)
    return values


async def _read_json(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "the body is not JSON") from error
    if not isinstance(found, dict):
        raise RequestError(400, "the body is not a JSON object")
    return found


async def _read_form(request: Request, kind: str) -> Mapping[str, Any]:
    if kind == MULTIPART:
        return dict(await request.form(max_files=0, max_fields=MAX_FIELDS, max_part_size=MAX_PART_BYTES))
    body = await request.body()
    if len(body) <= MAX_QUICK_BYTES:
        return _parse_form(body)
    return await asyncio.to_thread(_parse_form, body)


def _parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form, the last one of each name. The parser of multipart forms needs ten times as long."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError as error:
        raise RequestError(400, "the form is not UTF-8") from error
    except ValueError as error:
        raise RequestError(400, f"a form may have at most {MAX_FIELDS} fields") from error
    return dict(pairs)


def text(values: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return a field of text."""
    value = values.get(name)
    if value is None and default is not None:
        return default
    return _checked(name, value)


def filled_text(values: Mapping[str, Any], name: str) -> str:
    """Return a field of text that may not be empty."""
    value = text(values, name)
    if not value:
        raise missing(name)
    return value


def missing(name: str) -> RequestError:
    """Return the error for a field that is missing, in LibreTranslate's words."""
    return RequestError(400, f"Invalid request: missing {name} parameter")


def texts(values: Mapping[str, Any], name: str, most: int) -> tuple[list[str], bool]:
    """Return a field that holds a text or a list of texts, and whether it was a list; refuse more than `most` texts.

    They are counted before they are checked, because 45,000 empty ones would hold up all other clients.
    """
    value = values.get(name)
    if isinstance(value, list):
        if len(value) > most:
            raise too_many_sentences(most)
        return [_checked(name, each) for each in value], True
    return [_checked(name, value)], False


def number(values: Mapping[str, Any], name: str, default: int, limits: range) -> int:
    """Return a field that holds a whole number, which a form writes as text."""
    value = values.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value not in limits:
        raise RequestError(400, f"{name} must be a whole number from {limits[0]} to {limits[-1]}")
    return value


def flag(values: Mapping[str, Any], name: str) -> bool:
    """Return a field that is true or false, and false if it is missing."""
    value = values.get(name)
    if value is not None and not isinstance(value, bool):
        raise RequestError(400, f"{name} must be true or false")
    return bool(value)


def pairs(values: Mapping[str, Any], name: str, most: int) -> list[tuple[str, str]]:
    """Return a field that lists pairs of texts, none of which may be empty."""
    value = values.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most:
        raise RequestError(400, f"{name} must be a list of at most {most} pairs")
    if not all(isinstance(each, list) and len(each) == 2 for each in value):
        raise RequestError(400, f"{name} must be a list of pairs of texts")
    found = [(_checked(name, source).strip(), _checked(name, target).strip()) for source, target in value]
    if not all(source and target for source, target in found):
        raise RequestError(400, f"{name} has an empty text")
    return found


def _checked(name: str, value: object) -> str:
    if value is None:
        raise missing(name)
    if not isinstance(value, str):
        raise RequestError(400, f"{name} must be text")
    if not is_utf8(value) or "\0" in value:
        raise RequestError(400, f"{name} has characters that no text has")
    return value
