"""`nmt synthesize`: translate a file of any size into a corpus, for back-translation or distillation.

The result depends only on the text, the models and the settings: not on the number of processes, and not on
interruptions. A shard is written completely or not at all, so only shards that are not there are still to do.
"""

import json
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from hashlib import sha256
from itertools import islice, tee
from pathlib import Path

from tqdm import tqdm

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.config.folders import expanded, is_address
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.decoding.engine import Done
from nmt.decoding.load import LoadedModel, load_engine
from nmt.errors import UserError
from nmt.launched import is_main_process
from nmt.storage.files import checksum, replacing
from nmt.storage.remote import local_file
from nmt.synthesis import teacher
from nmt.synthesis.folder import SynthesisFolder
from nmt.text.lines import STANDARD, is_device, read_input

SCORE, SCORE_DIGITS = "score", 4
"""Column of the log-probability per word piece, and the decimals that it has."""


def run(config: Config) -> None:
    """Write the shards that are not there yet; each process that torchrun has started translates its share of them."""
    if config.teacher.model:
        if is_main_process():
            count, _ = _scan(config.input)
            teacher.run(config, SynthesisFolder(_path(config), count, shard_lines=count))
        return
    with distributed.session(config.runtime) as machine, ExitStack() as stack:
        with distributed.together():
            lines, text = _scan(config.input)
            folder = SynthesisFolder(_path(config), lines, config.synthesize.shard_lines)
            loaded = load_engine(config, machine)
            if distributed.is_main():
                stack.enter_context(folder.exclusive(_made_with(config, text, loaded, machine)))
        missing = folder.missing()
        if distributed.is_main():
            print(f"{folder.path}: {lines:,} lines in {folder.shards:,} shards, {len(missing):,} to translate")
        distributed.barrier()  # so that all processes find the same shards missing
        own = missing[distributed.rank() :: distributed.world_size()]
        with tqdm(
            total=sum(len(folder.lines_of(number)) for number in own),
            unit=" lines",
            leave=False,
            disable=None if distributed.is_main() else True,
        ) as bar:
            _translate(config.input, loaded, folder, own, bar.update)
        # No process waits for the others, which may take longer than runtime.timeout_minutes: the last one reports.
        if not folder.missing():
            print(f"{folder.path}: all {lines:,} lines are translated", flush=True)


def _scan(name: str) -> tuple[int, str]:
    """Return the number of a file's lines and their checksum, which does not depend on how the file is compressed."""
    if name == STANDARD or is_device(name):
        raise UserError("name the file to translate: input=FILE (plain, .gz or .xz)")
    digest, count = sha256(), 0
    for line in read_input(name):
        digest.update(f"{line}\n".encode())
        count += 1
    if not count:
        raise UserError(f"input={name} is empty: name a file with text")
    return count, digest.hexdigest()


def _path(config: Config) -> Path:
    """Return the folder to write."""
    if config.output != "-":
        return expanded(config.output)
    if is_address(config.paths.data):
        raise UserError(f"paths.data={config.paths.data} is an address: name a local folder by output=")
    return config.corpora_folder / "synthetic" / config.name


def _made_with(config: Config, text: str, loaded: LoadedModel, machine: Machine) -> dict[str, object]:
    """Return everything on which the translations depend, as JSON: settings by name, and checksums of files."""
    checkpoint, terms = loaded.checkpoint, config.decoding.terms
    return {
        "input": text,
        "checkpoint": checkpoint.sha256,
        "quantization": checkpoint.quantization,
        "machine": str(machine),
        "engine": loaded.engine.name,
        "seed": config.seed,
        "synthesize.shard_lines": config.synthesize.shard_lines,
        **flatten({"decoding": asdict(config.decoding)}),
        "decoding.ensemble": [member.sha256 for member in checkpoint.ensemble],
        "decoding.terms": checksum(local_file(terms, "decoding.terms")) if terms else "",
    }


def _translate(name: str, loaded: LoadedModel, folder: SynthesisFolder, shards: Sequence[int], done: Done) -> None:
    """Write some shards, in order: per line of the file a line for each of its translations, best first."""
    engine, (source_lang, target_lang) = loaded.engine, loaded.languages
    engine.same_batches = True
    text, position = read_input(name), 0
    for shard in shards:
        indices = folder.lines_of(shard)
        deque(islice(text, indices.start - position), maxlen=0)
        position = indices.stop
        lines, originals = tee(islice(text, len(indices)))
        numbers = (index + 1 for index in indices)
        translations = engine.translate(lines, window=len(indices), numbers=numbers, done=done)
        with replacing(folder.shard(shard)) as partial, partial.open("w", encoding="utf-8") as file:
            for line, translation in zip(originals, translations, strict=True):
                for each in translation.candidates:
                    score = round(each.mean_log_probability, SCORE_DIGITS)
                    row = {source_lang: line, target_lang: each.text, SCORE: score}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
