"""The corpus of the runs."""

from tests.integration.conftest import corpus, settings

__all__ = ["corpus", "settings"]
