"""Tables as text: what a row looks like in each format, and what is not a format."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoglot.data.formats import format_of, write_table
from isoglot.errors import OutputError

COLUMNS = {"score": "double", "id": "string", "text": "string"}
BLOCKS = [([0.12345678], [7], ["a\tb\nc"]), ([2.0], [None], ["ü"])]


@pytest.mark.parametrize(
    ("form", "header", "text"),
    [
        ("tsv", True, "score\tid\ttext\n0.123457\t7\ta b c\n2.000000\t\tü\n"),
        ("tsv", False, "0.123457\t7\ta b c\n2.000000\t\tü\n"),
        ("csv", False, 'score,id,text\n0.123457,7,"a\tb\nc"\n2.000000,,ü\n'),
        ("jsonl", True, '{"score": 0.123457, "id": 7, "text": "a\\tb\\nc"}\n{"score": 2.0, "text": "ü"}\n'),
    ],
)
def test_rows_as_text(form, header, text, tmp_path):
    assert write_table(tmp_path / "table", form, COLUMNS, BLOCKS, header=header) == 2
    assert (tmp_path / "table").read_text(encoding="utf-8") == text


def test_rows_of_parquet_are_unchanged_but_numbers_in_columns_of_strings(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_table(tmp_path / "table", "parquet", COLUMNS, BLOCKS) == 2
    rows = parquet.read_table(tmp_path / "table").to_pylist()
    assert rows[0] == {"score": 0.12345678, "id": "7", "text": "a\tb\nc"}
    assert rows[1]["id"] is None


@pytest.mark.parametrize(("name", "given", "form"), [("x.TSV", None, "tsv"), ("x", "tmx", "tmx")])
def test_a_format_is_given_or_in_the_name(name, given, form):
    assert format_of(Path(name), given=given) == form


@pytest.mark.parametrize(("name", "given", "message"), [("x.xlsx", None, "'.xlsx'"), ("x.tsv", "xlsx", "'xlsx'")])
def test_what_is_not_a_format(name, given, message):
    with pytest.raises(OutputError, match=message):
        format_of(Path(name), given=given)
