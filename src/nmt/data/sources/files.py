"""Pairs of sentences from files: text, tsv, sgm, JSON lines and csv (also .gz, .xz), Parquet, or a folder of those."""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from nmt.data.sources.tables import TRANSLATION, cell_text, csv_pairs, json_pairs, sides_of
from nmt.errors import UserError, nearest
from nmt.text.lines import MAX_LINE_BYTES, line_too_long, read_lines

Pair = tuple[str, str]
Languages = tuple[str, str]

HUB_SPLITS = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}
"""What the Hub's files of a split are called."""
KINDS = {
    ".tsv": "tsv", ".sgm": "sgm", ".sgml": "sgm", ".parquet": "parquet",
    ".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv",
}  # fmt: skip
"""What files hold, by the end of their names; all others hold text."""
TABLES = (".parquet", *(f"{end}{packed}" for end in (".jsonl", ".json", ".csv") for packed in ("", ".gz", ".xz")))
"""Ends of the names of a split's files in a folder, in the order in which they are looked for."""
BATCH_ROWS = 1_000
MAX_COLUMN_BYTES = 1 << 30
"""Most bytes of a column in a row group of Parquet: it is read as a whole, and could be one text."""


def kind(path: Path) -> str:
    """Say what a file holds, by its name: text, tsv, sgm, json, csv, parquet, or folder."""
    if path.is_dir():
        return "folder"
    name = path.with_suffix("") if path.suffix in (".gz", ".xz") else path
    return KINDS.get(name.suffix.lower(), "text")


def inputs(files: Sequence[str], split: str) -> list[Path]:
    """Every file that `files` stand for, folders opened, all of them there and not empty."""
    paths = []
    for path in (Path(file).expanduser() for file in files):
        found = shards(path, HUB_SPLITS.get(split, (split,))) if path.is_dir() else [path]
        if not found:
            raise UserError(f"{path} holds no shards of {split}, such as {split}-00000-of-00001.parquet.")
        paths += found
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} does not exist or is not a file: check data.{split}.")
        if path.stat().st_size == 0:
            raise UserError(f"{path} is empty: check data.{split}.")
    kinds = [kind(path) for path in paths]
    one_sided = [each for each in kinds if each in ("text", "sgm")]
    if one_sided and (len(paths) != 2 or len(one_sided) != 2):
        raise UserError(
            f"data.{split} names {len(paths)} file(s) ({', '.join(kinds)}): give two of text or sgm, the source side "
            "first, or files that hold both sides (.tsv, .csv, .jsonl, .parquet, a folder in the Hub's layout)."
        )
    return paths


def shards(folder: Path, splits: Sequence[str]) -> list[Path]:
    """Return a split's files, in order, in a folder of the Hub's layout: all that their names count, or none."""
    found: list[Path] = []
    for table in TABLES:
        patterns = [f"{split}{end}{table}" for split in splits for end in ("-*", "/*", "")]
        found = found or sorted({path for pattern in patterns for path in folder.glob(pattern)})
    for path in found:
        of = re.fullmatch(r"(.*-)\d+(-of-(\d+)\.[a-z.]+)", path.name)
        whole = [path.with_name(f"{of[1]}{number:05}{of[2]}") for number in range(int(of[3]))] if of else []
        if missing := sorted(set(whole) - set(found)):
            raise UserError(f"{missing[0]} is missing, though {path.name} is there: fetch it too.")
    return found


def read_pairs(paths: Sequence[Path], languages: Languages, columns: Sequence[str] = ()) -> Iterator[Pair]:
    r"""Read the pairs of the files that `inputs` gave; \n in a side stands for line breaks in a table's cell.

    Args:
        paths: Two files of one side each, or files that hold both sides.
        languages: The languages of the two sides, after which the columns of a table are named.
        columns: The names of the two columns, if they are others.
    """
    if kind(paths[0]) in ("text", "sgm"):
        return _zipped(paths[0], paths[1], languages)
    return chain.from_iterable(_table(path, languages, columns) for path in paths)


