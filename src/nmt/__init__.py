"""The Transformer of "Attention Is All You Need", from parallel text to BLEU.

The names in `__all__` are the Python interface, which docs/reference.md describes; everything else may change. They are
imported when they are first used, because torch takes seconds to import.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.decoding.attention import Attention
    from nmt.decoding.load import LoadedModel, load
    from nmt.decoding.translation import Candidate, Likelihood, Request, ScoredToken, Translation, WordProbability
    from nmt.errors import UserError

__version__ = "0.1.0"
DISTRIBUTION = "nmt-transformer"
"""The name in package indexes, where nmt is another project."""
__all__ = [
    "Attention",
    "Candidate",
    "Likelihood",
    "LoadedModel",
    "Request",
    "ScoredToken",
    "Translation",
    "UserError",
    "WordProbability",
    "load",
]
_HOMES = {
    "Attention": "decoding.attention",
    "LoadedModel": "decoding.load",
    "UserError": "errors",
    "load": "decoding.load",
}
"""The modules of names that are not in `nmt.decoding.translation`."""

SPINS = 10_000
"""How often a thread that waits for others spins before it sleeps. GNU OpenMP's 300,000 times take milliseconds, in
which nothing else can use its core."""
if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = str(SPINS)  # OpenMP reads it when torch is imported


if not TYPE_CHECKING:  # so that a type checker still finds misspelt names

    def __getattr__(name: str) -> object:
        """Import a name of `__all__`."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"nmt.{_HOMES.get(name, 'decoding.translation')}"), name)


def __dir__() -> list[str]:
    """List the names of `__all__` too."""
    return sorted({*globals(), *__all__})
