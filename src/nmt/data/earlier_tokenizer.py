"""A tokenizer that preparation keeps or extends instead of training a new one: see `Feature.tokenizer`."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt.config.folders import expanded
from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.discovery import features
from nmt.errors import UserError
from nmt.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierTokenizer:
    """A tokenizer that exists before the corpus is prepared, and how preparation uses it."""

    name: str
    """What messages call its place."""
    kept_from: str
    """The setting that names this place, in words."""
    load: Callable[[], Tokenizer]
    """Load the tokenizer; raise a UserError if it is gone."""
    instead: str
    """The setting with which a new tokenizer is trained instead."""
    more_pieces: str
    """The settings with which the tokenizer has other pieces, in words."""
    vocabulary: str = ""
    """What the manifest records of its use besides its checksum, if anything."""
    extend: Callable[[Tokenizer, Tokenizer], Tokenizer] | None = None
    """Return the loaded tokenizer with pieces of one that is learned from the text; None to keep it as it is."""


def earlier_tokenizer(config: Config) -> EarlierTokenizer | None:
    """Return the tokenizer that the settings name to keep or extend; None if they train a new one."""
    if config.tokenizer.folder:
        return _of_folder(config.tokenizer.folder)
    found = (imported(feature.tokenizer)(config) for feature in features().values() if feature.tokenizer)
    return next((each for each in found if each is not None), None)


def _of_folder(folder: str) -> EarlierTokenizer:
    without = "tokenizer.folder=''"
    return EarlierTokenizer(
        name=folder,
        kept_from="tokenizer.folder",
        load=lambda: Tokenizer.load(expanded(folder), f"restore it, or set {without}"),
        instead=without,
        more_pieces=without,
    )


def check_joint(tokenizer: Tokenizer, earlier: EarlierTokenizer, *, joint: bool) -> None:
    """Refuse an earlier tokenizer if it shares one vocabulary between the languages and the settings do not."""
    if tokenizer.joint != joint:
        raise UserError(
            f"the tokenizer of {earlier.name} has "
            f"{'one vocabulary' if tokenizer.joint else 'a vocabulary per language'}, but "
            f"tokenizer.joint={str(joint).lower()}: set tokenizer.joint={str(tokenizer.joint).lower()}, "
            f"or {earlier.instead}"
        )
