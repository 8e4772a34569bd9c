"""The HTTP server: queue, processes of models, routes, limits, and the page."""

from nmt.feature import COMMON, Command, Feature

FEATURE = Feature(
    summary="a server with a page to try models on, and LibreTranslate's API",
    packages={
        "starlette": "starlette>=0.46",
        "uvicorn": "uvicorn>=0.34",
        "prometheus_client": "prometheus-client>=0.21",
        "python_multipart": "python-multipart>=0.0.20",
    },
    commands={
        "serve": Command(
            "nmt.serving.command",
            "answer translation requests over HTTP",
            ("checkpoint", "engine", "serve", "decoding", *COMMON),
            corpus=False,
        )
    },
    completes_settings="nmt.serving.settings:checked",
)
