"""What the target side of a run is: a task. The core's task is text; a feature adds others.

The value of `data.target_lang` selects the task. Every stage asks it for what depends on the kind of the target side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config.data import DataConfig, is_text
from nmt.config.registry import imported
from nmt.data.records import JsonObject
from nmt.text.train_tokenizer import LinesSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the target side is. The defaults are those of text; no function imports torch."""

    settings: Callable[[DataConfig], JsonObject] = lambda _: {}
    """Return the settings on which the prepared text depends only because of this task."""
    check: Callable[[Sequence[str], Sequence[str], str], None] = lambda *_: None
    """Refuse references that do not fit their source sentences, given both and the name of their file."""
    train_tokenizer: Callable[[Sequence[Path]], tuple[bytes, LinesSeen]] | None = None
    """Train a SentencePiece model on the files of the target side; None trains word pieces, as for the source side."""
    typical_vocabulary: int | None = None
    """Size of the target vocabulary that estimates assume; None is `tokenizer.vocab_size`."""
    repeats_targets: bool = False
    """Whether different source sentences often have the same target side."""
    required_scores: tuple[str, ...] = ("bleu", "bleu_paper", "chrf", "ter")
    """The scores that every eval/<split>.json holds."""


TRANSLATION = Task()
"""The core's task, whose target side is text."""


def task_of(target_lang: str) -> Task:
    """Return the task that a value of `data.target_lang` selects."""
    task: Task = TRANSLATION if is_text(target_lang) else imported("nmt.parsing.task:TREES")
    return task
