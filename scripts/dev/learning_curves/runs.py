"""The runs that are made: they differ in text, model, dropout, optimizer, rate, schedule and length."""

from typing import NamedTuple

TABLE = """
run text     pair  pairs words width layers steps settings
a1  multi30k en-de all   4000  128   2      480   warmup=80
a2  tatoeba  en-de all   8000  128   2      480   warmup=80
a3  multi30k en-de 10000 4000  128   2      480   dropout=0.2 schedule=inverse_sqrt warmup=150
a4  tatoeba  en-de 10000 4000  128   2      480   dropout=0.3 paper rate=2e-3 schedule=inverse_sqrt warmup=200
a5  multi30k en-de 2000  2000  128   2      480   dropout=0.3 warmup=100
a6  tatoeba  en-de 2000  2000  96    2      360   dropout=0.3 optimizer=adam rate=2e-3 warmup=100
a7  tatoeba  en-de all   8000  192   2      360   schedule=inverse_sqrt warmup=150
a8  multi30k en-de all   8000  192   2      360   rate=6e-3 schedule=wsd warmup=100
b1  multi30k en-de all   4000  128   2      720   optimizer=adam rate=2e-3 warmup=150
b2  tatoeba  en-de all   4000  128   2      600   dropout=0.15 schedule=wsd warmup=100
b3  multi30k en-de 10000 4000  64    2      600   rate=8e-3 warmup=60
b4  tatoeba  en-de 10000 4000  128   2      360   dropout=0.15 rate=2e-3 schedule=constant warmup=100
b5  multi30k en-de all   4000  128   2      480   schedule=constant warmup=100
b6  tatoeba  en-de all   8000  128   2      600   optimizer=adam rate=1e-3 schedule=inverse_sqrt warmup=300
b7  multi30k en-de all   8000  128   2      960   warmup=100
b8  tatoeba  en-de all   8000  128   2      960   warmup=150
c1  multi30k en-de 2000  2000  128   2      360   dropout=0.1 schedule=inverse_sqrt warmup=100
c2  tatoeba  en-de 10000 4000  128   2      720   dropout=0.3 warmup=100
c3  multi30k en-de all   4000  128   2      360   batch=1024 warmup=80
c4  tatoeba  en-de all   4000  96    2      720   batch=256 warmup=100
c5  multi30k de-en all   4000  96    2      480   schedule=inverse_sqrt warmup=200
c6  tatoeba  de-en all   4000  128   2      480   paper rate=0 schedule=inverse_sqrt warmup=240
c7  tatoeba  en-de 2000  2000  128   2      240   dropout=0.2 schedule=wsd warmup=60
c8  multi30k de-en 10000 4000  128   3      360   dropout=0.1 rate=2e-3 warmup=80
d1  multi30k en-de all   8000  128   3      720   batch=1024 warmup=100
d2  tatoeba  en-de all   8000  128   3      720   batch=1024 schedule=inverse_sqrt warmup=120
d3  multi30k en-de 10000 4000  128   2      600   batch=1024 schedule=wsd warmup=80
d4  tatoeba  en-de all   4000  128   2      600   batch=1024 warmup=100
d5  multi30k en-de all   4000  128   2      600   batch=1024 optimizer=adam rate=2e-3 schedule=inverse_sqrt warmup=120
e1 multi30k en-de all   4000  128   2      480   recipe warmup=60 decay=1.8
e2 tatoeba  en-de all   8000  128   2      600   recipe warmup=80 decay=0.5
e3 multi30k en-de 10000 4000  128   2      480   dropout=0.2 recipe warmup=60 decay=1.0
e4 tatoeba  en-de all   4000  128   2      600   batch=1024 recipe warmup=80 decay=1.4
f1 multi30k en-de 10000 4000  256  3      864   batch=1024 dropout=0.05 recipe warmup=110 decay=1.0
f2 multi30k en-de 10000 4000  256  3      864   batch=1024 dropout=0.1 recipe warmup=110
"""
"""`pair` is the direction. `paper` stands for the paper's norm, positions and initialisation, and Adam; `recipe` for
the rates, schedule and batches of `experiment=own` today, and other rows for those of BASE."""

LONG = {"rate": "learning_rate", "warmup": "warmup_steps", "batch": "batch_tokens", "decay": "weight_decay"}
"""Settings that the table shortens."""
TRAINING = (
    *("optimizer", "learning_rate", "muon_rate", "schedule", "warmup_steps"),
    *("batch_tokens", "group_by_length", "weight_decay"),
)
"""Settings of the group training; the others are of the model."""
PAPER = "optimizer=adam norm_placement=post positions=sinusoidal initialization=glorot"
RECIPE = "schedule=linear rate=8e-3 muon_rate=0.5 group_by_length=false"
"""What `paper` and `recipe` stand for."""
BASE = (
    *("experiment=multi30k", "training.batch_tokens=512", "training.schedule=cosine"),
    *("training.learning_rate=4e-3", "training.muon_rate=1.0", "training.group_by_length=true"),
    *("training.weight_decay=0", "model.dropout=0.1"),
)
"""What all runs have in common, unless their settings differ."""
ALL = 1_000_000
"""More pairs than any of the texts has."""


class PlannedRun(NamedTuple):
    """A run to make."""

    text: str
    """The name of the text."""
    pairs: int
    """The most sentence pairs of the training text, chosen at random."""
    words: int
    """Word pieces."""
    steps: int
    settings: tuple[str, ...]
    """Other settings of model and training."""
    reverse: bool = False
    """Whether to translate from German."""


def _planned(row: str) -> tuple[str, PlannedRun]:
    """Return name and run of a row."""
    name, text, pair, pairs, words, width, layers, steps, *others = row.split()
    given = [f"d_model={width}", f"d_ff={4 * int(width)}", f"layers={layers}"]
    given += " ".join(others).replace("paper", PAPER).replace("recipe", RECIPE).split()
    settings = []
    for short, _, value in (each.partition("=") for each in given):
        key = LONG.get(short, short)
        settings.append(f"{'training' if key in TRAINING else 'model'}.{key}={value}")
    count = ALL if pairs == "all" else int(pairs)
    return name, PlannedRun(text, count, int(words), int(steps), tuple(settings), reverse=pair == "de-en")


RUNS = dict(_planned(row) for row in TABLE.strip().splitlines()[1:])
"""By name."""
