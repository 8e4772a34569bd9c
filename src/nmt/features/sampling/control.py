"""The controls that draw samples, and that add noise to beam search."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from torch import Tensor

from nmt.decoding.beam import Choose, Hypothesis, NextTokenScorer, length_penalty
from nmt.decoding.constraints import Constraints
from nmt.decoding.control import PERTURBS, Control, SearchBatch, SearchSetup
from nmt.features.sampling.noise import noisy_scorer, sentence_seeds
from nmt.features.sampling.sample import sample
from nmt.features.sampling.settings import SamplingDecoding
from nmt.text.special import EOS

if TYPE_CHECKING:
    from nmt.decoding.engine import Engine


def samples(setup: SearchSetup) -> Control:
    """Return the control that draws `nbest` translations of each sentence."""
    return Samples(setup)


def noise(setup: SearchSetup) -> Control | None:
    """Return the control that adds noise; None if the settings leave it off."""
    config = cast(SamplingDecoding, setup.config)
    return Noise(config.noise, setup.config.alpha) if config.noise else None


class Samples(Control):
    """Draws translations instead of searching."""

    def __init__(self, setup: SearchSetup) -> None:
        self._config = setup.config.search
        self.copies = self._config.nbest
        self.search = self._draw

    def _draw(self, scorer: NextTokenScorer, batch: SearchBatch, _: Choose | None) -> list[list[Hypothesis]]:
        config = self._config
        settings = cast(SamplingDecoding, config)
        return sample(scorer, batch.max_lengths, config.nbest, config.alpha, settings, seeds_of(batch))


class Noise(Control):
    """Adds noise to the scores of a search, and takes it out of those of its hypotheses."""

    order = PERTURBS

    def __init__(self, factor: float, alpha: float) -> None:
        self._factor, self._alpha = factor, alpha

    def begin(self, scorer: NextTokenScorer, batch: SearchBatch) -> tuple[NextTokenScorer, Choose | None]:
        """See `Control.begin`."""
        return noisy_scorer(scorer, seeds_of(batch), self._factor), None

    def finish(
        self,
        engine: "Engine",
        sources: Sequence[Sequence[int]],
        constraints: Sequence[Constraints],
        found: list[list[Hypothesis]],
    ) -> list[list[Hypothesis]]:
        """Return the same hypotheses with the scores that the model gives them without noise."""
        rows = [(index, each.tokens) for index, hypotheses in enumerate(found) for each in hypotheses]
        if not rows:
            return found
        given = [list(sources[index]) for index, _ in rows]
        scores = engine.label_scores(given, [[*tokens, EOS] for _, tokens in rows])
        scored: list[list[Hypothesis]] = [[] for _ in found]
        for (index, tokens), token_scores in zip(rows, scores, strict=True):
            total = sum(token_scores[len(constraints[index].forced) :])
            scored[index].append(Hypothesis(tokens, total / length_penalty(len(tokens) + 1, self._alpha), total))
        return scored


def seeds_of(batch: SearchBatch) -> Tensor:
    """Return the seed of each copy of a sentence."""
    of_sentences = sentence_seeds(batch.sources[:: batch.copies], batch.seed, batch.max_lengths.device)
    return of_sentences.repeat_interleave(batch.copies)
