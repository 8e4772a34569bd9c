"""The training loop: steps, log lines, validations and checkpoints, until the run ends."""

import math
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress

from nmt.compute import distributed
from nmt.compute.machine import is_out_of_memory
from nmt.compute.signals import Interruptible, StopError, StopRequest, stop_signals
from nmt.data.loader import GlobalBatch
from nmt.errors import UserError
from nmt.runs.tracker import NullTracker
from nmt.training.checkpointing import CheckpointManager, checkpoint_bytes
from nmt.training.divergence import check_same_weights
from nmt.training.progress import Progress
from nmt.training.state import TrainingState
from nmt.training.stopping import Agreement, Deadline, Decision, Ending, Saving, reachable_step

Validate = Callable[[Interruptible], dict[str, float]]
"""Returns the figures of the development set: loss, nll, perplexity and, if the set is decoded, bleu.

The argument makes blocks that a stop request ends; each process runs its own share of the computation in one.
"""

SHOWN = {"loss": "loss", "bleu": "BLEU"}
"""The figures of a validation on the terminal; all of them are in metrics.jsonl."""

MAX_BAD_STEPS = 10
"""After this many consecutive steps without a finite gradient, which change nothing, training stops."""


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
        self._tokens, self._seconds_at_log = 0, 0.0
        self._agreement = Agreement()
        self._deadline = Deadline(self.config.max_minutes, checkpoint_bytes=checkpoint_bytes(self.trainer))
        self._progress: Progress

    def run(self, batches: Iterator[GlobalBatch]) -> Ending:
        """Train (section 5 of the paper) to the last step or until something else ends the run, and save."""
        state = self.state
        state.start_clock()
        self._seconds_at_log = state.clock.seconds()
        self._progress = Progress(self.config.steps, self.trainer.step, distributed.is_main())
        ending = Ending.DONE if state.finished else None
        with stop_signals() as stop_request, closing(self._progress.bar):
            while ending is None:
                with suppress(StopError):  # an interrupted step or validation is repeated when the run resumes
                    if state.validation_due:
                        self._validate(stop_request)
                    else:
                        with self._deadline.timing("step"):
                            self._train_step(next(batches), stop_request)
                ending = self._decide(stop_request)
            self.checkpoint_manager.wait_until_saved()
        return ending

    def _train_step(self, batch: GlobalBatch, stop_request: StopRequest) -> None:
        """Run one step, and log if a log line is due."""
        state, trainer, data_position = self.state, self.trainer, self.trainer.data_position
        # several processes must finish a step together
        interruptible = stop_request.interruptible if distributed.world_size() == 1 else nullcontext
        try:
            trainer.update(batch, interruptible)
        except (RuntimeError, MemoryError) as error:  # other users of the device can cause it at any time
            if not is_out_of_memory(error):
                raise
            raise UserError(
                f"out of memory at step {trainer.step + 1}: free some memory, or lower training.device_tokens, which "
                "does not change the global batches; the same command resumes from the last checkpoint"
            ) from error
        scale = None if trainer.loss_scale is None else trainer.loss_scale.last_scale
        state.divergence.record(trainer.step, data_position, trainer.gradient_norm, scale)
        self._tokens += batch.tokens
        self._progress.bar.update()
        if trainer.step % self.config.log_every == 0:
            self._log()
            self._check_gradients()
        state.validation_due = self._needs_validation(trainer.step)

    def _decide(self, stop_request: StopRequest) -> Ending | None:
        """Save if all processes agree to, and return why the run ends if they agree to end it."""
        state, step = self.state, self.trainer.step
        is_validated = self._validated_step == step
        wait = state.validation_due or is_validated or self._is_save_step(step)
        decision = self._agreement.reach(self._own_decision(stop_request), wait=wait)
        if decision is None:
            return None
        self.trainer.last_step = decision.last_step
        self._progress.expect_end(decision.last_step)
        ending = Ending(decision.ending) if decision.ending else None
        if ending and not is_validated and (ending == Ending.BUDGET or self._time_is_spent()):
            # the weights that the minutes gave are validated now, or on resuming if there is no time
            state.validation_due = True
            ending = None if ending == Ending.BUDGET else ending
        if ending or (decision.saving and not state.validation_due):
            is_interrupted = ending is not None and ending >= Ending.TIME
            self._save(interim=is_interrupted and not decision.saving, only_best=decision.saving == Saving.BEST)
        return ending

    def _own_decision(self, stop_request: StopRequest) -> Decision:
        """Return whether this process wants to end, and whether it wants to save."""
        self.checkpoint_manager.check_writer()
        state, config, step = self.state, self.config, self.trainer.step
        saving = Saving.BEST if self._validated_step == step and not state.best.stale else Saving.NONE
        if self._time_is_spent() or self._is_save_step(step):
            saving = Saving.SCHEDULED
        self._deadline.expect("save", self.checkpoint_manager.write_seconds)
        reasons = {
            Ending.DONE: state.finished,
            Ending.NO_GAIN: 0 < config.patience <= state.best.stale,
            Ending.BUDGET: self._time_is_spent(),
            Ending.TIME: stop_request.late or not self._deadline.has_time_for(self._next_tasks(saving)),
            Ending.SIGNAL: stop_request.signal is not None,
        }
        ending = max((each for each, holds in reasons.items() if holds), default=0)
        return Decision(ending, saving, reachable_step(step, state.clock.seconds(), config))

    def _time_is_spent(self) -> bool:
        """Return whether training.max_training_minutes are over."""
        return 0 < 60 * self.config.max_training_minutes < self.state.clock.seconds()

    def _next_tasks(self, saving: Saving) -> list[str]:
        """Return the tasks until the next decision takes effect, which must end before the time limit.

        A validation that is due is begun in any time that is left, because the time limit stops it, and because a
        checkpoint without its figures cannot become the best.
        """
        if self.state.validation_due:
            return []
        steps = 1 if distributed.world_size() == 1 else 2  # see `Agreement`
        validate = any(self._needs_validation(self.trainer.step + ahead) for ahead in range(1, 1 + steps))
        return [*(["save"] if saving else []), *["step"] * steps, *(["validation"] if validate else [])]

    def _is_save_step(self, step: int) -> bool:
        """Return whether the settings ask for a checkpoint of this step."""
        return step == self.config.steps or bool(self.config.save_every and step % self.config.save_every == 0)

    def _needs_validation(self, step: int) -> bool:
        return step % self.config.valid_every == 0 or step == self.config.steps

    def _log(self) -> None:
        """Write the figures since the last log line."""
        trainer, seconds = self.trainer, self.state.clock.seconds()
        statistics, passed = trainer.take_statistics(), seconds - self._seconds_at_log
        speed = self._tokens / max(passed, 1e-9)
        fields: dict[str, float] = {
            "loss": statistics.loss,
            "nll": statistics.nll,
            "perplexity": statistics.perplexity,
            "learning_rate": trainer.learning_rate,
            "tokens_per_second": speed,
            "seconds": passed,
            "gradient_norm": float(trainer.gradient_norm),
            "epoch": trainer.data_position.epoch,
        }
        for name, (pairs, tokens) in trainer.corpora.items():  # since the start of the run
            fields |= {f"pairs/{name}": pairs, f"tokens/{name}": tokens}
        if statistics.skipped:
            fields["skipped"] = statistics.skipped
        if trainer.loss_scale is not None:
            fields["loss_scale"] = float(trainer.loss_scale.scale)
        if trainer.gradient.passes is not None:
            fields |= trainer.gradient.passes.take_figures()
        self._tokens, self._seconds_at_log = 0, seconds
        self.tracker.log("train", trainer.step, **fields)
        self._progress.show(trainer.step, f"loss {statistics.loss:.3f}, {speed:,.0f} tokens/s")

    def _check_gradients(self) -> None:
        """Report the steps whose gradient was not finite, and stop if there were too many in a row."""
        for warning in self.state.divergence.check(MAX_BAD_STEPS):
            self._progress.write(f"warning: {warning}")

    def _validate(self, stop_request: StopRequest) -> None:
        """Validate; stop at the time limit, because the duration of the first validation cannot be known in advance."""
        self._check_gradients()
        self._check_ranks()
        step = self.trainer.step
        seconds = self._deadline.seconds_left() if self.config.max_minutes else math.inf
        with self.state.clock.pause(), self._deadline.timing("validation"):
            with stop_request.late_after(seconds):
                figures = self.validate(stop_request.interruptible_together)
            self._figures, self._validated_step, self.state.validation_due = figures, step, False
            self.state.best.update(figures)
        self.tracker.log("valid", step, **figures)
        best = "" if self.state.best.stale else " (best)"
        shown = ", ".join(f"{label} {figures[name]:.4g}" for name, label in SHOWN.items() if name in figures)
        self._progress.validation = f"validation {shown}{best}"

    def _save(self, *, interim: bool, only_best: bool) -> None:
        """Save a checkpoint with the figures of this step's validation, unless that is done already."""
        self._check_gradients()
        step = self.trainer.step
        if self._saved_step == step:
            return
        self._check_ranks()
        with self.state.clock.pause(), self._deadline.timing("save"):
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
