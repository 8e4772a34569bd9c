"""The embedded demo corpus: English and German sentences that a grammar generates."""

from collections.abc import Iterator
from functools import lru_cache

from nmt.config.schema import DataConfig
from nmt.data.sources.source import Fingerprint, Pair, Source, languages
from nmt.errors import UserError

SIZES = {"train": 30_000, "valid": 500, "test": 1000}
"""Pairs per split."""


def fingerprint(_: DataConfig, seed: int, __: str) -> Fingerprint:
    """Identify the text by grammar, seed and sizes."""
    from nmt import grammar  # noqa: PLC0415 (only this source needs it)

    return {"demo": grammar.fingerprint(), "seed": seed, "sizes": SIZES}


def pairs(config: DataConfig, seed: int, split: str) -> Iterator[Pair]:
    """Yield the generated pairs of a split."""
    source, target = languages(config)
    if (source, target) not in (("en", "de"), ("de", "en")):
        raise UserError(f"the demo corpus is English and German, not {source} and {target}.")
    return (pair if source == "en" else pair[::-1] for pair in _generate(seed)[split])


@lru_cache(maxsize=1)
def _generate(seed: int) -> dict[str, list[Pair]]:
    from nmt import grammar  # noqa: PLC0415 (only this source needs it)

    return grammar.generate(seed, **SIZES)


SOURCE = Source(fingerprint, pairs, splits=("test", "unseen", "valid", "train"), can_hold_out=False)
