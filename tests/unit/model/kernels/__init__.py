"""Tests of the fused operations. `test_triton.py` runs them again in Triton's interpreter."""

import os

import pytest

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
plain_only = pytest.mark.skipif(INTERPRETED, reason="does not depend on the implementation")
