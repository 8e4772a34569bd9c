"""The corpus and the run that translates."""

from tests.integration.conftest import corpus, settings, whole

__all__ = ["corpus", "settings", "whole"]
