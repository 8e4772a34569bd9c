"""What every request passes: limits of size and time, and an end to the work for clients that are gone."""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.config.commands import ServeConfig
from nmt.serving.errors import CLOSE, RequestError, report_error
from nmt.serving.hosts import accepted_hosts, is_accepted
from nmt.serving.metrics import Metrics
from nmt.serving.protocol import check_chunks

CLIENT_GONE = 499
"""The status that is counted for clients that did not wait for the answer."""
HEADERS = {b"x-content-type-options": b"nosniff", b"cache-control": b"no-store"}
"""Headers of every answer, unless it has its own."""


class ClientGoneError(Exception):
    """The client has closed its connection."""


def error_response(error: RequestError) -> JSONResponse:
    """Return the answer to a request that is refused."""
    return JSONResponse({"error": error.message}, error.status, error.headers)


class Guard:
    """Reads the whole request within the limits, runs the application on it, and counts the answer."""

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: Metrics, routes: frozenset[str]) -> None:
        """Count the given routes by their paths, and all others together."""
        self.app, self.config, self.metrics, self.routes = app, config, metrics, routes
        self.hosts = accepted_hosts(config.hosts, config.host, keys=bool(config.key_file))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in self.routes else "other"
        began, answer = time.monotonic(), _Answer(send)
        try:
            async with asyncio.timeout(self.config.timeout):
                await self._answer(scope, receive, answer)
        except TimeoutError:
            limit = f"no answer within {self.config.timeout:g} seconds: try again with less text"
            await answer.refuse(scope, receive, RequestError(503, limit, {"Retry-After": "5"}))
        except ClientGoneError:
            answer.status = CLIENT_GONE
        except RequestError as error:
            await answer.refuse(scope, receive, error)
        except Exception as error:  # any error: the server goes on
            report_error(error)
            await answer.refuse(scope, receive, RequestError(500, "the server failed"))
        finally:
            self.metrics.requests.labels(route, answer.status).inc()
            self.metrics.request_seconds.labels(route).observe(time.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Run the application; stop it if the client closes the connection."""
        if not is_accepted(dict(scope["headers"]).get(b"host"), self.hosts):
            raise RequestError(421, "this server has another name: serve.hosts lists those that it accepts", CLOSE)
        body = await self._read(scope, receive)
        work = asyncio.ensure_future(self.app(scope, _receive_once(body), answer))
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not answer.complete:
                raise ClientGoneError
            await work
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body; refuse one that is too large or comes too slowly."""
        too_large = RequestError(413, f"a request may have at most {self.config.max_bytes} bytes", CLOSE)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or len(announced) > 18 or int(announced) > self.config.max_bytes:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.config.read_timeout):
                async for part in _parts(receive):
                    body += part
                    check_chunks(scope)
                    if len(body) > self.config.max_bytes:
                        raise too_large
        except TimeoutError as error:
            raise RequestError(408, "the request came too slowly", CLOSE) from error
        return bytes(body)


class _Answer:
    """Sends an answer with the common headers, and knows how far it has come."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.status = 0
        self.complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": list({**HEADERS, **dict(message.get("headers", ()))}.items())}
        await self.send(message)
        self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def refuse(self, scope: Scope, receive: Receive, error: RequestError) -> None:
        """Answer with an error, unless an answer has begun."""
        if not self.status:
            await error_response(error)(scope, receive, self)


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the parts of the body."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        yield message.get("body", b"")
        more = message.get("more_body", False)


def _receive_once(body: bytes) -> Receive:
    """Return what an application calls to receive a body that was read before; a second call waits for ever."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
