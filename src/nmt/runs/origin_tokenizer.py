"""Keep or extend the tokenizer of the model that a run begins from."""

from nmt.config.tree import Config
from nmt.data.earlier_tokenizer import EarlierTokenizer
from nmt.text.tokenizer import Tokenizer


def old_tokenizer(config: Config) -> EarlierTokenizer | None:
    """Return the tokenizer of the model to begin from, as the settings use it; None if a new one is trained."""
    tuning = config.training
    if not tuning.uses_old_vocabulary:
        return None

    def load() -> Tokenizer:
        from nmt.runs.origin import tokenizer_folder  # noqa: PLC0415 - imports torch

        return Tokenizer.load(tokenizer_folder(config), "restore it, or begin with another checkpoint")

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
