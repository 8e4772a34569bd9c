"""`nmt serve`: answer translation requests over HTTP."""

from nmt.config.tree import Config
from nmt.packages import import_optional


def run(config: Config) -> None:
    """Serve models until SIGTERM or Ctrl-C, then finish the open requests."""
    for package in ("starlette", "uvicorn", "prometheus_client"):
        import_optional(package)
    from nmt.serving.server import serve  # noqa: PLC0415 - needs the packages

    serve(config)
