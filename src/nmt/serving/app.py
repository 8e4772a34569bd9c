"""The web application: all routes behind the guard."""

from collections.abc import Sequence
from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from nmt.serving import libretranslate, v1
from nmt.serving.errors import RequestError
from nmt.serving.guard import Guard, error_response
from nmt.serving.service import Service

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
"""The page loads nothing from anywhere, and no other page may frame it."""


def application(service: Service, keys: Sequence[bytes] = ()) -> Guard:
    """Return the application. It opens no file that a request names; the page is read now."""
    page = resources.files("nmt.serving").joinpath("page/index.html").read_text(encoding="utf-8")

    async def show_page(_: Request) -> HTMLResponse:
        return HTMLResponse(page, headers=PAGE_HEADERS)

    async def metrics(_: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    routes = [
        Route("/", show_page),
        Route("/metrics", metrics),
        *libretranslate.routes(service),
        *v1.routes(service),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={RequestError: _refuse, HTTPException: _refuse_by_starlette, Exception: _fail},
    )
    app.state.keys = list(keys)
    return Guard(app, service.config, service.metrics, frozenset(route.path for route in routes))


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestError)
    return error_response(error)


async def _refuse_by_starlette(_: Request, error: Exception) -> JSONResponse:
    """Answer what Starlette refuses: an unknown path, another method, a damaged form."""
    assert isinstance(error, HTTPException)
    return error_response(RequestError(error.status_code, error.detail, error.headers))


async def _fail(_: Request, __: Exception) -> JSONResponse:
    """Answer after an error of the server, which the guard reports."""
    return error_response(RequestError(500, "the server failed"))
