"""The corpus of the tests that train."""

from tests.integration.conftest import corpus, settings

__all__ = ["corpus", "settings"]
