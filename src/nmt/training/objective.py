"""The training objective: the loss over all words, and the terms that are added to it."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor, nn

from nmt.data.loader import MicroBatch
from nmt.model.attention_plan import Plan
from nmt.model.interface import TranslationModel
from nmt.model.packed import Packed
from nmt.model.word_vectors import Factors
from nmt.text.special import PAD
from nmt.training.loss import Losses, smoothed_cross_entropy


class Watcher:
    """Observes one forward pass for a term of the loss. Subclasses override what they need."""

    def plan(self, plan: Plan) -> Plan:
        """Return a plan of attention that may also record queries and keys, given the plan that the model has."""
        return plan

    def loss(self, outputs: Factors) -> Tensor:
        """Return the amount to add to the loss of the micro-batch, a sum over its labels."""
        raise NotImplementedError


class Term(Protocol):
    """An amount that training adds to the loss."""

    def watch(self, batch: MicroBatch) -> Watcher | None:
        """Return an observer of the forward pass of a micro-batch; None if nothing is added to its loss.

        Several threads may call this at the same time.
        """


class WordLoss(Protocol):
    """The loss over all words, in place of the cross-entropy."""

    def inputs(self, batch: MicroBatch) -> tuple[Packed, Packed]:
        """Return the source and the target that the model reads for a micro-batch."""

    def __call__(self, outputs: Factors, labels: Tensor) -> Losses:
        """Return the losses, summed over the labels."""


class CrossEntropy:
    """Cross-entropy with smoothed labels (section 5.4 of the paper)."""

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing

    def inputs(self, batch: MicroBatch) -> tuple[Packed, Packed]:
        """See `WordLoss.inputs`."""
        return batch.source, batch.target

    def __call__(self, outputs: Factors, labels: Tensor) -> Losses:
        """See `WordLoss`."""
        output, projection, working = outputs
        return smoothed_cross_entropy(
            output,
            projection,
            labels,
            smoothing=self.smoothing,
            ignore=PAD,
            working_projection=working,
        )


class Objective(nn.Module):
    """The loss of the model, summed over the tokens of a micro-batch; held-out text has the cross-entropy alone."""

    def __init__(
        self,
        model: TranslationModel,
        smoothing: float,
        *,
        word_loss: WordLoss | None = None,
        terms: Sequence[Term] = (),
    ) -> None:
        super().__init__()
        self.model = model
        self.cross_entropy = CrossEntropy(smoothing)
        self.word_loss = word_loss or self.cross_entropy
        self.terms = terms

    def forward(self, batch: MicroBatch) -> Losses:
        """Return the losses, summed over the labels of the batch."""
        if not self.training:
            outputs = self.model.factors(self.model(batch.source, batch.target))
            return self.cross_entropy(outputs, batch.labels)
        watchers = [watcher for term in self.terms if (watcher := term.watch(batch)) is not None]
        outputs = self.model.factors(self._output(batch, watchers))
        losses = self.word_loss(outputs, batch.labels)
        for watcher in watchers:
            losses = losses._replace(smoothed=losses.smoothed + watcher.loss(outputs))
        return losses

    def _output(self, batch: MicroBatch, watchers: Sequence[Watcher]) -> Tensor:
        """Return the last layer's output; the model attends by a plan that all watchers have extended."""
        source, target = self.word_loss.inputs(batch)
        if not watchers:
            return self.model(source, target)
        plan = self.model.plan
        for watcher in watchers:
            plan = watcher.plan(plan)
        return self.model(source, target, plan)
