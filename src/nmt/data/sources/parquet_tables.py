"""Parquet files and Arrow tables: two columns of text, or the Hub's column of translations."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from nmt.data.sources.cells import TRANSLATION, cell_text, check_score_column, find_columns
from nmt.data.sources.source import Columns, Languages, Pair
from nmt.errors import UserError, nearest
from nmt.text.lines import MAX_LINE_BYTES, line_too_long

TEXT_TYPES = ("string", "large_string", "string_view", "null")
"""The types of columns of text; older versions of pyarrow do not know all of them."""
BATCH_ROWS = 1_000
"""Rows read together."""
MAX_COLUMN_BYTES = 1 << 30
"""The largest column of a row group: columns are read whole, and damaged ones can be of any size."""


def pairs(path: Path, languages: Languages, columns: Columns) -> Iterator[Pair]:
    """Yield the pairs of a file."""
    with _explaining_errors(path), pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH_ROWS, columns=_checked_columns(file, path, languages, columns)):
            yield from table_pairs(batch, languages, columns, str(path))


def check_columns(path: Path, languages: Languages, columns: Columns) -> None:
    """Refuse a file that lacks the columns of its pairs, or has some that would fill the memory."""
    with _explaining_errors(path), pyarrow.parquet.ParquetFile(path) as file:
        _checked_columns(file, path, languages, columns)


def _checked_columns(
    file: pyarrow.parquet.ParquetFile, path: Path, languages: Languages, columns: Columns
) -> list[str]:
    """Return the columns to read, after a check of their names, types and sizes."""
    empty = file.schema_arrow.empty_table()
    list(table_pairs(empty, languages, columns, str(path)))  # checks names and types
    named = not columns.sides and _has_translations(empty.schema)
    used = [TRANSLATION] if named else list(columns.sides or languages)
    used += [columns.score] if columns.score else []
    _check_sizes(path, file.metadata, used)
    return used


def table_pairs(
    table: pyarrow.Table | pyarrow.RecordBatch, languages: Languages, columns: Columns, name: str
) -> Iterator[Pair]:
    """Yield the pairs of an Arrow table.

    Args:
        table: The table; its pairs are in `columns`, the Hub's `translation`, or columns named after the languages.
        languages: The languages of the two sides.
        columns: The columns that the user names.
        name: The table's name in errors.
    """
    sources, targets = (_texts(*side, name) for side in _sides(table, languages, columns.sides, name))
    pairs_ = ((cell_text(source), cell_text(target)) for source, target in zip(sources, targets, strict=True))
    if columns.score:
        scores = _scores(table, columns.score, name)
        yield from ((*pair, score) for pair, score in zip(pairs_, scores, strict=True))
    else:
        yield from pairs_


def count_rows(path: Path) -> int:
    """Return the number of rows that the metadata of a file gives."""
    with _explaining_errors(path):
        return int(pyarrow.parquet.read_metadata(path).num_rows)


def _sides(
    table: pyarrow.Table | pyarrow.RecordBatch, languages: Languages, columns: Sequence[str], name: str
) -> list[tuple[pyarrow.ChunkedArray, str]]:
    """Return the columns of the two sides, each with a description for errors."""
    if not columns and _has_translations(table.schema):
        translations = table.column(TRANSLATION)
        return [(_translation(translations, language, name), f"the language {language}") for language in languages]
    found = find_columns(table.schema.names, languages, columns, name)
    return [(table.column(column), f"the column {column}") for column in found]


def _has_translations(schema: pyarrow.Schema) -> bool:
    """Return whether a table has the Hub's column of translations."""
    return schema.names.count(TRANSLATION) == 1 and bool(pyarrow.types.is_struct(schema.field(TRANSLATION).type))


def _translation(column: pyarrow.ChunkedArray, language: str, name: str) -> pyarrow.ChunkedArray:
    """Return the texts of one language in the Hub's column of translations."""
    known = [column.type.field(index).name for index in range(column.type.num_fields)]
    if language not in known:
        raise UserError(f"{name} has no text in the language {language}: {nearest(language, known)}")
    if known.count(language) > 1:
        raise UserError(f"{name} has several texts in the language {language}: leave one.")
    return pyarrow.compute.struct_field(column, language)


def _texts(column: pyarrow.ChunkedArray, description: str, name: str) -> list[str | None]:
    """Return the texts of a column, after a check of their type and length."""
    kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
    if str(kind) not in TEXT_TYPES:
        raise UserError(f"{name} has {kind}, not text, in {description}.")
    text = column.cast(pyarrow.large_string())
    if (pyarrow.compute.max(pyarrow.compute.binary_length(text)).as_py() or 0) > MAX_LINE_BYTES:
        raise line_too_long(f"{name}, a text in {description}")
    try:
        found: list[str | None] = text.to_pylist()
    except UnicodeDecodeError as error:
        raise UserError(f"{name} has text in {description} that is not UTF-8: convert it.") from error
    return found


def _scores(table: pyarrow.Table | pyarrow.RecordBatch, column: str, name: str) -> list[float]:
    """Return the numbers of a column, after a check of its type."""
    check_score_column(table.schema.names, column, name)
    kind, numbers = table.schema.field(column).type, pyarrow.types
    if not (numbers.is_floating(kind) or numbers.is_integer(kind) or numbers.is_decimal(kind) or numbers.is_null(kind)):
        raise UserError(f"{name} has {kind}, not numbers, in the column {column} (data.score_column): name another.")
    found = table.column(column).cast(pyarrow.float64()).to_pylist()
    return [math.nan if score is None else score for score in found]


def _check_sizes(path: Path, metadata: pyarrow.parquet.FileMetaData, columns: Sequence[str]) -> None:
    """Refuse columns that would fill the memory, before any text is read."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        # damaged metadata of a column can crash pyarrow, so columns of small row groups are not looked at
        if group.total_byte_size <= min(MAX_COLUMN_BYTES, max(1, group.num_rows) * MAX_LINE_BYTES):
            continue
        for chunk in map(group.column, range(metadata.num_columns)):
            texts, column = max(1, chunk.num_values), f"{chunk.path_in_schema}."
            used = any(column.startswith(f"{name}.") for name in columns)
            if used and chunk.total_uncompressed_size > min(MAX_COLUMN_BYTES, texts * MAX_LINE_BYTES):
                raise UserError(
                    f"{path} has {chunk.total_uncompressed_size:,} bytes in {chunk.num_values:,} texts of row group "
                    f"{number + 1}: write it again with smaller row groups, and without texts that are not sentences."
                )


@contextmanager
def _explaining_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:  # the latter from a name in the metadata
        raise UserError(
            f"{path} is not a whole Parquet file ({str(error).splitlines()[0]}): fetch it again."
        ) from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}.") from error
