"""The web application: all routes behind the guard."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from nmt.serving import libretranslate, v1
from nmt.serving.detection import Detector
from nmt.serving.errors import RequestError
from nmt.serving.guard import Guard, error_response
from nmt.serving.page import HEADERS, load_page
from nmt.serving.service import Service


def application(service: Service, keys: Sequence[bytes] = (), detector: Detector | None = None) -> ASGIApp:
    """Return the application. It opens no file that a request names; the page is read now."""
    files = load_page()

    async def show_page(request: Request) -> Response:
        file = files[request.scope["path"]]
        return Response(file.content, headers=HEADERS, media_type=file.media_type)

    async def metrics(_: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    routes = [
        *(Route(path, show_page) for path in files),
        Route("/metrics", metrics),
        *libretranslate.routes(service, detector),
        *v1.routes(service),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={RequestError: _refuse, HTTPException: _refuse_by_starlette, Exception: _fail},
    )
    app.state.keys = list(keys)
    app.router.redirect_slashes = False
    guard = Guard(app, service.config, service.metrics, frozenset(route.path for route in routes))
    return _shared(guard, service.config.origins)


def _shared(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Let pages of other origins read all answers, also refusals by the guard; without origins, change nothing."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST"),
        allow_headers=("Authorization", "X-API-Key"),
        expose_headers=("Retry-After",),
    )


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
