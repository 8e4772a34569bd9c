"""The two files in which Marian stores a model: model.npz, and a binary file with int8 matrices for bergamot.

The binary file begins with the version and the number of items. The headers of all items follow, then their names, then
their shapes, padding to a multiple of 256 bytes, and their contents.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NPZ, BINARY, INT8_BINARY = "model.npz", "model.bin", "model.intgemm8.bin"
"""Names of the files. bergamot reads binary files only."""
SETTINGS = "special:model.yml"
"""The item that holds the settings of the model, as text that ends with a zero byte."""
VERSION, ALIGNMENT = 1, 256
INT8, FLOAT32, INTGEMM8 = 0x101, 0x404, 0x4101
"""Marian's numbers for types of items."""
DAMAGED = (EOFError, KeyError, MemoryError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file may raise."""
LARGEST = 127
"""The largest int8 number, which the largest weight of a matrix becomes."""


class Item(NamedTuple):
    """One array in a binary file."""

    name: str
    kind: int
    shape: tuple[int, ...]
    content: bytes


def write_npz(file: Path, arrays: Mapping[str, Any], settings: str) -> None:
    """Write model.npz."""
    items = {**arrays, SETTINGS: np.frombuffer(_text(settings), np.int8)}
    np.savez(file, **items)


def read_npz(file: Path) -> dict[str, Any]:
    """Return the arrays of model.npz, without the settings; nothing in it is run.

    A file that is damaged or compressed, which Marian's are not, raises one of `DAMAGED`.
    """
    with zipfile.ZipFile(file) as archive:
        if sum(each.file_size for each in archive.infolist()) > file.stat().st_size:
            raise ValueError("its arrays are larger than the file")
    with np.load(file, allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name != SETTINGS}


def write_binary(file: Path, arrays: Mapping[str, Any], settings: str, *, int8: bool) -> None:
    """Write a binary file, with the matrices as int8 or float32."""
    text = _text(settings)
    items = [_item(name, array, int8=int8) for name, array in arrays.items()]
    items.append(Item(SETTINGS, INT8, (len(text),), text))
    names = [item.name.encode() + b"\0" for item in items]
    headers = [
        struct.pack("<4Q", len(name), item.kind, len(item.shape), len(item.content))
        for name, item in zip(names, items, strict=True)
    ]
    shapes = [struct.pack(f"<{len(item.shape)}i", *item.shape) for item in items]
    head = struct.pack("<2Q", VERSION, len(items)) + b"".join((*headers, *names, *shapes))
    padding = -(len(head) + struct.calcsize("<Q")) % ALIGNMENT
    contents = b"".join(item.content for item in items)
    file.write_bytes(head + struct.pack("<Q", padding) + bytes(padding) + contents)


def read_binary(file: Path) -> dict[str, Any]:
    """Return the arrays of a binary file in float32, without the settings."""
    return {item.name: _array(item) for item in _items(file.read_bytes()) if item.name != SETTINGS}


def _items(data: bytes) -> Iterator[Item]:
    _, count = struct.unpack_from("<2Q", data)
    headers = [struct.unpack_from("<4Q", data, 16 + 32 * index) for index in range(count)]
    place = 16 + 32 * count
    names: list[str] = []
    shapes: list[tuple[int, ...]] = []
    for length, *_ in headers:
        names.append(data[place : place + length - 1].decode())
        place += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", data, place))
        place += 4 * dimensions
    (padding,) = struct.unpack_from("<Q", data, place)
    place += 8 + padding
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        yield Item(name, kind, shape, data[place : place + size])
        place += size


def _item(name: str, array: Any, *, int8: bool) -> Item:
    """Return an array as an item, padded as Marian pads it; the scale of int8 numbers follows them."""
    if not (int8 and _is_matrix(name)):
        return Item(name, FLOAT32, array.shape, _padded(array.astype("<f4").tobytes()))
    largest = max(float(np.abs(array).max()), float(np.finfo(np.float32).tiny))
    scale = np.float32(LARGEST / largest)
    rounded = np.clip(np.rint(array * scale), -LARGEST, LARGEST).astype(np.int8)
    stored = rounded if _is_embedding(name) else rounded.T
    return Item(name, INTGEMM8, array.shape, _padded(stored.tobytes() + scale.astype("<f4").tobytes()))


def _array(item: Item) -> Any:
    size = int(np.prod(item.shape))
    if item.kind == FLOAT32:
        return np.frombuffer(item.content, "<f4", size).reshape(item.shape).copy()
    numbers, scale = np.frombuffer(item.content, np.int8, size), np.frombuffer(item.content, "<f4", 1, size)
    transposed = not _is_embedding(item.name)
    matrix = numbers.reshape(item.shape[::-1]).T if transposed else numbers.reshape(item.shape)
    return np.ascontiguousarray(matrix / scale, np.float32)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT)


def _is_matrix(name: str) -> bool:
    """Return whether Marian stores an array as int8; it decides by the name."""
    return _is_embedding(name) or name[-3:-1] == "_W" or name.endswith("_W")


def _is_embedding(name: str) -> bool:
    """Return whether an array holds word vectors, which Marian does not transpose."""
    return "Wemb" in name


def _text(settings: str) -> bytes:
    return settings.encode() + b"\0"
