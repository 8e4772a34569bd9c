"""The web application: routes, the page, keys, and how requests are read and refused."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from prometheus_client import Counter, Histogram, generate_latest
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from nmt.config.commands import ServeConfig
from nmt.config.folders import expanded
from nmt.errors import UserError
from nmt.serving.api import Api, Body, ChoicesBody, Json, LibreBody, TranslateBody
from nmt.serving.messages import RETRY, report_error
from nmt.text.lines import read_lines

B = TypeVar("B", bound=Body)
REQUESTS = Counter("nmt_requests", "Answers by route and status", ["route", "status"])
REQUEST_SECONDS = Histogram("nmt_request_seconds", "Seconds until the answer", ["route"])
PAGE = Path(__file__).parent / "page"
FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 50
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
MIN_KEY_CHARACTERS = 8
"""The shortest key; a shorter one can be guessed."""
CLIENT_GONE = 499
"""The status that is counted for clients that did not wait for the answer."""
CLOSE = {"Connection": "close"}
"""The header after which a connection is closed: the rest of the request is not read."""


def application(api: Api, config: ServeConfig, keys: Sequence[bytes] = ()) -> ASGIApp:
    """Return the application of a server."""

    def shown(path: str, show: Callable[[], Json], *methods: str) -> Route:
        async def endpoint(_: Request) -> Response:
            return JSONResponse(show())

        return Route(path, endpoint, methods=methods or None)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), media_type="text/plain; version=0.0.4")

    app = Starlette(
        routes=[
            _posted("/translate", LibreBody, api.libre_translate, config, keys),
            _posted("/detect", LibreBody, api.detect, config, keys),
            _posted("/v1/translate", TranslateBody, api.translate, config, keys),
            _posted("/v1/choices", ChoicesBody, api.choices, config, keys),
            shown("/languages", api.languages, "GET", "POST"),  # the client of argostranslate posts
            shown("/health", api.health),
            shown("/v1/models", api.models),
            Route("/metrics", metrics),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ],
        exception_handlers={HTTPException: _refusal},
    )
    hosts = config.hosts or (LOCAL_NAMES if config.host in LOCAL_NAMES and not keys else [])
    trusted = _called_by(app, hosts) if hosts else app
    if not config.origins:
        return trusted
    return CORSMiddleware(  # outermost, so that pages of other origins can read refusals, too
        trusted,
        allow_origins=config.origins,
        allow_methods=("GET", "POST"),
        allow_headers=("Authorization", "X-API-Key"),
        expose_headers=("Retry-After",),
    )


def _called_by(app: ASGIApp, hosts: Sequence[str]) -> ASGIApp:
    """Refuse requests to other names, which pages of strangers could make point to this machine (DNS rebinding)."""
    refusal = JSONResponse({"error": "this server has another name: see serve.hosts"}, 400)

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        refused = scope["type"] == "http" and Request(scope).url.hostname not in hosts
        await (refusal if refused else app)(scope, receive, send)

    return checked


def _posted(
    path: str, kind: type[B], answer: Callable[[B, str], Awaitable[Json]], config: ServeConfig, keys: Sequence[bytes]
) -> Route:
    """Return a route whose answer, given the body and the name of the client, is JSON."""

    async def answered(request: Request) -> Response:
        async with asyncio.timeout(config.timeout):
            body = read_body(request, await _content(request, config.max_bytes), kind)
            return JSONResponse(await _unless_gone(request, answer(body, check_key(request, body, keys))))

    async def endpoint(request: Request) -> Response:
        began, response = time.monotonic(), Response(status_code=CLIENT_GONE)
        try:
            response = await answered(request)
        except HTTPException as error:
            response = _refusal(request, error)
        except TimeoutError:
            limit = f"no answer within {config.timeout:g} seconds: try again with less text"
            response = _refusal(request, HTTPException(503, limit, RETRY))
        except ClientDisconnect:
            pass
        except Exception as error:  # any error: the server goes on
            report_error(error)
            response = _refusal(request, HTTPException(500, "the server failed"))
        finally:
            REQUESTS.labels(path, response.status_code).inc()
            REQUEST_SECONDS.labels(path).observe(time.monotonic() - began)
        return response

    return Route(path, endpoint, methods=["POST"])


def _refusal(_: Request, error: Exception) -> Response:
    """Return the answer to a request that is refused."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _unless_gone(request: Request, answer: Awaitable[Json]) -> Json:
    """Return an answer; stop the work and raise ClientDisconnect if the client closes the connection before."""
    work = asyncio.ensure_future(answer)
    gone = asyncio.ensure_future(request.receive())  # the body has been read: what else comes is the end
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return await work
    finally:
        work.cancel()
        gone.cancel()


async def _content(request: Request, max_bytes: int) -> bytes:
    """Return the body; refuse one that is too large before it is read, and chunks, whose length is not known."""
    if "transfer-encoding" in request.headers:
        raise HTTPException(411, "a request must have a Content-Length and no Transfer-Encoding", CLOSE)
    if int(request.headers.get("content-length", "0")) > max_bytes:  # h11 has checked that it is a number
        raise HTTPException(413, f"a request may have at most {max_bytes} bytes", CLOSE)
    content: bytes = await request.body()
    return content


def read_body(request: Request, content: bytes, kind: type[B]) -> B:
    """Return the fields of a request: JSON, whatever it says that it is, or a form or the query, which have text only.

    Whatever is wrong becomes an error of one line that quotes nothing of the request.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if content and (media_type != FORM or content.lstrip().startswith(b"{")):  # which curl -d calls a form
            return kind.model_validate_json(content)
        form = parse_qsl(content.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
        return kind.model_validate({**request.query_params, **dict(form)})
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = first["loc"][0] if first["loc"] else "the body"
        raise HTTPException(400, f"{place}: {first['msg']}") from None
    except ValueError:
        raise HTTPException(400, f"a form must be UTF-8 with at most {MAX_FIELDS} fields") from None


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


def check_key(request: Request, body: Body, keys: Sequence[bytes]) -> str:
    """Refuse a request without a valid key, if the server asks for one; return the name of its client.

    A key is a bearer token, the header X-API-Key, or the field api_key, as LibreTranslate's clients send it. Clients
    are told apart by key, else by address.
    """
    if not keys:
        return request.client.host if request.client else ""
    bearer = request.headers.get("authorization", "").partition("Bearer ")[2].strip()
    given = bearer or request.headers.get("x-api-key") or body.api_key
    if not given:
        raise HTTPException(401, "this server asks for an API key", {"WWW-Authenticate": "Bearer"})
    # every key is compared, and each in constant time, so that the time tells nothing of the keys
    if not sum(hmac.compare_digest(given.encode(), key) for key in keys):
        raise HTTPException(403, "Invalid API key")
    return f"key {given}"
