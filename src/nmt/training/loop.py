"""Training from a place in the data to the last step: when to update, log, validate, save and stop."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from nmt.compute import distributed
from nmt.compute.machine import is_out_of_memory
from nmt.compute.signals import Interruptible, StopError, StopRequest, stop_signals
from nmt.data.loader import GlobalBatch
from nmt.errors import CommonError, UserError
from nmt.runs.tracking import NullTracker
from nmt.training.checkpointing import CheckpointManager
from nmt.training.clock import Deadline, Stopwatch
from nmt.training.divergence import DivergenceMonitor, StepRecord, weights_hash
from nmt.training.progress import TrainingProgress
from nmt.training.trainer import Trainer

Validate = Callable[[Interruptible], dict[str, float]]
"""Returns the figures of the development set: loss, nll, perplexity and, if decoded, bleu.

What each process does alone, it does in blocks that may be left midway.
"""

LABELS = {"loss": "smoothed loss"}
"""What figures are called where people read them, if their name in metrics.jsonl does not say enough."""


class Ending(IntEnum):
    """Why training stopped; the higher, the more it matters."""

    DONE = 0
    NO_GAIN = 1
    """No new best on the development set for `training.patience` validations."""
    BUDGET = 2
    """`training.max_training_minutes` are over."""
    TIME = 3
    """`training.max_minutes` leave no room for more."""
    SIGNAL = 4
    """Somebody asked for it."""


@dataclass
class Best:
    """What was best on the development set so far, and for how long nothing was better."""

    by: str
    value: float | None = None
    stale: int = 0

    def look(self, valid: Mapping[str, float]) -> None:
        """Take in a validation."""
        value = valid[self.by]
        better = math.isfinite(value) and (
            self.value is None or (value > self.value if self.by == "bleu" else value < self.value)
        )
        self.value, self.stale = (value, 0) if better else (self.value, self.stale + 1)


class Loop:
    """Runs a trainer over steps, and tells and keeps what comes of it."""

    def __init__(
        self, trainer: Trainer, tracker: NullTracker, validate: Validate, checkpoint_manager: CheckpointManager
    ) -> None:
        self.trainer, self.tracker, self.validate, self.checkpoint_manager = (
            trainer,
            tracker,
            validate,
            checkpoint_manager,
        )
        self.config = config = trainer.config
        self.best = Best(config.best_by)
        self.divergence = DivergenceMonitor()
        self.skipped = 0
        self.rewound = False
        self._valid: dict[str, float] = {}
        self._valid_step = self._saved_step = self._same_step = trainer.step
        self._unseen = False
        self._tokens = 0
        self._trained_before = 0.0
        self._deadline = Deadline(config.max_minutes, checkpoint_bytes=_checkpoint_bytes(trainer))
        self._clock: Stopwatch
        self._last_save: Stopwatch
        self._speed: Stopwatch

    def run(self, batches: Iterator[GlobalBatch]) -> Ending:
        """Train to the last step, or until something else ends it. Ends with a checkpoint in any case."""
        config, trainer = self.config, self.trainer
        # the time that it took to get here is not training
        self._clock, self._last_save, self._speed = Stopwatch(), Stopwatch(), Stopwatch()
        with (
            stop_signals() as stop_request,
            TrainingProgress(config.steps, trainer.step, distributed.is_main()) as progress,
        ):
            # a step that several processes are in the midst of, one of them cannot leave
            interruptible = stop_request.interruptible if distributed.world_size() == 1 else nullcontext
            ending = Ending.DONE
            while not ending and (self._unseen or trainer.step < config.steps):
                with suppress(StopError):  # what was left half done is made again when the run goes on
                    if self._unseen:
                        self._look(stop_request, progress)
                    else:
                        with self._deadline.timing("step"):
                            self._make(next(batches), interruptible, progress)
                ending, due = self._agree(stop_request)
                if ending or (due and not self._unseen):
                    self._check(progress)
                    self._keep(interim=ending >= Ending.BUDGET and not due)
            self.checkpoint_manager.wait_until_saved()
        return ending

    def _make(self, work: GlobalBatch, interruptible: Interruptible, progress: TrainingProgress) -> None:
        """Make a step, and tell of it."""
        config, trainer, place = self.config, self.trainer, self.trainer.data_position
        self._update(work, interruptible)
        self.divergence.note(trainer.step, place, trainer.gradient_norm, work.micro_batches)
        self._tokens += work.tokens
        progress.advance()
        if trainer.step % config.log_every == 0:
            self._log(progress)
            self._check(progress)
        self._unseen = self._is_validated(trainer.step)

    def _update(self, work: GlobalBatch, interruptible: Interruptible) -> None:
        """Update the weights; what fitted at first may not fit for ever, where others use the same memory."""
        step = self.trainer.step + 1
        try:
            self.trainer.update(work, interruptible)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(
                f"out of memory at step {step}: free some, or set training.device_tokens to less than "
                "now, with the same batches; the same command goes on from the last checkpoint"
            ) from error

    def state(self) -> dict[str, Any]:
        """What the loop itself must remember in a checkpoint."""
        return {
            "best": self.best.value,
            "stale": self.best.stale,
            "skipped": self.skipped,
            "rewound": self.rewound,
            "unseen": self._unseen,
            "training_seconds": self._training_seconds(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.best.value, self.best.stale, self.skipped = state["best"], state["stale"], state["skipped"]
        # checkpoints of nmt 0.1.0 may not have these
        self.rewound, self._unseen = state.get("rewound", False), state.get("unseen", False)
        self._trained_before = state.get("training_seconds", 0.0)
        self._valid_step = self._saved_step = self._same_step = self.trainer.step
        if self._unseen:  # what the development set says of it is to be saved, too
            self._valid_step = self._saved_step = -1

    def _agree(self, stop_request: StopRequest) -> tuple[Ending, bool]:
        """Whether to end and whether to save now: the same in all processes, as all take part in both."""
        config, step = self.config, self.trainer.step
        ending, due = Ending.DONE, step == config.steps or bool(config.save_every and step % config.save_every == 0)
        due = due or (self._valid_step == step and not self.best.stale)  # the best is always among the saved
        if config.patience and self.best.stale >= config.patience:
            ending = Ending.NO_GAIN
        if config.max_training_minutes and self._training_seconds() > 60 * config.max_training_minutes:
            ending = Ending.BUDGET
        if config.save_minutes and time.monotonic() - self._last_save.start > 60 * config.save_minutes:
            due = True
        self._deadline.expect("save", self.checkpoint_manager.write_seconds)
        if stop_request.late or not self._deadline.has_room_for(self._next_work(due)):
            ending = Ending.TIME
        if stop_request.signal:
            ending = Ending.SIGNAL
        decision = distributed.highest(2 * ending + due)
        return Ending(decision // 2), bool(decision % 2)

    def _next_work(self, saved_first: bool) -> list[str]:
        """Name what comes next: the validation that is due; or a step, what precedes it and what is due after it."""
        if self._unseen:
            return ["validation"]
        validated = self._is_validated(self.trainer.step + 1)
        return [*(["save"] if saved_first else []), "step", *(["validation"] if validated else [])]

    def _is_validated(self, step: int) -> bool:
        return step % self.config.valid_every == 0 or step == self.config.steps

    def _training_seconds(self) -> float:
        """Return the seconds of training in all parts of the run, without validation and checkpoints."""
        return self._trained_before + self._clock.seconds()

    def _log(self, progress: TrainingProgress) -> None:
        self._tell(progress)
        means = self.trainer.means()
        self.skipped += means.skipped
        seconds = self._speed.seconds()
        fields = {
            "loss": means.loss,
            "nll": means.nll,
            "perplexity": means.perplexity,
            "learning_rate": self.trainer.learning_rate,
            "tokens_per_second": self._tokens / max(seconds, 1e-9),
            "seconds": seconds,
            "gradient_norm": float(self.trainer.gradient_norm),
            "epoch": self.trainer.data_position.epoch,
        }
        self._tokens, self._speed = 0, Stopwatch()
        if means.skipped:
            fields["skipped"] = means.skipped
        if explosion := self.divergence.explosion(means.loss):
            progress.say(f"warning: {explosion}")
        self.tracker.log("train", self.trainer.step, **fields)
        progress.show(
            f"smoothed loss {means.loss:.4f}  nll {means.nll:.4f}  perplexity {means.perplexity:.2f}  "
            f"rate {fields['learning_rate']:.2e}  {fields['tokens_per_second']:,.0f} tokens/s"
        )

    def _tell(self, progress: TrainingProgress) -> None:
        """Tell of the steps that had no finite gradient."""
        bad = self.divergence.look()
        if bad:
            progress.say(f"warning: {_told(bad)}")

    def _check(self, progress: TrainingProgress) -> None:
        """Give up where too many steps in a row had no finite gradient."""
        self._tell(progress)
        in_a_row = distributed.highest(self.divergence.in_a_row)
        if not 0 < self.config.max_bad_steps <= in_a_row:
            return
        if self.config.on_divergence == "rewind" and not self.rewound:
            self._rewind(progress)
        else:
            raise CommonError(_diverged(self.divergence.first_bad, in_a_row, self.rewound))

    def _rewind(self, progress: TrainingProgress) -> None:
        """Take back what was learned since the last checkpoint before the bad steps; their batches are left out."""
        trainer = self.trainer
        step, place = trainer.step, trainer.data_position
        self.skipped += trainer.means().skipped
        back = self.checkpoint_manager.restore_before(self.divergence.first_bad)
        trainer.step, trainer.data_position, self.rewound = step, place, True
        trainer.means()  # sums of an earlier time came with the checkpoint
        self.divergence.forgive()
        progress.say(
            f"warning: went back to the weights of step {back}, and on with the batches after step {step}; "
            "that is done once in a run"
        )

    def _check_ranks(self) -> None:
        """Make sure that all processes still have the same weights; none of what they have is saved otherwise."""
        if distributed.world_size() == 1 or self._same_step == self.trainer.step:
            return
        first, *others = distributed.gather_objects(weights_hash(self.trainer.objective))
        for rank, theirs in enumerate(others, start=1):
            if theirs != first:
                raise CommonError(
                    f"the weights of rank {rank} are not those of rank 0 at step {self.trainer.step}; at step "
                    f"{self._same_step} they were: suspect that machine's memory or device. Nothing was saved since: "
                    "the same command goes on from the last checkpoint"
                )
        self._same_step = self.trainer.step

    def _look(self, stop_request: StopRequest, progress: TrainingProgress) -> None:
        """Validate, but leave it if too little time remains: how long the first one takes, nobody knows before."""
        self._check_ranks()
        step = self.trainer.step
        seconds = self._deadline.room() if self.config.max_minutes else math.inf
        with (
            self._clock.pause(),
            self._speed.pause(),
            self._deadline.timing("validation"),
            stop_request.late_after(seconds),
        ):
            valid = self.validate(stop_request.interruptible_together)
        self._valid, self._valid_step, self._unseen = valid, step, False
        self.best.look(self._valid)
        self.tracker.log("valid", step, **self._valid)
        figures = "  ".join(f"{LABELS.get(name, name)} {value:.4g}" for name, value in self._valid.items())
        progress.say(f"step {step}  development set: {figures}{'  (best so far)' if not self.best.stale else ''}")

    def _keep(self, *, interim: bool) -> None:
        """Save, with what validation says of this step, if it was looked at."""
        step = self.trainer.step
        if self._saved_step == step:
            return
        self._check_ranks()
        with self._clock.pause(), self._speed.pause(), self._deadline.timing("save"):
            state = {"trainer": self.trainer.state(), "loop": self.state()}  # every process has a part in it
            self.checkpoint_manager.save(step, state, self._valid if self._valid_step == step else {}, interim=interim)
            distributed.barrier()
        self._saved_step, self._last_save = step, Stopwatch()


def _checkpoint_bytes(trainer: Trainer) -> int:
    """Return about how large a checkpoint is: the weights and Adam's two means."""
    return 3 * sum(weight.nbytes for weight in trainer.model.parameters())


def _told(bad: Sequence[StepRecord]) -> str:
    """Steps without a finite gradient, in words; the first of them in full."""
    if len(bad) == 1:
        return f"no finite gradient, so nothing was changed at {bad[0]}"
    others = ", ".join(str(each.step) for each in bad[1:20]) + (", ..." if len(bad) > 20 else "")
    return f"no finite gradient, so nothing was changed at {len(bad)} steps: {bad[0]}; {others}"


def _diverged(first: int, in_a_row: int, rewound: bool) -> str:
    """Why training gives up, and what can be done."""
    rewind = "" if rewound else "set training.on_divergence=rewind to go back and leave these batches out, "
    return (
        f"training diverged: {in_a_row} steps in a row, from step {first} on, had no finite gradient"
        f"{', after it had gone back once' if rewound else ''}; `nmt batch batch.step={first}` shows the "
        f"first one's text. The last checkpoint is untouched: {rewind}"
        "or train under another name= with training.clip_norm=1 or a lower training.learning_rate"
    )
