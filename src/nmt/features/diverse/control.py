"""The control that divides the beam into groups."""

from typing import cast

from nmt.decoding.beam import Choose, Hypothesis, NextTokenScorer
from nmt.decoding.control import Control, SearchBatch, SearchSetup
from nmt.features.diverse.search import diverse_beam_search
from nmt.features.diverse.settings import DiverseDecoding


def diverse(setup: SearchSetup) -> Control | None:
    """Return the control; None if the beam is one group."""
    return Diverse(setup) if cast(DiverseDecoding, setup.config).groups > 1 else None


class Diverse(Control):
    """Searches in groups, each of which is a copy of the sentence."""

    def __init__(self, setup: SearchSetup) -> None:
        self._config, self._diversity = setup.config.search, cast(DiverseDecoding, setup.config).diversity
        self.copies = cast(DiverseDecoding, setup.config).groups
        self.search = self._search

    def _search(self, scorer: NextTokenScorer, batch: SearchBatch, choose: Choose | None) -> list[list[Hypothesis]]:
        return diverse_beam_search(
            scorer,
            batch.max_lengths,
            beam=self._config.beam // self.copies,
            alpha=self._config.alpha,
            nbest=self._config.nbest,
            groups=self.copies,
            diversity=self._diversity,
            choose=choose,
        )
