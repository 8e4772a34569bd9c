"""The HTTP server: queue, processes of models, routes, limits, and the page."""

from nmt.feature import COMMON, Command, Feature, Group

FEATURE = Feature(
    summary="a server with a page to try models on, and LibreTranslate's API",
    page="docs/serving.md",
    packages=("starlette", "uvicorn", "python_multipart", "prometheus_client"),
    commands={
        "serve": Command(
            "nmt.features.serving.command",
            "answer translation requests over HTTP",
            ("checkpoint", "engine", "serve", "decoding", *COMMON),
        )
    },
    settings={"serve": Group("nmt.features.serving.settings:ServeConfig")},
)
