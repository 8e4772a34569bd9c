"""JSON lines: pairs under the names of columns or in the Hub's form, and one error for every mistake."""

from pathlib import Path

import pytest

from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.text.lines import MAX_LINE_BYTES


def read(path: Path) -> list[Pair]:
    return list(read_pairs(inputs([str(path)], "train"), ("en", "de")))


def test_json_lines_in_the_form_of_the_hub(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"translation": {"de": "eins", "en": "one"}}\n\n{"de": "zwei", "en": "two"}\n')
    assert read(tmp_path / "x.jsonl") == [("one", "eins"), ("two", "zwei")]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("not json", "not JSON"),
        ("[" * 200_000, "not JSON"),
        ('{"en": ' + "9" * 5000 + ', "de": "x"}', "not JSON"),
        ('["one", "eins"]', "not a JSON object"),
        ('{"en": 7, "de": "x"}', "en holds 7, not text"),
        ('{"en": "x", "de": {"text": "y"}}', 'de holds {"text": "y"}, not text'),
        ('{"en": "x", "de": true}', "de holds true, not text"),
        ('{"en": "\\ud800", "de": "x"}', "en holds half of a surrogate pair"),
        ('{"en": "' + "x" * MAX_LINE_BYTES + '", "de": "x"}', "longer than 1,048,576 bytes"),
        ('{"en": "x", ' + ", ".join(f'"column {number}": 1' for number in range(500)) + "}", r"\.\.\. \(501 in all\)"),
    ],
)
def test_bad_json_names_file_and_line(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "x.jsonl").write_text('{"en": "one", "de": "eins"}\n' + line + "\n")
    with pytest.raises(UserError, match=f"x.jsonl, line 2:? ?.*{complaint}") as error:
        read(tmp_path / "x.jsonl")
    assert len(str(error.value)) < 1500
