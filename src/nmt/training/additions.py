"""What settings beyond the paper add to the training of a run."""

from collections.abc import Sequence
from typing import NamedTuple

from nmt.config.tree import Config
from nmt.decoding.alignment import guided_layer
from nmt.text.special import PAD
from nmt.training.guided_attention import GuidedHead
from nmt.training.hook import TrainingHook
from nmt.training.moving_average import MovingAverage
from nmt.training.objective import Term, WordLoss
from nmt.training.r_drop import RDrop, RDropLoss


class Additions(NamedTuple):
    """What settings add to a trainer."""

    word_loss: WordLoss | None = None
    terms: Sequence[Term] = ()
    hooks: Sequence[TrainingHook] = ()


def additions_to(config: Config) -> Additions:
    """Return what the settings add."""
    training = config.training
    word_loss = RDropLoss(RDrop(training.label_smoothing, training.r_drop, PAD)) if training.r_drop else None
    layer = guided_layer(config.model.decoder_depth)
    terms = [GuidedHead(layer, training.guided_weight)] if training.guided_weight else []
    hooks = [MovingAverage(training.ema)] if training.ema else []
    return Additions(word_loss, terms, hooks)
