"""The control that chooses the candidate with the least risk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from nmt.config.choices import find
from nmt.decoding.beam import Hypothesis
from nmt.decoding.constraints import Constraints
from nmt.decoding.control import Control, SearchSetup
from nmt.features.minimum_bayes_risk.risk import rank_by_utility
from nmt.features.minimum_bayes_risk.settings import RiskDecoding
from nmt.features.minimum_bayes_risk.utilities import MakeUtility, Utility

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine


def least_risk(setup: SearchSetup) -> Control:
    """Return the control with the utility that the settings name."""
    name = cast(RiskDecoding, setup.config).utility
    make: MakeUtility = find("decoding.utility", name)
    return LeastRisk(setup.config.nbest, name, make(setup))


class LeastRisk(Control):
    """Ranks the candidates of a sentence by their expected utility."""

    def __init__(self, nbest: int, name: str, utility: Utility) -> None:
        self.maximises = name
        self._nbest, self._utility = nbest, utility

    def finish(
        self,
        engine: "Engine",
        sources: Sequence[Sequence[int]],
        constraints: Sequence[Constraints],
        found: list[list[Hypothesis]],
    ) -> list[list[Hypothesis]]:
        """See `Control.finish`."""
        return [self._choose(engine, *each) for each in zip(found, sources, strict=True)]

    def _choose(self, engine: "Engine", candidates: list[Hypothesis], source: Sequence[int]) -> list[Hypothesis]:
        """Return the candidates of a sentence with the least Bayes risk."""
        if not candidates:
            return []
        tokenizer = engine.tokenizer
        text = tokenizer.decode_source(source[1:] if source[0] in tokenizer.source_tags else source)
        return rank_by_utility(
            candidates, tokenizer.decode, lambda translations: self._utility(translations, text), self._nbest
        )
