"""The compilation of the operations in C, and their cache."""

import os
import shutil
from pathlib import Path

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.model.backends.chosen import choose
from nmt.model.kernels.c import compile as compile_c
from nmt.model.kernels.c import library
from tests.compiled_operations import compile_again
from tests.quick_processes import Running

OPTIMIZED = compile_c.OPTIONS
QUICKLY = tuple(option.replace("-O3", "-O0") for option in OPTIMIZED)
needs_compiler = pytest.mark.skipif(not library.use_operations(library.DEFINITIONS), reason="needs a C compiler")
library.use_operations(())


def compile_into(cache: Path, patch: pytest.MonkeyPatch) -> Path:
    """Let the operations be compiled again, quickly, into a folder of this cache, which is returned."""
    patch.setattr(compile_c, "OPTIONS", QUICKLY)
    patch.setattr(library, "_library", library._library.__wrapped__)
    patch.setenv("XDG_CACHE_HOME", str(cache))
    return cache / "nmt"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of an empty cache for the operations, which are compiled quickly."""
    return compile_into(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a cache with the operations, from the compiler of the environment; CC may be empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", os.environ.get("CC", ""))
        folder = compile_into(tmp_path_factory.mktemp("cache"), patch)
        assert library.use_operations(library.DEFINITIONS)
    return folder


@needs_compiler
def test_the_operations_are_compiled_once(fresh: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(filled, fresh)
    files = {file: file.stat().st_mtime_ns for file in fresh.iterdir()}
    assert [file.suffix for file in files] == [".so", ".so"]
    monkeypatch.setattr(compile_c, "_compile", lambda *_: pytest.fail("compiled again"))
    assert library.use_operations(library.DEFINITIONS)
    assert {file: file.stat().st_mtime_ns for file in fresh.iterdir()} == files


@needs_compiler
def test_a_damaged_file_in_the_cache_is_replaced(fresh: Path) -> None:
    fresh.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_c, "_compile", lambda _, folder: write_garbage(folder / "operations.so"))
        assert not library.use_operations(library.DEFINITIONS)
    assert [file.read_bytes() for file in fresh.glob("*.so")] == [b"no library"] * 2
    assert library.use_operations(library.DEFINITIONS)


def write_garbage(file: Path) -> Path:
    file.write_bytes(b"no library")
    return file


@needs_compiler
def test_two_processes_can_compile_simultaneously(tmp_path: Path) -> None:
    started = [Running(compile_again, QUICKLY, XDG_CACHE_HOME=str(tmp_path)) for _ in range(2)]
    assert [process.wait().returncode for process in started] == [0, 0]
    assert sorted(file.suffix for file in (tmp_path / "nmt").iterdir()) == [".so", ".so"]


@pytest.mark.parametrize("compiler", ["a-compiler-that-does-not-exist", "false", "'"])
def test_without_a_compiler_pytorch_computes(compiler: str, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    assert not library.use_operations(library.DEFINITIONS)
    assert choose(Machine(torch.device("cpu"), torch.bfloat16), kernels=True).name == "eager"


def test_a_compiler_that_fails_is_the_same_as_none(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -DLANES=+")
    assert not library.use_operations(library.DEFINITIONS)
    assert not list(fresh.glob("*"))
