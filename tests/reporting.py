"""What the end of a run of the tests says besides pytest: how to run a failed test again, and which parts were skipped.

The last line stays pytest's own.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator

INSTALL = {
    "needs a browser": "apt-get install chromium chromium-driver",
    "needs a C compiler": "apt-get install gcc",
    "needs a C++ compiler": "apt-get install g++",
    "needs the extra comet": (
        "python3 -m venv .venv/comet && .venv/comet/bin/python -m pip install --editable '.[comet,dev]'; "
        "then .venv/comet/bin/python -m pytest tests/features/comet/test_comet.py"
    ),
}
"""The commands that install what tests need, by the beginning of the reason for which they are skipped."""
EXTRA = re.compile(r"needs the extra (\w+)")
MOST_NAMED = 5
"""The largest number of failed tests that are named in a command."""


def rerun(failed: Iterable[str]) -> str:
    """Return the command that runs the failed tests again, of whichever tier they are."""
    names = list(dict.fromkeys(name.partition("@")[0] for name in failed))
    which = shlex.join(names) if len(names) <= MOST_NAMED else "--last-failed"
    return f".venv/bin/python -m pytest -m '' {which}"


def skipped_parts(reasons: Iterable[str]) -> Iterator[str]:
    """Yield a line per reason for which tests are skipped, with the command that installs what they need."""
    for reason, count in sorted(Counter(reasons).items()):
        found = EXTRA.match(reason)
        extra = f"{found[1]}" if found else ""
        command = next((command for start, command in INSTALL.items() if reason.startswith(start)), "")
        if extra and not command:
            command = f".venv/bin/python -m pip install --constraint constraints.lock --editable '.[{extra}]'"
        yield f"{count} skipped: {reason}" + (f": {command}" if command else "")