def _table(path: Path, languages: Languages, columns: Sequence[str]) -> Iterator[Pair]:
    """Read a file that holds both sides."""
    match kind(path):
        case "parquet":
            return _parquet_pairs(path, languages, columns)
        case "json":
            return json_pairs(read_lines(path), languages, columns, str(path))
        case "csv":
            return csv_pairs(read_lines(path), languages, columns, str(path), MAX_LINE_BYTES)
        case _:
            return _tsv_pairs(path, columns)


def table_pairs(
    table: pyarrow.Table | pyarrow.RecordBatch, languages: Languages, columns: Sequence[str], name: str
) -> Iterator[Pair]:
    """Yield the pairs of an Arrow table: from `columns`, the Hub's `translation`, or columns named after languages."""
    sides = [_texts(*side, name) for side in _sides(table, languages, columns, name)]
    for source, target in zip(*sides, strict=True):
        yield cell_text(source), cell_text(target)


def _sides(
    table: pyarrow.Table | pyarrow.RecordBatch, languages: Languages, columns: Sequence[str], name: str
) -> list[tuple[pyarrow.Array | pyarrow.ChunkedArray, str]]:
    """Find the column of either side, and what to call it."""
    if not columns and _has_translations(table.schema):
        translations = table.column(TRANSLATION)
        return [(_translation(translations, language, name), f"the language {language}") for language in languages]
    return [
        (table.column(side), f"the column {side}") for side in sides_of(table.schema.names, languages, columns, name)
    ]


def _has_translations(schema: pyarrow.Schema) -> bool:
    """Whether a table has the Hub's column of translations."""
    return schema.names.count(TRANSLATION) == 1 and bool(pyarrow.types.is_struct(schema.field(TRANSLATION).type))


def _translation(
    column: pyarrow.Array | pyarrow.ChunkedArray, language: str, name: str
) -> pyarrow.Array | pyarrow.ChunkedArray:
    """Return the texts of one language in a column of translations."""
    known = [column.type.field(index).name for index in range(column.type.num_fields)]
    if language not in known:
        raise UserError(f"{name} has no text in the language {language}: {nearest(language, known)}")
    if known.count(language) > 1:
        raise UserError(f"{name} has several texts in the language {language}: leave one.")
    return pyarrow.compute.struct_field(column, language)


def _texts(side: pyarrow.Array | pyarrow.ChunkedArray, what: str, name: str) -> list[str | None]:
    """Return the texts of a column, after a look at their type and length."""
    kind = side.type.value_type if pyarrow.types.is_dictionary(side.type) else side.type
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_null(kind)):
        raise UserError(f"{name} has {kind}, not text, in {what}.")
    text = side.cast(pyarrow.large_string())
    if (pyarrow.compute.max(pyarrow.compute.binary_length(text)).as_py() or 0) > MAX_LINE_BYTES:
        raise line_too_long(f"{name}, a text in {what}")
    try:
        found: list[str | None] = text.to_pylist()
    except UnicodeDecodeError as error:
        raise UserError(f"{name} has text in {what} that is not UTF-8: convert it.") from error
    return found


def rows(path: Path) -> int:
    """Rows of a Parquet file, as its end says."""
    with _explaining(path):
        return int(pyarrow.parquet.read_metadata(path).num_rows)


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:  # the latter of a name in its metadata
        raise UserError(
            f"{path} is not a whole Parquet file ({str(error).splitlines()[0]}): fetch it again."
        ) from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}.") from error


def _zipped(source: Path, target: Path, languages: Languages) -> Iterator[Pair]:
    sides = [
        _segments(path, language) if kind(path) == "sgm" else read_lines(path)
        for path, language in zip((source, target), languages, strict=True)
    ]
    pairs = 0
    while True:
        first, second = next(sides[0], None), next(sides[1], None)
        if first is None or second is None:
            break
        pairs += 1
        yield first, second
    counts = [
        pairs + (line is not None) + sum(1 for _ in side) for line, side in zip((first, second), sides, strict=True)
    ]
    if counts[0] != counts[1]:
        raise UserError(
            f"{source} has {counts[0]} sentences, but {target} has {counts[1]}: the two sides must match line by line."
        )


