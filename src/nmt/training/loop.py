"""The training loop: steps, log lines, validations and checkpoints, until the run ends."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress

from nmt.compute import distributed
from nmt.compute.machine import is_out_of_memory
from nmt.compute.signals import Interruptible, StopError, StopRequest, stop_signals
from nmt.data.loader import GlobalBatch
from nmt.errors import CommonError, UserError
from nmt.runs.tracker import NullTracker
from nmt.training.agreement import AGREEMENT_SECONDS, AgreementSchedule
from nmt.training.checkpointing import CheckpointManager, checkpoint_bytes
from nmt.training.decision import Decision, Ending, Saving
from nmt.training.divergence import check_same_weights, divergence_error, warnings_about
from nmt.training.progress import TrainingProgress
from nmt.training.state import TrainingState
from nmt.training.stopping import Deadline, Stopwatch, reachable_step

Validate = Callable[[Interruptible], dict[str, float]]
"""Returns the figures of the development set: loss, nll, perplexity and, if the set is decoded, bleu.

The argument makes blocks that a stop request ends; each process runs its own share of the computation in one.
"""

SHOWN = {"loss": "loss", "bleu": "BLEU"}
"""The figures of a validation on the terminal; all of them are in metrics.jsonl."""

MAX_BAD_STEPS = 10
"""After this many consecutive steps without a finite gradient, which change nothing, training stops."""
UNTIL_AGREEMENT = "steps until the next agreement"
"""The task of several processes besides the next step: they decide again only after further steps."""


class Loop:
    """Runs the steps of a training state, and logs, validates and saves in between."""

    def __init__(
        self, state: TrainingState, tracker: NullTracker, validate: Validate, checkpoint_manager: CheckpointManager
    ) -> None:
        self.state, self.trainer, self.config = state, state.trainer, state.trainer.config
        self.tracker, self.validate, self.checkpoint_manager = tracker, validate, checkpoint_manager
        self._figures: dict[str, float] = {}
        # a checkpoint that was saved before its validation is saved again after it
        step = -1 if state.validation_due else self.trainer.step
        self._validated_step = self._saved_step = step
        self._checked_step = self.trainer.step
        self._tokens = 0
        self._deadline = Deadline(self.config.max_minutes, checkpoint_bytes=checkpoint_bytes(self.trainer))
        self._since_log = Stopwatch()
        self._agreements: AgreementSchedule
        if distributed.world_size() > 1:
            self._deadline.expect(UNTIL_AGREEMENT, AGREEMENT_SECONDS)
        self._progress: TrainingProgress

    def run(self, batches: Iterator[GlobalBatch]) -> Ending:
        """Train (section 5 of the paper) to the last step or until something else ends the run, and save."""
        state = self.state
        # the time before the first step is not training time
        state.clock, self._since_log = Stopwatch(), Stopwatch()
        self._agreements = AgreementSchedule(self.trainer.step, state.training_seconds())
        ending = Ending.DONE if state.finished else None
        with (
            stop_signals() as stop_request,
            TrainingProgress(self.config.steps, self.trainer.step, distributed.is_main()) as self._progress,
        ):
            while ending is None:
                with suppress(StopError):  # an interrupted step or validation is repeated when the run resumes
                    if state.validation_due:
                        self._validate(stop_request)
                    else:
                        with self._deadline.timing("step"):
                            self._train_step(next(batches), stop_request)
                if not self._decision_is_due():
                    continue
                decision = self._agree(stop_request)
                ending = Ending(decision.ending) if decision.ending else None
                if ending and self._validated_step != self.trainer.step:
                    ending = self._after_last_validation(ending)
                if ending or (decision.saving and not state.validation_due):
                    self._stop_if_diverged()
                    interrupted = ending is not None and ending >= Ending.TIME
                    self._save(interim=interrupted and not decision.saving, only_best=decision.saving == Saving.BEST)
            self.checkpoint_manager.wait_until_saved()
        return ending

    def _train_step(self, batch: GlobalBatch, stop_request: StopRequest) -> None:
        """Run one step, and log if a log line is due."""
        state, trainer, data_position = self.state, self.trainer, self.trainer.data_position
        self._update(batch, stop_request)
        scale = None if trainer.loss_scale is None else trainer.loss_scale.last_scale
        state.divergence.record(trainer.step, data_position, trainer.gradient_norm, batch.micro_batches, scale)
        self._tokens += batch.tokens
        self._progress.advance()
        if trainer.step % self.config.log_every == 0:
            self._log()
            self._stop_if_diverged()
        state.validation_due = self._needs_validation(trainer.step)

    def _update(self, batch: GlobalBatch, stop_request: StopRequest) -> None:
        """Update the weights; explain an out-of-memory error, which other users of the device can cause at any time."""
        # several processes must finish a step together
        interruptible = stop_request.interruptible if distributed.world_size() == 1 else nullcontext
        step = self.trainer.step + 1
        try:
            self.trainer.update(batch, interruptible)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(
                f"out of memory at step {step}: free some memory, or lower training.device_tokens, which does not "
                "change the global batches; the same command resumes from the last checkpoint"
            ) from error

    def _decision_is_due(self) -> bool:
        """Return whether to decide on ending and saving now; the answer is the same in all processes."""
        step = self.trainer.step
        validation = self.state.validation_due or self._validated_step == step
        return validation or self._is_save_step(step) or self._agreements.is_due(step)

    def _agree(self, stop_request: StopRequest) -> Decision:
        """Return what all processes do next, and plan the next agreement."""
        step, seconds = self.trainer.step, self.state.training_seconds()
        own = self._decide(stop_request, self._agreements.step_microseconds(step, seconds))
        agreed = distributed.agree(own)
        self._agreements.plan_next(step, seconds, agreed.step_microseconds)
        self.trainer.last_step = agreed.last_step
        self._progress.expect_end(agreed.last_step)
        return agreed

    def _decide(self, stop_request: StopRequest, step_microseconds: int) -> Decision:
        """Return whether this process wants to end, and whether it wants to save."""
        self.checkpoint_manager.check_writer()
        state, config, step = self.state, self.config, self.trainer.step
        saving = Saving.BEST if self._validated_step == step and not state.best.stale else Saving.NONE
        if self._time_is_spent() or self._is_save_step(step):
            saving = Saving.SCHEDULED
        endings = []
        if state.finished:
            endings.append(Ending.DONE)
        if config.patience and state.best.stale >= config.patience:
            endings.append(Ending.NO_GAIN)
        if self._time_is_spent():
            endings.append(Ending.BUDGET)
        self._deadline.expect("save", self.checkpoint_manager.write_seconds)
        if stop_request.late or not self._deadline.has_time_for(self._next_tasks(saving)):
            endings.append(Ending.TIME)
        if stop_request.signal:
            endings.append(Ending.SIGNAL)
        last_step = reachable_step(step, state.training_seconds(), config)
        return Decision(max(endings, default=0), saving, step_microseconds, last_step)

    def _after_last_validation(self, ending: Ending) -> Ending | None:
        """Let the weights that the minutes gave be validated: now, or on resuming if there is no time; else end."""
        if ending == Ending.BUDGET or self._time_is_spent():
            self.state.validation_due = True
        return None if ending == Ending.BUDGET else ending

    def _time_is_spent(self) -> bool:
        """Return whether training.max_training_minutes are over."""
        limit = 60 * self.config.max_training_minutes
        return bool(limit) and self.state.training_seconds() > limit

    def _next_tasks(self, saving: Saving) -> list[str]:
        """Return the tasks until the next decision that must end before the time limit.

        A validation that is due is begun in any time that is left, because the time limit stops it, and because a
        checkpoint without its figures cannot become the best.
        """
        if self.state.validation_due:
            return []
        validate = self._needs_validation(self.trainer.step + 1)
        return [*(["save"] if saving else []), "step", *(["validation"] if validate else []), UNTIL_AGREEMENT]

    def _is_save_step(self, step: int) -> bool:
        """Return whether the settings ask for a checkpoint of this step."""
        return step == self.config.steps or bool(self.config.save_every and step % self.config.save_every == 0)

    def _needs_validation(self, step: int) -> bool:
        return step % self.config.valid_every == 0 or step == self.config.steps

    def _log(self) -> None:
        """Write the figures since the last log line."""
        self._warn_about_bad_steps()
        statistics, trainer, seconds = self.state.take_statistics(), self.trainer, self._since_log.seconds()
        fields: dict[str, object] = {
            "loss": statistics.loss,
            "nll": statistics.nll,
            "perplexity": statistics.perplexity,
            "learning_rate": trainer.learning_rate,
            "tokens_per_second": self._tokens / max(seconds, 1e-9),
            "seconds": seconds,
            "gradient_norm": float(trainer.gradient_norm),
            "epoch": trainer.data_position.epoch,
        }
        for name, (pairs, tokens) in trainer.corpora.items():  # since the start of the run
            fields |= {f"pairs/{name}": pairs, f"tokens/{name}": tokens}
        self._tokens, self._since_log = 0, Stopwatch()
        if statistics.skipped:
            fields["skipped"] = statistics.skipped
        if trainer.loss_scale is not None:
            fields["loss_scale"] = float(trainer.loss_scale.scale)
        if trainer.gradient.passes is not None:
            fields |= trainer.gradient.passes.take_figures()
        if warning := self.state.divergence.take_loss_warning(statistics.loss):
            self._progress.write(f"warning: {warning}")
        self.tracker.log("train", trainer.step, **fields)
        self._progress.show(f"loss {statistics.loss:.3f}, {fields['tokens_per_second']:,.0f} tokens/s")

    def _warn_about_bad_steps(self) -> None:
        """Report the steps whose gradient was not finite."""
        for warning in warnings_about(self.state.divergence.take_bad_steps()):
            self._progress.write(f"warning: {warning}")

    def _stop_if_diverged(self) -> None:
        """Stop if too many consecutive steps had no finite gradient."""
        self._warn_about_bad_steps()
        divergence = self.state.divergence
        consecutive = distributed.highest(divergence.consecutive)
        if consecutive >= MAX_BAD_STEPS:
            raise CommonError(divergence_error(divergence.first_bad, consecutive))

    def _validate(self, stop_request: StopRequest) -> None:
        """Validate; stop at the time limit, because the duration of the first validation cannot be known in advance."""
        self._stop_if_diverged()  # not later: the figures belong to the weights that are saved with them
        self._check_ranks()
        step = self.trainer.step
        seconds = self._deadline.seconds_left() if self.config.max_minutes else math.inf
        with self.state.clock.pause(), self._since_log.pause(), self._deadline.timing("validation"):
            with stop_request.late_after(seconds):
                figures = self.validate(stop_request.interruptible_together)
            self._figures, self._validated_step, self.state.validation_due = figures, step, False
            self.state.best.update(figures)
        self.tracker.log("valid", step, **figures)
        best = "" if self.state.best.stale else " (best)"
        shown = ", ".join(f"{label} {figures[name]:.4g}" for name, label in SHOWN.items() if name in figures)
        self._progress.show_validation(f"validation {shown}{best}")

    def _save(self, *, interim: bool, only_best: bool) -> None:
        """Save a checkpoint with the figures of this step's validation, unless that is done already."""
        step = self.trainer.step
        if self._saved_step == step:
            return
        self._check_ranks()
        with self.state.clock.pause(), self._since_log.pause(), self._deadline.timing("save"):
            figures = self._figures if self._validated_step == step else {}
            self.checkpoint_manager.save(self.state, figures, interim=interim, only_best=only_best)
        self._saved_step = step

    def _check_ranks(self) -> None:
        """Make sure that all processes have the same weights before one of them is validated or saved."""
        step = self.trainer.step
        divided = self.trainer.replicas.divides_weights  # then no process has what another one has
        if distributed.world_size() == 1 or divided or self._checked_step == step:
            return
        check_same_weights(self.trainer.replicas.objective, step, self._checked_step)
        self._checked_step = step
