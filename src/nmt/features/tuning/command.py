"""`nmt tune`: measure the settings that a run leaves open, and write down those that train fastest."""

from typing import NamedTuple

import torch
from tqdm import tqdm

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.schema import Config
from nmt.data.manifest import read_manifest
from nmt.data.store import Pairs
from nmt.data.synthetic import MAX_LENGTH, synthetic_pairs
from nmt.data.training_text import open_training_text
from nmt.errors import ConfigError, UserError, nearest
from nmt.features.tuning.record import fingerprint, tuned_file, write_tuned
from nmt.features.tuning.settings import TuneConfig
from nmt.measuring.bench import TrainingBench
from nmt.measuring.choices import TUNABLE, open_choices
from nmt.measuring.search import Outcome, Row, Search
from nmt.measuring.table import as_lines, as_text
from nmt.text.tokenizer import Tokenizer

SECONDS = {"cuda": 120.0, "cpu": 30.0}
"""Default time limits per choice."""
STEPS_PER_CHOICE = 30
"""Steps of training for which a choice has time, at least; on a CPU, batches are made small enough."""


class Text(NamedTuple):
    """What the model is trained on while it is measured."""

    pairs: Pairs
    vocabularies: tuple[int, int]
    origin: str


def run(config: Config) -> None:
    """Measure each choice, print the table, and write the file that training takes its settings from."""
    machine = prepare_machine(config.runtime)
    wanted = wanted_choices(config)
    choices = [choice.setting for choice in open_choices(config, machine.device.type, wanted)]
    if not choices:
        named = f"of tune.choices=[{','.join(wanted)}] " if wanted else ""
        raise UserError(
            f"these settings leave nothing {named}open that is measured on this {machine.device.type}: "
            f"remove some of them, {'name other choices, ' if wanted else ''}or train with them as they are"
        )
    text, devices = _text(config), _devices(config, machine)
    seconds = config.of(TuneConfig).seconds or SECONDS.get(machine.device.type, SECONDS["cpu"])
    bench = TrainingBench(config, text.pairs, text.vocabularies, devices)
    if machine.device.type == "cpu":
        bench.fit_batch(seconds / STEPS_PER_CHOICE, limit=seconds)
    print(
        f"measuring {', '.join(choices)} on {machine}, at most {seconds:g} s of steps each, "
        f"with batches of {bench.batch_tokens:,} tokens of {text.origin}",
        flush=True,
    )
    outcome = _search(bench, seconds, choices)
    _finish(config, devices, outcome, bench.batch_tokens)


def wanted_choices(config: Config) -> list[str]:
    """Return the settings that `tune.choices` names; refuse one that is not measured."""
    wanted = config.of(TuneConfig).choices
    for setting in wanted:
        if setting not in TUNABLE:
            raise ConfigError(f"tune.choices names {setting}, which is not measured; {nearest(setting, TUNABLE)}")
    return wanted


def _search(bench: TrainingBench, seconds: float, choices: list[str]) -> Outcome:
    """Search with a progress bar of the candidates, on a terminal."""
    total = 1 + sum(len(bench.candidates(choice, {})) for choice in choices)
    with tqdm(total=total, unit="candidate", dynamic_ncols=True, disable=None, leave=False) as bar:

        def report(row: Row) -> None:
            bar.write(as_lines([row], {})[-1])
            bar.update()

        return Search(bench, seconds, report).run(choices)


def _finish(config: Config, devices: int, outcome: Outcome, batch_tokens: int) -> None:
    print(as_text(outcome))
    if all(row.tokens_per_second is None for row in outcome.table):
        raise UserError(f"nothing could be measured: {outcome.table[0].note}; nothing is written")
    found = fingerprint(config, devices)
    path = tuned_file(config, found)
    write_tuned(path, found, outcome, batch_tokens)
    print(f"written to {path}; training with these settings takes it, unless runtime.tuned=off")


def _text(config: Config) -> Text:
    """Return the run's own training text if it is prepared, otherwise synthetic text."""
    if "encode train" in read_manifest(config.data_folder).tasks:
        tokenizer = Tokenizer.load(config.data_folder)
        pairs = open_training_text(config.data_folder, config.data)
        return Text(pairs, (tokenizer.source_size, tokenizer.target_size), str(config.data_folder))
    words = config.tokenizer.vocab_size
    longest = min(MAX_LENGTH, config.data.max_pieces)
    return Text(synthetic_pairs(words, words, seed=config.seed, max_length=longest), (words, words), "synthetic text")


def _devices(config: Config, machine: Machine) -> int:
    """Return how many devices the run will use."""
    gpus = torch.cuda.device_count() if machine.device.type == "cuda" else 1
    return config.of(TuneConfig).devices or gpus
