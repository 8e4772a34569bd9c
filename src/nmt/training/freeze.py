"""Exclude weights from training."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from nmt.config.training import PARTS, TrainingConfig
from nmt.errors import UserError, nearest
from nmt.model.interface import TranslationModel
from nmt.model.parameters import matches_any, trainable


def warning_of_new_pieces(tuning: TrainingConfig) -> str:
    """Return a warning if word pieces that the model to begin from does not know keep the vectors they begin with."""
    if tuning.init_vocabulary == "old" or not tuning.freezes_vectors:
        return ""
    return (
        f"training.freeze=[{','.join(tuning.freeze)}] also keeps the vectors of the new word pieces of "
        f"training.init_vocabulary={tuning.init_vocabulary}: freeze no word vectors if these pieces are to be learned"
    )


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
