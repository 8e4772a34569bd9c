"""Detect side effects of code that should only read: files written elsewhere, programs started."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
REMOVING = {"os.remove", "os.rmdir"}
STARTING = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn"}

_sandbox: Path | None = None
_seen: list[str] = []
_installed = False


class SideEffectError(AssertionError):
    """A file outside the sandbox was changed, or a program was started."""


@contextmanager
def forbidding_side_effects(sandbox: Path) -> Iterator[None]:
    """Raise an error if the block writes outside the sandbox or starts a program, even if it hides that error."""
    global _sandbox, _installed  # noqa: PLW0603 (Python's audit hooks take no arguments and cannot be removed)
    if not _installed:
        sys.addaudithook(_look)
        _installed = True
    _seen.clear()
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    _sandbox = sandbox.resolve()
    try:
        yield
    finally:
        _sandbox = None
        sys.dont_write_bytecode = writes_bytecode
    if _seen:
        raise SideEffectError(_seen[0])


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if _sandbox is None:
        return
    if event in STARTING:
        _refuse(f"{event} {arguments!r}")
    elif event in CHANGING or (event == "open" and _writes(*arguments)):
        # a link is created at its second name; a rename changes both names
        paths = {"os.rename": arguments[:2], "os.link": arguments[1:2], "os.symlink": arguments[1:2]}
        home = _opened_folder(arguments[1]) if event in REMOVING else Path()
        for path in paths.get(event, arguments[:1]):
            if not isinstance(path, int) and not _is_inside(home / os.fsdecode(path), _sandbox):
                _refuse(f"{event} {os.fsdecode(path)!r}")


def _opened_folder(descriptor: int) -> Path:
    """Return the folder that a path begins in, given its descriptor, or -1 for the one of the process."""
    return Path() if descriptor == -1 else Path(f"/proc/self/fd/{descriptor}").resolve()


def _writes(_: Any, mode: str | None, flags: int) -> bool:
    return bool(flags & WRITING) if mode is None else bool(set(mode) & set("wax+"))


def _is_inside(path: Path, folder: Path) -> bool:
    if str(path) == os.devnull:
        return True
    resolved = Path(os.path.abspath(path)).parent.resolve() / path.name  # noqa: PTH100 (as the system reads it)
    return folder in (resolved, *resolved.parents)


def _refuse(event: str) -> None:
    _seen.append(event)
    raise SideEffectError(event)
