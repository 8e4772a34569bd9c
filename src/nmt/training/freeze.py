"""Exclude weights from training."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from nmt.config.training import PARTS
from nmt.config.tree import Config
from nmt.errors import UserError, nearest
from nmt.model.interface import TranslationModel
from nmt.model.parameters import matches_any, trainable
from nmt.training.hook import TrainingHook
from nmt.training.preparation import Prepared


def freezing(config: Config) -> "Freezing | None":
    """Return what freezes the weights that the settings name; None if they name none."""
    names = config.training.freeze
    return Freezing(names) if names else None


def warn_of_new_pieces(config: Config) -> Prepared:
    """Warn if word pieces that the model to begin from does not know keep the vectors that they begin with."""
    tuning = config.training
    if tuning.init_vocabulary == "old" or not tuning.freezes_vectors:
        return Prepared(config)
    warning = (
        f"training.freeze=[{','.join(tuning.freeze)}] also keeps the vectors of the new word pieces of "
        f"training.init_vocabulary={tuning.init_vocabulary}: freeze no word vectors if these pieces are to be learned"
    )
    return Prepared(config, warning=warning)


class Freezing(TrainingHook):
    """Freezes weights before training begins."""

    def __init__(self, names: Sequence[str]) -> None:
        """See `training.freeze`."""
        self._names = names

    def prepare(self, model: TranslationModel) -> None:
        """See `TrainingHook.prepare`."""
        freeze(model, self._names)


def freeze(model: TranslationModel, names: Sequence[str]) -> None:
    """Let training leave the named parameters as they are: they get neither gradients nor optimizer state.

    Args:
        model: The model.
        names: Parts, or names of parameters, in which * stands for any text.
    """
    parameters = dict(model.named_parameters())
    for name in names:
        chosen = [each for each in parameters if matches_any(each, PARTS.get(name, (name,)))]
        if not chosen:
            hint = _hint(name, parameters)
            raise UserError(f"training.freeze: {name} is no part and no parameter of this model: {hint}")
        for each in chosen:
            parameters[each].requires_grad_(False)
    if not trainable(model):
        raise UserError(f"training.freeze=[{','.join(names)}] leaves nothing to train: freeze less")


def _hint(name: str, parameters: Collection[str]) -> str:
    """Return what to write in place of a name that fits no parameter."""
    if "*" in name:
        return "correct or remove it"
    parts = [part for part, patterns in PARTS.items() if any(matches_any(each, patterns) for each in parameters)]
    similar = get_close_matches(name, parameters, n=1)
    return nearest(name, [*parts, *similar])