def _tsv_pairs(path: Path, columns: Sequence[str]) -> Iterator[Pair]:
    """Read two columns with a tab between, or `columns` of those that the first line names."""
    lines = enumerate(read_lines(path), 1)
    names = next(lines, (1, ""))[1].split("\t") if columns else []
    places = [names.index(name) for name in sides_of(names, columns, columns, str(path))] if columns else [0, 1]
    many = len(names) or 2
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != many:
            named = (
                f"the first line names {many}" if columns else "two are needed, source and target with a tab between"
            )
            raise UserError(f"{path}, line {number}: {len(cells)} column(s), but {named}.")
        yield cells[places[0]].rstrip("\r"), cells[places[1]].rstrip("\r")


def _parquet_pairs(path: Path, languages: Languages, columns: Sequence[str]) -> Iterator[Pair]:
    with _explaining(path), pyarrow.parquet.ParquetFile(path) as file:
        empty = file.schema_arrow.empty_table()
        list(table_pairs(empty, languages, columns, str(path)))  # looks at names and types
        read = [TRANSLATION] if not columns and _has_translations(empty.schema) else list(columns or languages)
        _check_chunks(path, file.metadata, read)
        for batch in file.iter_batches(BATCH_ROWS, columns=read):
            yield from table_pairs(batch, languages, columns, str(path))


def _check_chunks(path: Path, metadata: pyarrow.parquet.FileMetaData, columns: Sequence[str]) -> None:
    """Refuse what would fill the memory before any text is seen."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        # damaged metadata of a column can end the process from within pyarrow: it is looked at where it matters
        if group.total_byte_size <= min(MAX_COLUMN_BYTES, max(1, group.num_rows) * MAX_LINE_BYTES):
            continue
        for chunk in map(group.column, range(metadata.num_columns)):
            texts, column = max(1, chunk.num_values), f"{chunk.path_in_schema}."
            read = any(column.startswith(f"{name}.") for name in columns)
            if read and chunk.total_uncompressed_size > min(MAX_COLUMN_BYTES, texts * MAX_LINE_BYTES):
                raise UserError(
                    f"{path} has {chunk.total_uncompressed_size:,} bytes in {chunk.num_values:,} texts of row group "
                    f"{number + 1}: write it anew with smaller row groups, and without texts that are no sentences."
                )


def _segments(path: Path, language: str) -> Iterator[str]:
    text = "\n".join(read_lines(path))
    _check_language(path, text, language)
    # [^<>] rather than [^>]: a file of nothing but "<seg" takes no longer than others
    before, *parts = re.split(r"<(/?)seg(?:\s[^<>]*)?>", text, flags=re.IGNORECASE)
    marks, texts = parts[0::2], parts[1::2]
    if not marks:
        raise UserError(f"{path} holds no <seg> lines: is it an sgm file?")
    if marks != ["", "/"] * (len(marks) // 2):
        wrong = next(place for place, mark in enumerate([*marks, "end"]) if mark != ("", "/")[place % 2])
        line = 1 + sum(part.count("\n") for part in (before, *texts[:wrong]))
        raise UserError(f"{path}, line {line}: a <seg> without its </seg>, or the other way round: mend it.")
    return (" ".join(_unescaped(segment).split()) for segment in texts[0::2])


def _unescaped(text: str) -> str:
    """Text with its entities resolved; a number of thousands of digits is no character."""
    return html.unescape(re.sub(r"&#[0-9]{9,};?", "\ufffd", text))


def _check_language(path: Path, text: str, language: str) -> None:
    """Refuse a set that names another language; names such as "any" say nothing."""
    opening = re.search(r"<(src|ref|tst)set\b([^<>]*)>", text, re.IGNORECASE)
    if not opening:
        return
    key = "srclang" if opening[1].lower() == "src" else "trglang"
    named = re.search(rf"\b{key}\s*=\s*[\"']?([\w-]+)", opening[2], re.IGNORECASE)
    if named and len(named[1]) == 2 and named[1].lower() != language.lower():
        raise UserError(f"{path} says it is in {named[1]}, but {language} is wanted: check the order of the two files.")
