"""What features add to the training of a run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.discovery import features
from nmt.training.hook import TrainingHook
from nmt.training.objective import Term, WordLoss


class Additions(NamedTuple):
    """What features add to a trainer."""

    word_loss: WordLoss | None = None
    terms: Sequence[Term] = ()
    hooks: Sequence[TrainingHook] = ()


def additions_to(config: Config) -> Additions:
    """Return what the features add that the settings use."""
    (word_loss, *_) = [*_made("word_loss", config), None]  # the settings refuse a second one
    return Additions(word_loss, _made("term", config), _made("hook", config))


def _made(seam: str, config: Config) -> list[Any]:
    """Return what the features make for a seam; one that the settings leave off makes None."""
    makers = [imported(code) for feature in features().values() if (code := getattr(feature, seam))]
    return [made for maker in makers if (made := maker(config)) is not None]
