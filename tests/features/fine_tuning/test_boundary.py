"""The core knows nothing of fine-tuning: a run may begin somewhere, and a tokenizer may exist."""

import re
from pathlib import Path

import nmt

SOURCE = Path(nmt.__file__).parent
WORDS = re.compile(r"init_(from|vocabulary|skip)|fine.tun|training\.freeze")
"""The settings and the subject."""


def test_no_other_module_speaks_of_fine_tuning() -> None:
    others = [path for path in SOURCE.rglob("*.py") if "fine_tuning" not in path.parts]
    assert len(others) > 100
    assert [path.name for path in others if WORDS.search(path.read_text(encoding="utf-8"))] == []
