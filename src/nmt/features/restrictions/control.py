"""The control that restricts a search as the settings say."""

from typing import cast

from nmt.decoding.beam import Choose, NextTokenScorer
from nmt.decoding.control import Control, SearchBatch, SearchSetup
from nmt.features.restrictions.restrictions import at_least, without_repeats, without_unknown
from nmt.features.restrictions.settings import RestrictedDecoding
from nmt.terms.tokens import distinct_tokens


def restrictions(setup: SearchSetup) -> Control | None:
    """Return the control; None if the settings restrict nothing."""
    config = cast(RestrictedDecoding, setup.config)
    restricted = config.suppress_unknown or config.min_length or config.no_repeat_ngram
    return Restrictions(config) if restricted else None


class Restrictions(Control):
    """Forbids what the settings forbid."""

    def __init__(self, config: RestrictedDecoding) -> None:
        self._config = config

    def begin(self, scorer: NextTokenScorer, batch: SearchBatch) -> tuple[NextTokenScorer, Choose | None]:
        """See `Control.begin`."""
        if self._config.suppress_unknown:
            scorer = without_unknown(scorer)
        if self._config.min_length:
            scorer = at_least(scorer, self._config.min_length, batch.max_lengths)
        if self._config.no_repeat_ngram:
            required = distinct_tokens([each.terms for each in batch.constraints], batch.max_lengths.device)
            scorer = without_repeats(scorer, self._config.no_repeat_ngram, required)
        return scorer, None
