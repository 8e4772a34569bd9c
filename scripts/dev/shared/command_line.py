"""The command line of a tool: its parser, the types of its arguments, and errors of one line."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


def tool_parser(file: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the tool whose `__main__` this file is.

    argparse would take the name from the command, which has none after the slash of `scripts/dev/faults/`.
    """
    return argparse.ArgumentParser(
        prog=_name(file), description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def run_tool(main: Callable[[], int | None], file: str) -> NoReturn:
    """Run a tool and end with its exit code; print an error that the user can fix as one line."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(f"{_name(file)}: interrupted")
    except Exception as error:
        from nmt.errors import UserError  # noqa: PLC0415 - several tools set variables before nmt is imported

        if not isinstance(error, UserError):
            raise
        print(f"{_name(file)}: {error}", file=sys.stderr)
        sys.exit(2)


def at_least(smallest: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number of at least this size."""

    def whole_number(text: str) -> int:
        number = int(text)
        if number < smallest:
            raise argparse.ArgumentTypeError(f"{text} is not at least {smallest}")
        return number

    return whole_number


def positive(text: str) -> float:
    """Return an argument that is a number above 0, which may be infinite."""
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def existing_folder(text: str) -> Path:
    """Return an argument that names a folder."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a folder")
    return Path(text)


def source_folder(text: str) -> Path:
    """Return an argument that names the folder of a version's code."""
    if not (Path(text) / "nmt" / "__init__.py").is_file():  # without it, Python takes the installed package
        raise argparse.ArgumentTypeError(
            f"{text} has no nmt/__init__.py: name the folder that contains the package, such as src"
        )
    return Path(text)


def _name(file: str) -> str:
    return Path(file).resolve().parent.name
