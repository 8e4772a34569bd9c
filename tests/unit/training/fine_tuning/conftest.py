"""The corpus and the run that other models begin from."""

from tests.integration.conftest import corpus, settings, whole

__all__ = ["corpus", "settings", "whole"]
