"""`nmt serve`: answer translation requests over HTTP."""

from nmt.compute.packages import import_optional
from nmt.config.schema import Config

PACKAGES = ("starlette", "uvicorn", "prometheus_client", "python_multipart")


def run(config: Config) -> None:
    """Serve models until SIGTERM or Ctrl-C, then finish the open requests."""
    for package in PACKAGES:
        import_optional(package)
    from nmt.features.serving.server import serve  # noqa: PLC0415 - needs the packages

    serve(config)
