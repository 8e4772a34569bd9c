"""The sizes of the files of an export, in words."""

from pathlib import Path

MEGABYTE = 1e6
SMALL_BYTES = 100_000
"""Smaller files are only counted together."""


def sizes_in_words(folder: Path) -> str:
    """Return the size of the folder and of its large files, largest first."""
    sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in folder.rglob("*") if file.is_file()}
    large = sorted((name for name in sizes if sizes[name] >= SMALL_BYTES), key=lambda name: -sizes[name])
    parts = [f"{name} {_megabytes(sizes[name])}" for name in large]
    if small := [size for name, size in sizes.items() if name not in large]:
        parts.append(f"{len(small)} smaller files {_megabytes(sum(small))}")
    return f"{_megabytes(sum(sizes.values()))} ({', '.join(parts)})"


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:.1f} MB"
