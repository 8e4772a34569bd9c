"""`nmt synthesize`: translate a file of any size into a corpus, for back-translation or distillation."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.checks import NAMES_A_FILE, marked
from nmt.config.folders import is_address
from nmt.config.saved import flatten
from nmt.config.schema import Config, DecodingConfig
from nmt.decoding.engines import engine_kind
from nmt.decoding.load_engine import load_engine
from nmt.decoding.loaded_model import LoadedModel
from nmt.errors import UserError
from nmt.features.synthesis.folder import SynthesisFolder
from nmt.features.synthesis.settings import SynthesizeConfig
from nmt.features.synthesis.shards import SCORE, InputText, scan_input, write_shards
from nmt.storage.files import checksum
from nmt.text.lines import read_lines

SHARES = (0.1, 0.5, 0.9)
"""Shares of the pairs for which the scores are printed that they do not reach."""


def run(config: Config) -> None:
    """Write the shards that are not there yet; each process translates its share of them."""
    if config.decoding.strategy == "sample" and not engine_kind(config).repeats_samples:
        raise UserError(f"engine={config.engine} draws samples that depend on interruptions: use engine=torch")
    with distributed.session(config.runtime) as machine, ExitStack() as stack:
        with distributed.together():
            text = scan_input(config.input)
            folder = SynthesisFolder(_path(config), text.lines, config.of(SynthesizeConfig).shard_lines)
            loaded = load_engine(config, machine)
        with distributed.together():
            if distributed.is_main():
                stack.enter_context(folder.exclusive(_made_with(config, machine, text, loaded)))
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


def _checksums_of_files(decoding: DecodingConfig) -> dict[str, str]:
    """Return the checksums of the files that settings name."""
    named = {name: getattr(decoding, name) for name in marked(decoding, NAMES_A_FILE)}
    return {name: checksum(Path(file)) if file else "" for name, file in named.items()}


def _path(config: Config) -> Path:
    """Return the folder to write."""
    if folder := config.of(SynthesizeConfig).folder:
        return Path(folder)
    if is_address(config.paths.data):
        raise UserError(f"paths.data={config.paths.data} is an address: name a local folder by synthesize.folder=")
    return config.corpora_folder / "synthetic" / config.name


def _made_with(config: Config, machine: Machine, text: InputText, loaded: LoadedModel) -> dict[str, object]:
    """Return everything on which the translations depend."""
    checkpoint = loaded.checkpoint
    decoding = {
        **asdict(config.decoding),
        "ensemble": [member.sha256 for member in checkpoint.ensemble],
        **_checksums_of_files(config.decoding),
    }
    return {
        "input": text.checksum,
        "checkpoint": checkpoint.sha256,
        "quantization": checkpoint.quantization,
        "machine": str(machine),
        "engine": loaded.engine.name,
        "seed": config.seed,
        "synthesize.shard_lines": config.of(SynthesizeConfig).shard_lines,
        **flatten({"decoding": decoding}),
    }


def _report(folder: SynthesisFolder) -> None:
    """Print the number of pairs, and how their scores are distributed."""
    shards = map(folder.shard, range(folder.shards))
    scores = sorted(json.loads(line)[SCORE] for shard in shards for line in read_lines(shard))
    below = ", ".join(f"{share:.0%} below {scores[int(share * len(scores))]:.2f}" for share in SHARES)
    print(f"{folder.path}: {len(scores):,} pairs; score (log-probability per word piece): {below}", flush=True)
