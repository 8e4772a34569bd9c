"""The web application: all routes, the page, and what every request passes."""

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.config.commands import ServeConfig
from nmt.serving.fields import Fields, check_key
from nmt.serving.libretranslate import ITS_CODES, Detector, LibreTranslate
from nmt.serving.messages import CLOSE, RequestError, report_error
from nmt.serving.metrics import Metrics
from nmt.serving.service import Model
from nmt.serving.v1 import V1

CLIENT_GONE = 499
"""The status that is counted for clients that did not wait for the answer."""
HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""Headers of every answer, unless it has its own."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Sent with every file of the page: it loads nothing from other hosts, runs no inline script, and is not framed."""
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
Answering = Callable[[Fields, str], Awaitable[Any]]
"""Returns the answer to the fields of a request by the client of this name, ready for JSON."""


class Server:
    """What the routes share."""

    def __init__(
        self,
        models: Sequence[Model],
        config: ServeConfig,
        metrics: Metrics,
        keys: Sequence[bytes] = (),
        detector: Detector | None = None,
    ) -> None:
        self.models, self.config, self.metrics, self.keys = models, config, metrics, keys
        self.draining = False
        """Whether connections are closed after their answers."""
        self.libretranslate, self.v1 = LibreTranslate(models, config, detector), V1(models)

    def application(self) -> ASGIApp:
        """Return the application. It opens no file that a request names: the page is read now."""
        its, own = self.libretranslate, self.v1
        app = Starlette(
            routes=[
                *(Route(path, _show(content, kind)) for path, content, kind in read_page()),
                Route("/metrics", self._show_metrics),
                self._route("/translate", its.translate, "POST", codes=ITS_CODES, asks_key=True),
                self._route("/detect", its.detect, "POST", codes=ITS_CODES, asks_key=True),
                self._route("/suggest", its.suggest, "POST"),
                self._route("/languages", its.languages, "GET", "POST"),  # the client of argostranslate posts
                self._route("/health", its.health, "GET"),
                self._route("/frontend/settings", its.settings, "GET"),
                self._route("/v1/models", own.list_models, "GET"),
                self._route("/v1/translate", own.translate, "POST", asks_key=True),
                self._route("/v1/choices", own.choices, "POST", asks_key=True),
            ],
            exception_handlers={HTTPException: _refuse_by_starlette},
        )
        app.router.redirect_slashes = False
        guarded = self._guard(app)
        if not self.config.origins:
            return guarded
        return CORSMiddleware(  # outermost, so that pages of other origins can read refusals, too
            guarded,
            allow_origins=self.config.origins,
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "X-API-Key"),
            expose_headers=("Retry-After",),
        )

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    def _route(
        self, path: str, answer: Answering, *methods: str, codes: dict[int, int] | None = None, asks_key: bool = False
    ) -> Route:
        """Return a route that answers in JSON, also if it refuses; `codes` replaces statuses of refusals."""

        async def endpoint(request: Request) -> Response:
            began, response = time.monotonic(), Response(status_code=CLIENT_GONE)
            try:
                async with asyncio.timeout(self.config.timeout):
                    body = await self._read(request)
                    fields = Fields.of(request, body)
                    client = check_key(request, fields, self.keys if asks_key else ())
                    response = JSONResponse(await _unless_gone(request, answer(fields, client)))
            except TimeoutError:
                limit = f"no answer within {self.config.timeout:g} seconds: try again with less text"
                response = refusal(RequestError(503, limit, {"Retry-After": "5"}))
            except RequestError as error:
                if "Connection" not in error.headers:  # else it is refused before it is read
                    error.status = (codes or {}).get(error.status, error.status)
                response = refusal(error)
            except ClientDisconnect:
                pass
            except Exception as error:  # any error: the server goes on
                report_error(error)
                response = refusal(RequestError(500, "the server failed"))
            finally:
                self.metrics.requests.labels(path, response.status_code).inc()
                self.metrics.seconds.labels(path).observe(time.monotonic() - began)
            return response

        return Route(path, endpoint, methods=list(methods))

    async def _read(self, request: Request) -> bytes:
        """Return the body; refuse one that is too large before it is read, and chunks, whose length is not known."""
        if "transfer-encoding" in request.headers:
            raise RequestError(411, "a request must have a Content-Length and no Transfer-Encoding", CLOSE)
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 18 or int(length) > self.config.max_bytes:
            raise RequestError(413, f"a request may have at most {self.config.max_bytes} bytes", CLOSE)
        body: bytes = await request.body()
        return body

    def _guard(self, app: ASGIApp) -> ASGIApp:
        """Refuse names that are not the server's, and add the common headers."""
        config = self.config
        is_private = _is_loopback(config.host) and not self.keys
        all_are_accepted = "*" in config.hosts or not (config.hosts or is_private)
        names = {each.lower() for each in config.hosts}

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return

            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    common = {**HEADERS, **(CLOSE if self.draining else {})}
                    encoded = {name.lower().encode(): value.encode() for name, value in common.items()}
                    message = {**message, "headers": [*{**encoded, **dict(message["headers"])}.items()]}
                await send(message)

            host = dict(scope["headers"]).get(b"host")
            if all_are_accepted or host is None or _is_accepted(host.decode("latin-1"), names):
                await app(scope, receive, send_with_headers)
            else:
                wrong = "this server has another name: serve.hosts lists those that it accepts"
                await refusal(RequestError(421, wrong, CLOSE))(scope, receive, send_with_headers)

        return guarded


def refusal(error: RequestError) -> JSONResponse:
    """Return the answer to a request that is refused."""
    return JSONResponse({"error": error.message}, error.status, error.headers)


async def _unless_gone(request: Request, answer: Awaitable[Any]) -> Any:
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


async def _refuse_by_starlette(_: Request, error: HTTPException) -> JSONResponse:
    """Answer what Starlette refuses: an unknown path, or another method."""
    return refusal(RequestError(error.status_code, error.detail, error.headers))


def read_page() -> list[tuple[str, bytes, str]]:
    """Return the path, the content and the media type of each file of the page."""
    found = sorted(files(__package__).joinpath("page").iterdir(), key=lambda file: file.name)
    return [
        ("/" if file.name == "index.html" else f"/{file.name}", file.read_bytes(), MEDIA_TYPES[file.name.split(".")[1]])
        for file in found
    ]


def _show(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def show(_: Request) -> Response:
        return Response(content, headers=PAGE_HEADERS, media_type=kind)

    return show


def _is_accepted(host: str, names: set[str]) -> bool:
    """Return whether a request may name this host.

    A page of any site can let its own name resolve to this machine, and then read the server's answers through the
    browser of someone who reaches the server (DNS rebinding). The browser still sends the name of that site as Host.
    """
    host = host.strip().lower()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name == "localhost" or name in names or _address(name) is not None


def _is_loopback(host: str) -> bool:
    """Return whether only programs on this machine reach a server that listens on this address."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
