"""A model that was loaded: what `nmt.load` returns, and what the commands translate and score with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nmt.config.checks import check_between, check_effect
from nmt.config.decoding import DecodingConfig
from nmt.decoding.engine import Engine
from nmt.decoding.request import Request, check_is_text
from nmt.decoding.torch_engine import TorchEngine
from nmt.decoding.translation import Likelihood, Translation
from nmt.errors import UserError, nearest
from nmt.runs.checkpoint import CheckpointRecord

if TYPE_CHECKING:
    from nmt.decoding.attention import Attention
    from nmt.decoding.word_details import WordProbability

MAX_SEED = 2**63 - 1
MAX_NEXT_WORDS = 1000


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that translates. Its methods change nothing in it, so any number of threads may call them."""

    engine: Engine
    path: Path
    """Folder of the checkpoint, or of the model for another engine."""
    languages: tuple[str, str]
    """Source and target language."""
    checkpoint: CheckpointRecord
    """The checkpoint that was loaded, or that the model was made from."""

    def translate(
        self,
        lines: Iterable[str | Request],
        *,
        token_scores: bool = False,
        seed: int = 1,
        **options: Any,
    ) -> list[Translation]:
        """Translate lines of text, and return the translations in the same order.

        Args:
            lines: the text, a sentence per line. An empty line stays empty; a line that is too long is truncated, with
                a warning. A `Request` is a line with constraints on its translation.
            token_scores: whether candidates have their tokens with log-probabilities, which takes an extra pass.
            seed: seed of the samples, if strategy is "sample".
            options: settings of the search (`decoding.<name>`) that differ from those that the model was loaded with;
                not `ensemble`, whose models would have to be loaded.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines, not a single text: translate([text])")
        _check_is_whole("seed", seed)
        check_between("seed", seed, 0, MAX_SEED)
        engine = self.engine.with_search(self._search(options), seed)
        return list(engine.translate(lines, token_scores=token_scores))

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Likelihood]:
        """Return how probable the second text of each pair is as the translation of the first.

        Only the beginning of a sentence that is too long counts.
        """
        sources, targets = list[str](), list[str]()
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"{pair!r:.80} is no pair of texts: score([(source, target)])")
            for texts, text in zip((sources, targets), pair, strict=True):
                check_is_text(text)
                texts.append(text)
        return self.engine.score(sources, targets)

    def attention(self, source: str, target: str) -> "Attention":
        """Return the attention weights of a sentence and its translation. Of an ensemble, the first model attends.

        Only the beginning of a sentence that is too long counts.
        """
        if not isinstance(self.engine, TorchEngine):
            raise UserError(
                f"engine={self.engine.name} does not show the attention of {self.path}: load the run itself"
            )
        from nmt.decoding.attention import compute_attention  # noqa: PLC0415 - seldom used

        engine = self.engine
        limits = engine.max_source_tokens, engine.max_target_tokens
        return compute_attention(engine.models[0], engine.tokenizer, source, target, limits)

    def next_words(self, source: str, beginning: str = "", *, count: int = 8) -> "list[WordProbability]":
        """Return the words that are most likely to follow the beginning of a translation, most likely first.

        Punctuation belongs to the word before it. The probabilities of all words and of the end add up to 1.
        """
        if not isinstance(self.engine, TorchEngine):
            raise UserError(
                f"engine={self.engine.name} does not show the next words of {self.path}: load the run itself"
            )
        _check_is_whole("count", count)
        check_between("count", count, 1, MAX_NEXT_WORDS)
        if not source.strip():
            return []
        from nmt.decoding.next_words import likely_words  # noqa: PLC0415 - seldom used

        return likely_words(self.engine, source, beginning, count)

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        raise TypeError("a loaded model cannot be copied: load it in each process, and share it between threads")

    def _search(self, options: Mapping[str, Any]) -> DecodingConfig:
        """Return the settings of a search: those of the engine, except for `options`."""
        known = {field.name for field in fields(DecodingConfig)} - {"ensemble"}
        for name in options:
            if name not in known:
                raise TypeError(f"translate has no option {name}; {nearest(name, known)}")
            _check_type(name, getattr(self.engine.config, name), options[name])
        search = replace(self.engine.config, **options)
        for name in options:
            check_effect("decoding", search, name)
        return search


def _check_type(name: str, usual: object, value: object) -> None:
    """Refuse a value of another type than the usual one."""
    match usual:
        case int():
            _check_is_whole(name, value)
        case float():
            if not isinstance(value, Real):
                raise TypeError(f"{name}={value!r:.80} must be a number")
        case str() | list() if not isinstance(value, type(usual)):
            raise TypeError(f"{name}={value!r:.80} must be a {type(usual).__name__}")


def _check_is_whole(name: str, value: object) -> None:
    if not isinstance(value, Integral):  # also one of numpy
        raise TypeError(f"{name}={value!r:.80} must be a whole number")
