"""Read the results of commands as a record, and find the first difference between two records."""

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

Record = list[tuple[str, str]]
"""The results of a case, in a fixed order: what it is, and its value to the last digit."""
MANIFEST = "manifest.json"
"""A file of prepared data that holds times and what the data depends on, but no results."""
NOT_RESULTS = ("time", "seconds", "sentences_per_second", "tokens_per_second", "machine", "decoding", "checkpoint")
"""Fields of JSON files that hold times, or what the results were made with."""


def first_difference(before: Record, after: Record) -> str:
    """Return the first difference between two records; an empty text if they are equal."""
    for one, other in zip_longest(before, after):
        if one == other:
            continue
        if one is None or other is None:
            name, value = one or other
            return f"{name}: only {'after' if one is None else 'before'}: {value}"
        if one[0] != other[0]:
            return f"before has {one[0]} ({one[1]}) where after has {other[0]} ({other[1]})"
        return f"{one[0]}: before {one[1]}, after {other[1]}"
    return ""


def lines_of(name: str, text: str) -> Record:
    """Return the lines of a text as results."""
    return [(f"{name}, line {number}", line) for number, line in enumerate(text.splitlines(), 1)]


def read_results(folder: Path, pattern: str) -> Record:
    """Return the content of the files of a folder that fit a pattern."""
    paths = [path for path in sorted(folder.glob(pattern)) if path.is_file() and path.name != MANIFEST]
    found = [(f"files {pattern}", ", ".join(str(path.relative_to(folder)) for path in paths) or "none")]
    for path in paths:
        name = str(path.relative_to(folder))
        if path.suffix == ".safetensors":
            found += [(f"{name}, {tensor}", value) for tensor, value in read_weights(path)]
        elif path.suffix == ".jsonl":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found += _flat(f"{name}, line {number}", json.loads(line))
        elif path.suffix == ".json":
            found += _flat(name, json.loads(path.read_text(encoding="utf-8")))
        else:
            found += _content(name, path.read_bytes())
    return found


def read_weights(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name, shape and checksum of each tensor in a file of safetensors, by name."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    for name in sorted(header.keys() - {"__metadata__"}):
        tensor = header[name]
        begin, end = tensor["data_offsets"]
        yield name, f"{tensor['dtype']} {tensor['shape']} {sha256(content[start + begin : start + end]).hexdigest()}"


def _content(name: str, content: bytes) -> Record:
    """Return the lines of text, and the checksum of anything else."""
    if b"\0" not in content:
        try:
            return lines_of(name, content.decode())
        except UnicodeDecodeError:
            pass
    return [(name, sha256(content).hexdigest())]


def _flat(name: str, content: object) -> Record:
    """Return each figure of a JSON object under the path of its fields."""
    if isinstance(content, dict):
        kept = [(key, value) for key, value in content.items() if key not in NOT_RESULTS]
        return [each for key, value in kept for each in _flat(f"{name}, {key}", value)]
    if isinstance(content, list):
        return [each for number, value in enumerate(content) for each in _flat(f"{name}, {number}", value)]
    return [(name, json.dumps(content, ensure_ascii=False))]
