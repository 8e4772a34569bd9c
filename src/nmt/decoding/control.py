"""What a feature may do to a search: a `Control`, which `Feature.control` or a choice of `decoding.strategy` makes."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from zlib import crc32

import torch
from torch import Tensor

from nmt.config.choices import find
from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Choose, Hypothesis, NextTokenScorer, beam_search
from nmt.decoding.constraints import Constraints
from nmt.decoding.request import Request
from nmt.decoding.sampling import sample
from nmt.discovery import features, imported
from nmt.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine

FORBIDS, FORCES = range(2)
"""The order in which controls change the scores of the model."""

T = TypeVar("T")


class SearchBatch(NamedTuple):
    """The sentences that are searched together. All members have each sentence as often as it is sampled, in a row."""

    sources: Sequence[Sequence[int]]
    """Token ids, which end with EOS."""
    max_lengths: Tensor
    """(B,) longest translations, EOS included."""
    constraints: Sequence[Constraints]
    seed: int = 1


@dataclass(frozen=True, slots=True)
class SearchSetup:
    """What controls are made from."""

    config: DecodingConfig
    tokenizer: Tokenizer
    device: torch.device
    """Where the scores are."""
    max_tokens: int
    """The longest translation, EOS included."""
    kept: dict[Hashable, Any] = field(default_factory=dict)
    """What an engine keeps for all of its searches, such as files that were read: see `once`."""

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` makes for this key; an engine makes it once."""
        if key not in self.kept:
            self.kept[key] = make()
        found: T = self.kept[key]
        return found


class Control:
    """Changes a search; its subclasses override what they need. Threads share it, so its methods do not change it."""

    order: ClassVar[int] = FORBIDS
    """FORBIDS or FORCES."""
    maximises: str = ""
    """The metric of `eval` that the search maximises, if there is one."""

    def encode(self, requests: Sequence[Request]) -> list[Constraints] | None:
        """Return what the translation of each request must contain; None if nothing."""
        return None

    def begin(self, scorer: NextTokenScorer, batch: SearchBatch) -> tuple[NextTokenScorer, Choose | None]:
        """Return a scorer in place of the given one, and how continuations are chosen, for one search."""
        return scorer, None

    def finish(
        self,
        engine: "Engine",
        sources: Sequence[Sequence[int]],
        constraints: Sequence[Constraints],
        found: list[list[Hypothesis]],
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence after the search, best first."""
        return found


MakeControl = Callable[[SearchSetup], Control | None]
"""Makes a control from the settings; None if they leave it off."""


def controls_for(setup: SearchSetup) -> list[Control]:
    """Return the controls that the settings ask for, in their order."""
    makers: list[MakeControl] = [find("decoding.strategy", setup.config.strategy)]
    makers += [imported(feature.control) for feature in features().values() if feature.control]
    made = [control for make in makers if (control := make(setup)) is not None]
    return sorted(made, key=lambda control: control.order)


def usual_search(setup: SearchSetup) -> Control | None:
    """Return no control: beam search and sampling need none."""
    return None


def search(
    scorer: NextTokenScorer, batch: SearchBatch, config: DecodingConfig, controls: Sequence[Control]
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence of a batch, under these controls."""
    choose: Choose | None = None
    for control in controls:
        scorer, chosen = control.begin(scorer, batch)
        choose = chosen or choose
    if config.strategy == "sample":
        # The samples are the same for the same seed and batch, in whichever process and order batches are searched.
        seed = crc32(repr((batch.seed, batch.sources)).encode())
        return sample(scorer, batch.max_lengths, config, torch.Generator(batch.max_lengths.device).manual_seed(seed))
    return beam_search(
        scorer, batch.max_lengths, beam=config.beam, alpha=config.alpha, nbest=config.nbest, choose=choose
    )
