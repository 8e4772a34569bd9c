"""A tokenizer that preparation keeps or extends instead of training a new one."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt.config.folders import expanded
from nmt.config.registry import imported
from nmt.config.tree import Config
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
    return _of_origin(config) if config.training.uses_old_vocabulary else None


def _of_folder(folder: str) -> EarlierTokenizer:
    without = "tokenizer.folder=''"
    return EarlierTokenizer(
        name=folder,
        kept_from="tokenizer.folder",
        load=lambda: Tokenizer.load(expanded(folder), f"restore it, or set {without}"),
        instead=without,
        more_pieces=without,
    )


def _of_origin(config: Config) -> EarlierTokenizer:
    """Return the tokenizer of the model that a run begins from, to keep or extend it."""
    tuning = config.training

    def load() -> Tokenizer:
        folder = imported("nmt.runs.origin:tokenizer_folder")(config)  # runs import data
        return Tokenizer.load(folder, "restore it, or begin with another checkpoint")

    def extended(old: Tokenizer, learned: Tokenizer) -> Tokenizer:
        from nmt.text.extend_tokenizer import extend  # noqa: PLC0415 - few runs need it

        return extend(old, learned, config.tokenizer.vocab_size, tuning.init_from)

    return EarlierTokenizer(
        name=tuning.init_from,
        kept_from="the model of training.init_from",
        load=load,
        instead="training.init_vocabulary=new",
        more_pieces="training.init_vocabulary=extend or new",
        vocabulary=tuning.init_vocabulary,
        extend=extended if tuning.init_vocabulary == "extend" else None,
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
