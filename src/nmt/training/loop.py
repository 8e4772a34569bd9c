"""The training loop: steps, log lines, validations and checkpoints, until the run ends."""

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress

from nmt.compute import distributed
from nmt.compute.machine import explaining_out_of_memory
from nmt.compute.signals import Interruptible, StopError, StopRequest, stop_signals
from nmt.data.loader import GlobalBatch
from nmt.runs.tracker import Tracker
from nmt.training.checkpointing import CheckpointManager
from nmt.training.progress import Progress
from nmt.training.replicas import check_same_weights
from nmt.training.schedule import reachable_step
from nmt.training.state import TrainingState
from nmt.training.stopping import Agreement, Decision, Ending

Validate = Callable[[Interruptible], dict[str, float]]
"""Returns the figures of the development set: loss, nll, perplexity and, if the set is decoded, bleu.

The argument makes blocks that a stop request ends; each process runs its own share of the computation in one.
"""

SHOWN = {"loss": "loss", "bleu": "BLEU"}
"""The figures of a validation on the terminal; all of them are in metrics.jsonl."""


class Loop:
    """Runs the steps of a training state, and logs, validates and saves in between."""

    def __init__(
        self, state: TrainingState, tracker: Tracker, validate: Validate, checkpoint_manager: CheckpointManager
    ) -> None:
        self.state, self.trainer, self.config = state, state.trainer, state.trainer.config
        self.tracker, self.validate, self.checkpoint_manager = tracker, validate, checkpoint_manager
        self._figures: dict[str, float] = {}
        # a checkpoint that was saved before its validation is saved again after it
        step = -1 if state.validation_due else self.trainer.step
        self._validated_step = self._saved_step = step
        self._tokens, self._seconds_at_log = 0, state.seconds
        self._agreement = Agreement()
        self._progress: Progress

    def run(self, batches: Iterator[GlobalBatch]) -> Ending:
        """Train (section 5 of the paper) to the last step or until something else ends the run, and save."""
        state = self.state
        state.start_clock()
        self._progress = Progress(self.config.steps, self.trainer.step, distributed.is_main())
        ending = Ending.DONE if state.finished else None
        with stop_signals() as stop_request, closing(self._progress.bar):
            while ending is None:
                # an interrupted step or validation is repeated when the run resumes
                with suppress(StopError), explaining_out_of_memory(self._out_of_memory):
                    if state.validation_due:
                        self._validate(stop_request)
                    else:
                        self._train_step(next(batches), stop_request)
                ending = self._decide(stop_request)
            self.checkpoint_manager.wait_until_saved()
        return ending

    @property
    def _out_of_memory(self) -> str:
        """The message if memory runs out, which other users of the device can cause at any time."""
        return (
            f"out of memory after step {self.trainer.step}: free some memory, or lower training.device_tokens, "
            "which does not change the global batches; the same command resumes from the last checkpoint"
        )

    def _train_step(self, batch: GlobalBatch, stop_request: StopRequest) -> None:
        """Run one step, and log if a log line is due."""
        # several processes must finish a step together
        interruptible = stop_request.interruptible if distributed.world_size() == 1 else nullcontext
        self.trainer.update(batch, interruptible)
        step = self.trainer.step
        self._tokens += batch.tokens
        self._progress.bar.update()
        if step % self.config.log_every == 0:
            self._log()
        self.state.validation_due = step % self.config.valid_every == 0 or step == self.config.steps

    def _decide(self, stop_request: StopRequest) -> Ending | None:
        """Save if a save is due, and return why the run ends if the processes agree to end it."""
        state, step = self.state, self.trainer.step
        is_validated = self._validated_step == step
        is_best = is_validated and not state.stale
        is_due = step == self.config.steps or bool(self.config.save_every and step % self.config.save_every == 0)
        wait = state.validation_due or is_validated or is_due
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
        if ending or ((is_due or is_best) and not state.validation_due):
            is_due = is_due or self._time_is_spent()
            is_interrupted = ending == Ending.SIGNAL
            self._save(interim=is_interrupted and not (is_due or is_best), only_best=is_best and not is_due)
        return ending

    def _own_decision(self, stop_request: StopRequest) -> Decision:
        """Return why this process wants to end, if it does."""
        self.checkpoint_manager.check_writer()
        state, config = self.state, self.config
        reasons = {
            Ending.DONE: state.finished,
            Ending.NO_GAIN: 0 < config.patience <= state.stale,
            Ending.BUDGET: self._time_is_spent(),
            Ending.SIGNAL: stop_request.signal is not None,
        }
        ending = max((each for each, holds in reasons.items() if holds), default=0)
        return Decision(ending, reachable_step(self.trainer.step, state.seconds, config))

    def _time_is_spent(self) -> bool:
        """Return whether training.max_training_minutes are over."""
        return 0 < 60 * self.config.max_training_minutes < self.state.seconds

    def _log(self) -> None:
        """Write the figures since the last log line."""
        trainer, seconds = self.trainer, self.state.seconds
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
        self._tokens, self._seconds_at_log = 0, seconds
        self.tracker.log("train", trainer.step, **fields)
        self._progress.show(trainer.step, f"loss {statistics.loss:.3f}, {speed:,.0f} tokens/s")
        self._check_gradients()

    def _validate(self, stop_request: StopRequest) -> None:
        """Validate, and compare the figures with the best so far."""
        self._check_weights()
        state, step = self.state, self.trainer.step
        with state.pause_clock():
            self._figures = self.validate(stop_request.interruptible_together)
        figures, self._validated_step = self._figures, step
        state.note_validation(figures)
        self.tracker.log("valid", step, **figures)
        shown = ", ".join(f"{label} {figures[name]:.4g}" for name, label in SHOWN.items() if name in figures)
        self._progress.validation = f"validation {shown}{'' if state.stale else ' (best)'}"

    def _save(self, *, interim: bool, only_best: bool) -> None:
        """Save a checkpoint with the figures of this step's validation, unless that is done already."""
        step = self.trainer.step
        if self._saved_step == step:
            self._check_gradients()
            return
        self._check_weights()
        with self.state.pause_clock():
            figures = self._figures if self._validated_step == step else {}
            self.checkpoint_manager.save(self.state, figures, interim=interim, only_best=only_best)
        self._saved_step = step

    def _check_gradients(self) -> None:
        """Report a step whose gradient was not finite, and stop if there were too many in a row."""
        if warning := self.trainer.bad_steps.check():
            self._progress.write(f"warning: {warning}")

    def _check_weights(self) -> None:
        """Make sure that all processes have the same weights before one of them is validated or saved."""
        self._check_gradients()
        replicas = self.trainer.replicas
        if distributed.world_size() > 1 and not replicas.divides_weights and self._validated_step != self.trainer.step:
            check_same_weights(replicas.objective, self.trainer.step)
