"""`nmt synthesize`: translate a file of any size into a corpus, for back-translation or distillation."""

import json
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import numpy as np
from tqdm import tqdm

from nmt.compute import distributed
from nmt.config.folders import folder_to_write, is_address
from nmt.config.registry import load
from nmt.config.tree import Config
from nmt.data.engine import Engine
from nmt.decoding.load_engine import load_engine
from nmt.errors import UserError
from nmt.launched import is_main_process
from nmt.synthesis.elsewhere import translate_elsewhere
from nmt.synthesis.folder import SynthesisFolder
from nmt.synthesis.model import Translator
from nmt.synthesis.shards import SCORE, InputText, scan_input, write_shards
from nmt.text.lines import read_lines

SHARES = (0.1, 0.5, 0.9)
"""Shares of the pairs for which the scores are printed that they do not reach."""


def run(config: Config) -> None:
    """Write the shards that are not there yet."""
    if config.decoding.strategy == "sample" and config.engine == "ctranslate2":
        raise UserError("engine=ctranslate2 draws samples that depend on interruptions: use engine=torch")
    engine: type[Engine] = load("data.engine", config.data.engine)
    if not engine.has_devices:
        _translate_here(config)
    elif is_main_process():  # torchrun may have started several processes
        text = scan_input(config.input)
        folder = _folder(config, text)
        translate_elsewhere(config, text, folder)
        _report(folder)


def _translate_here(config: Config) -> None:
    """Translate in this process, or in those that torchrun has started; each translates its share of the shards."""
    with distributed.session(config.runtime) as machine, ExitStack() as stack:
        with distributed.together():
            text = scan_input(config.input)
            folder, loaded = _folder(config, text), load_engine(config, machine)
        translator = Translator.of(loaded, machine)
        with distributed.together():
            if distributed.is_main():
                stack.enter_context(folder.exclusive(translator.made_with(config, text)))
        missing = folder.missing()
        if distributed.is_main():
            print(f"{folder.path}: {text.lines:,} lines in {folder.shards:,} shards, {len(missing):,} to translate")
        distributed.barrier()  # so that all processes find the same shards missing
        own = missing[distributed.rank() :: distributed.world_size()]
        with tqdm(
            total=sum(len(folder.lines_of(number)) for number in own),
            unit=" lines",
            leave=False,
            disable=None if distributed.is_main() else True,
        ) as bar:
            write_shards(loaded.engine, text, loaded.languages, folder, own, bar.update)
        # No process waits for the others, which may take longer than runtime.timeout_minutes: the last one reports.
        if not folder.missing():
            _report(folder)


def _folder(config: Config, text: InputText) -> SynthesisFolder:
    """Return the folder to write."""
    return SynthesisFolder(_path(config), text.lines, config.synthesize.shard_lines)


def _path(config: Config) -> Path:
    """Return the folder to write."""
    if config.output != "-":
        return folder_to_write("output", config.output)
    if is_address(config.paths.data):
        raise UserError(f"paths.data={config.paths.data} is an address: name a local folder by output=")
    return config.corpora_folder / "synthetic" / config.name


def _report(folder: SynthesisFolder) -> None:
    """Print the number of pairs, and how their scores are distributed."""
    shards = map(folder.shard, range(folder.shards))
    lines = chain.from_iterable(map(read_lines, shards))
    scores = np.sort(np.fromiter((json.loads(line)[SCORE] for line in lines), np.float64))
    below = ", ".join(f"{share:.0%} below {scores[int(share * len(scores))]:.2f}" for share in SHARES)
    print(f"{folder.path}: {len(scores):,} pairs; score (log-probability per word piece): {below}", flush=True)
