"""The core knows nothing of trees: what it needs of them, it asks the task of the target side."""

import re
from pathlib import Path

import nmt
from nmt.config.choices import TEXT, task_name
from nmt.data.task import TRANSLATION, task_of
from nmt.features.trees.settings import TREES

SOURCE = Path(nmt.__file__).parent
WORDS = re.compile(r"pos_tags|bracketed|constituency|treebank|linearise|\bparsing\b|target_lang=trees|\"trees\"")


def test_no_module_of_the_core_speaks_of_trees() -> None:
    core = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ("features", "parsing")]
    assert len(core) > 100
    assert [path.name for path in core if WORDS.search(path.read_text(encoding="utf-8"))] == []


def test_target_language_selects_the_task() -> None:
    assert task_name("de") == TEXT
    assert task_of("de") is TRANSLATION
    assert task_name(TREES) == TREES
    assert task_of(TREES) is not TRANSLATION


def test_only_trees_repeat_under_different_sentences() -> None:
    assert not TRANSLATION.repeats_targets
    assert task_of(TREES).repeats_targets
