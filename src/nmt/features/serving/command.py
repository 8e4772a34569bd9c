"""`nmt serve`: answer translation requests over HTTP."""

from nmt.compute.packages import import_optional
from nmt.compute.processes import run_in_process
from nmt.config.schema import Config
from nmt.decoding.engines import choose_engine
from nmt.features.serving import FEATURE
from nmt.features.serving.settings import ServeConfig


def run(config: Config) -> None:
    """Serve models until SIGTERM or Ctrl-C, then finish the open requests."""
    for package in FEATURE.packages:
        import_optional(package)
    from nmt.features.serving.server import serve  # noqa: PLC0415 - needs the packages

    has_choice = config.engine == "auto" and not config.of(ServeConfig).models
    serve(run_in_process(_with_engine, config) if has_choice else config)


def _with_engine(config: Config) -> Config:
    """Decide `engine=auto`, in a process of its own: the server needs no PyTorch, and starts others."""
    from nmt.compute.machine import prepare_machine  # noqa: PLC0415 - imports PyTorch

    return choose_engine(config, prepare_machine(config.runtime), with_details=True)
