"""The corpus that is trained on."""

from tests.integration.conftest import corpus, settings

__all__ = ["corpus", "settings"]
