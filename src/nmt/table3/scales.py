"""The scales at which the rows of Table 3 can be trained: the paper's, and smaller ones in the same proportions."""

from collections.abc import Mapping
from typing import NamedTuple

from nmt.config.compose import compose
from nmt.config.keys import value_of
from nmt.config.tree import Config

WIDTHS = ("d_model", "d_ff", "d_k", "d_v")
SUITABLE = ("tokenizer.vocab_size", "model.norm_placement", "model.initialization", "training.optimizer")
"""Settings that suit a corpus."""


class Scale(NamedTuple):
    """How all rows are shrunk, so that each still differs from base as in the paper."""

    introduction: str
    """What the written table says about its rows."""
    layer_divisor: int = 1
    width_divisor: int = 1
    steps: int = 0
    """Steps of the row base; big takes three times as many."""
    warmup: float = 0.0
    """Steps of warmup, as a share of `steps`."""
    overrides: tuple[str, ...] = ()
    """Settings that all rows share."""
    experiment: str = ""
    """An experiment on the same corpus, whose values of SUITABLE all rows share too."""


SCALES: Mapping[str, Scale] = {
    "full": Scale("The columns `paper` hold the paper's figures."),
    "multi30k": Scale(
        "The rows are shrunk in proportion and trained on Multi30k, each for the same number of steps (big for three "
        "times as many, as in the paper). The columns `paper` hold the figures of the full size.",
        layer_divisor=2,
        width_divisor=4,
        steps=1200,
        warmup=0.125,
        overrides=(
            "data=multi30k",
            "training.batch_tokens=512",
            "training.schedule=cosine",
            "training.learning_rate=3e-3",
        ),
        experiment="multi30k",  # its optimizer learns as much in a quarter of the steps
    ),
    "small": Scale(
        "The rows are shrunk and trained on the demo corpus, to show that they run. The columns `paper` hold the "
        "figures of the full size: compare only the differences between rows.",
        layer_divisor=2,
        width_divisor=8,
        steps=312,
        warmup=0.31,
        overrides=(
            "data=demo",
            "tokenizer.vocab_size=2000",
            "training.batch_tokens=1024",
            "training.learning_rate=3e-3",  # the paper's formula gives too high a rate for so narrow a model
        ),
    ),
}
"""By the value of table3.scale."""


def scale_overrides(scale: Scale, row: Config, steps: int = 0) -> list[str]:
    """Return the overrides that shrink a row; `steps` replaces those of base."""
    steps = steps or scale.steps
    if not steps:
        return []
    model, row_steps = row.model, row.training.steps * steps // Config().training.steps
    return [
        *scale.overrides,
        *_suitable(scale),
        f"model.layers={model.layers // scale.layer_divisor}",
        *(f"model.{name}={getattr(model, name) // scale.width_divisor}" for name in WIDTHS),
        f"training.steps={row_steps}",
        f"training.warmup_steps={max(1, int(steps * scale.warmup))}",
        f"training.valid_every={row_steps}",
        "training.valid_sentences=0",
        f"training.save_every={max(1, steps // 2)}",
        "training.log_every=20",
        "decoding.extra_length=10",  # after few steps a model may not have learned to end a sentence
    ]


def _suitable(scale: Scale) -> list[str]:
    """Return the overrides that give a row the values of the scale's experiment."""
    if not scale.experiment:
        return []
    found = compose([f"experiment={scale.experiment}"])
    return [f"{name}={value_of(found, name)}" for name in SUITABLE]
