"""The compilation of the operations in C, and their cache."""

from pathlib import Path

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.model.backends.chosen import choose
from nmt.model.kernels.c import compile as compile_c
from nmt.model.kernels.c import library
from tests.compiled_operations import compile_again
from tests.quick_processes import Running

QUICKLY = tuple(option.replace("-O3", "-O0") for option in compile_c.OPTIONS)
needs_compiler = pytest.mark.skipif(not library.use_operations(library.DEFINITIONS), reason="needs a C compiler")
library.use_operations(())


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of an empty cache for the operations, which are compiled quickly."""
    monkeypatch.setattr(compile_c, "OPTIONS", QUICKLY)
    monkeypatch.setattr(library, "_library", library._library.__wrapped__)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "nmt"


@pytest.mark.slow
@needs_compiler
def test_processes_can_compile_simultaneously_and_others_use_the_result(fresh: Path) -> None:
    started = [Running(compile_again, QUICKLY, XDG_CACHE_HOME=str(fresh.parent)) for _ in range(2)]
    assert [process.wait().returncode for process in started] == [0, 0]
    assert {file.suffix for file in fresh.iterdir()} == {".so"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_c, "_compile", lambda *_: pytest.fail("compiled again"))
        assert library.use_operations(library.DEFINITIONS)


@pytest.mark.parametrize("compiler", ["a-compiler-that-does-not-exist", "false", "'"])
def test_without_a_compiler_pytorch_computes(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    assert choose(Machine(torch.device("cpu"), torch.bfloat16), kernels=True).name == "eager"
