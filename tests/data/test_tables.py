"""Tables: CSV and XLSX as input of readers, of an index and of mining, and what is written in each format."""

import zipfile
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from folders import write

import isoglot
from isoglot.cli import pairs as verbs
from isoglot.cli.index import export
from isoglot.cli.signatures import expand_options
from isoglot.core.errors import CorpusError, OutputError
from isoglot.data import formats
from isoglot.data.files import read_lines
from isoglot.data.formats import Format, columns_of, format_of, read_table, read_texts, write_table
from isoglot.data.groups import Group
from isoglot.data.readers import read, read_tsv, reader_of
from isoglot.index import Sentence, read_sentences
from isoglot.mining.sentences import gather

PAIRS = [Group(("One, two", "Eins"), ("eng", "deu")), Group(('Say "no"\nnow', "Nein"), ("eng", "deu"))]
CSV = 'en,de\n"One, two",Eins\n\n"Say ""no""\r\nnow",Nein\n'


@pytest.fixture
def workbook(tmp_path):
    """A function that writes rows as the first of two sheets."""
    openpyxl = pytest.importorskip("openpyxl")

    def write(name, *rows):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.create_sheet("other").append(["not read"])
        book.save(tmp_path / name)
        return tmp_path / name

    return write


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("beginning", ["", "\ufeff"])
def test_csv_is_unquoted_and_its_separator_is_that_of_the_first_line(tmp_path, separator, beginning):
    text = beginning + CSV.replace("en,de", f"en{separator}de").replace('",', f'"{separator}')
    path = write(tmp_path / "a.csv", text)
    assert list(read(reader_of(path, default="lines"), path)) == PAIRS
    assert [line for line, _ in read_table(path)[1]] == [2, 4]
    path = write(tmp_path / "b.csv", '"a; b; c",text\n1,One\n')  # a separator inside of quotes does not count
    assert list(read_texts(path, {"text": "text"})) == [(2, "One")]


def test_a_workbook_is_read_by_its_first_sheet(workbook):
    path = workbook("a.xlsx", ["en", "de"], ["One, two", "Eins"], [None, " "], ['Say "no"\nnow', "Nein"], [7.0, None])
    assert list(read("xlsx", path)) == [*PAIRS, Group(("7",), ("eng",))]
    path = workbook("e.xlsx", ["en"], ["One_x000D_\ntwo"])  # a line end as workbooks write it
    assert list(read("xlsx", path)) == [Group(("One\ntwo",), ("eng",))]
    dates = workbook("d.xlsx", ["text", None], [date(2024, 5, 1), None], [True, None], [1.5, None])
    assert [text for _, text in read_texts(dates)] == ["2024-05-01 00:00:00", "True", "1.5"]
    sentence = list(read_sentences(f"en={dates}"))[2]
    assert sentence == Sentence(sentence.id, "1.5", "eng")


def test_the_first_sheet_is_the_first_that_is_seen(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.active.append(["hidden"])
    book.active.sheet_state = "hidden"
    sheet = book.create_sheet("seen")
    sheet.append(["text"])
    sheet.append(["seen"])
    book.active = 1
    book.save(tmp_path / "a.xlsx")
    assert [*read_texts(tmp_path / "a.xlsx")] == [(2, "seen")]


def test_an_empty_table_and_a_workbook_that_openpyxl_cannot_read(tmp_path, workbook):
    for empty in (workbook("e.xlsx"), write(tmp_path / "e.csv", "\n\n")):
        with pytest.raises(CorpusError, match=r"e\.(xlsx|csv): contains no text"):
            list(read_sentences(str(empty)))
    book = pytest.importorskip("openpyxl").Workbook()
    book.create_chartsheet("without a chart")  # openpyxl writes what it can't read
    book.save(tmp_path / "f.xlsx")
    with pytest.raises(CorpusError, match=r"f\.xlsx: cannot be read as an XLSX workbook"):
        list(read("xlsx", tmp_path / "f.xlsx"))


def test_a_workbook_that_is_too_large_is_an_error(monkeypatch, workbook):
    monkeypatch.setattr("isoglot.data.formats._LARGEST_WORKBOOK", 1000)
    with pytest.raises(CorpusError, match="when unpacked"):
        list(read("xlsx", workbook("d.xlsx", ["en"], ["One"])))


def test_a_workbook_that_declares_entities_is_rejected(tmp_path, workbook):
    pytest.importorskip("defusedxml")
    path = workbook("a.xlsx", ["en"], ["One"])
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("sheet1.xml"):
                assert content.startswith(b"<worksheet")
                content = b'<!DOCTYPE worksheet [<!ENTITY a "b">]>' + content
            other.writestr(name, content)
    with pytest.raises(CorpusError, match=r"b\.xlsx: cannot be read as an XLSX workbook"):
        list(read("xlsx", tmp_path / "b.xlsx"))


@pytest.mark.parametrize(
    ("header", "columns", "groups"),
    [
        ("source,target", None, [Group(("a", "b"), ("und", "und"))]),
        ("text,note", None, [Group(("a",), ("und",))]),
        ("english,german", "english=en,german=de", [Group(("a", "b"), ("eng", "deu"))]),
        ("german,english", "english=en", [Group(("b",), ("eng",))]),
        ("english,german", "german", [Group(("b",), ("und",))]),
        ("anchor,positive", None, [Group(("a", "b"), ("und", "und"))]),
    ],
)
def test_a_header_has_languages_or_roles_or_columns_are_chosen(tmp_path, header, columns, groups):
    path = write(tmp_path / "a.csv", f"{header}\na,b\n")
    assert list(read_tsv(path, columns=columns and columns_of(columns))) == groups
    path = write(tmp_path / "b.csv", "source,target,score,label\na,b,1.5,\n")  # numbers become extras
    assert list(read_tsv(path, languages="en,de")) == [Group(("a", "b"), ("eng", "deu"), extras={"score": 1.5})]


def test_an_index_reads_sentences_of_tables_and_not_lines(tmp_path):
    path = write(tmp_path / "a.csv", CSV)
    found = [(one.text, one.language, one.translation) for one in read_sentences(str(path))]
    assert found[:2] == [("One, two", "eng", "Eins"), ("Eins", "deu", "One, two")]
    named = write(tmp_path / "b.csv", "place,english,german\n1,One,Eins\n")
    with pytest.raises(CorpusError, match=r"b\.csv:1: has the columns place, english, german, .*--columns"):
        list(read_sentences(str(named)))
    columns = columns_of("place=id,english=en,german=de")
    assert [one.id for one in read_sentences(str(named), columns=columns)] == ["1", "1"]
    assert [one.text for one in read_sentences(f"en={named}", columns={"english": "text"})] == ["One"]
    with pytest.raises(CorpusError, match="none is called spanish"):
        list(read_sentences(str(named), columns={"spanish": "es"}))


def test_columns_that_are_not_sentences_and_two_of_one_language(tmp_path):
    """A key is not in Kupia, ids in capitals not in Indonesian, and English of two countries is not one column."""
    path = write(tmp_path / "a.csv", "key,en-US,en-GB,de\nk,color,colour,Farbe\n")
    found = [(one.text, one.language, one.translation) for one in read_sentences(str(path))]
    assert found == [("color", "eng", "colour"), ("colour", "eng", "color"), ("Farbe", "deu", "color")]
    with pytest.raises(CorpusError, match=r'a\.csv:1: "id" may be ids or Indonesian'):
        list(read_sentences(str(write(path, "EN,ID,DE\nHello,Halo,Hallo\n"))))
    with pytest.raises(CorpusError, match="two columns have the same name: en, en"):
        list(read_sentences(str(write(path, "en,en\na,b\n"))))
    for key in ("home.title", "btn_ok", "7"):
        with pytest.raises(CorpusError, match=f"has ids such as '{key}'"):
            list(read("csv", write(path, f"id,en\n{key},Home\n")))
    assert next(read("csv", write(path, "id,en\nanak-anak,children\n"))).langs == ("ind", "eng")


def test_a_number_and_a_code_before_a_sentence_are_not_a_score_and_a_pair(tmp_path):
    with pytest.raises(CorpusError, match=r"has the columns 1, cmn, .*'1' is not a language"):
        list(read_sentences(str(write(tmp_path / "sentences.tsv", "1\tcmn\t你好\n2\teng\tHi\n"))))


def test_a_cell_is_as_long_as_a_line(tmp_path):
    text = "word, " * 50_000
    assert [*read_texts(write(tmp_path / "a.csv", f'text\n"{text}"\n'))] == [(2, text)]


@pytest.mark.parametrize("name", ["a.xml", "a.sdlxliff", "a"])
def test_markup_is_not_indexed_as_sentences(tmp_path, name):
    path = write(tmp_path / name, '\ufeff<?xml version="1.0"?>\n<xliff/>\n')
    for read_file in (read_sentences, partial(read, "lines")):
        with pytest.raises(CorpusError, match="has markup"):
            list(read_file(str(path)))


def test_mining_reads_the_column_of_the_text(tmp_path):
    path = write(tmp_path / "a.csv", "id,english\nx,One\ny,\nz,Two\n")
    assert list(gather(path, None, name="a").texts) == ["One", "Two"]
    side = gather(path, None, name="a", ids=True)
    assert [side.id_of(row) for row in range(2)] == ["x", "z"]
    path = write(tmp_path / "b.csv", "english,german\nOne,Eins\n")
    with pytest.raises(
        CorpusError, match=r"b\.csv: has the columns english, german, .*; call one text, .* --columns english"
    ):
        gather(path, None, name="b")
    assert list(gather(path, None, name="b", columns=columns_of("german")).texts) == ["Eins"]
    with pytest.raises(CorpusError, match="2 of them are text; choose one"):
        gather(path, None, name="b", columns=columns_of("english,german"))
    with pytest.raises(CorpusError, match="no column is called id"):
        gather(path, None, name="b", ids=True)
    path = write(tmp_path / "c.tsv", "Good night.\nOne.\n")  # without a header
    with pytest.raises(CorpusError, match=r"c\.tsv: .*'Good night\.'"):
        gather(path, None, name="c")


def test_what_is_written_as_csv_and_parquet_is_read(tmp_path):
    write_table(tmp_path / "a.csv", "csv", {"en": "string", "de": "string"}, [[["a,\nb", "=1"], ['"c"', None]]])
    groups = [Group(("a,\nb", '"c"'), ("eng", "deu")), Group(("=1",), ("eng",))]
    assert list(read_tsv(tmp_path / "a.csv")) == groups
    for form, text in (("csv", "a\rb c"), ("tsv", "a b c")):
        write_table(tmp_path / f"a.{form}", form, {"en": "string"}, [[["a\rb\0c"]]])
        assert list(read(form, tmp_path / f"a.{form}")) == [Group((text,), ("eng",))]
    pytest.importorskip("pyarrow")
    write_table(tmp_path / "a.parquet", "parquet", {"en": "string", "vector": 2}, [[["One"], [[1, 2]]]])
    assert list(read("parquet", tmp_path / "a.parquet")) == [Group(("One",), ("eng",))]


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


def test_a_format_is_given_or_in_the_name():
    assert (format_of(Path("x.TSV")), format_of(Path("x"), given="tmx")) == ("tsv", "tmx")
    for name, given, message in (("x.xlsx", None, "'.xlsx'"), ("x.tsv", "xlsx", "'xlsx'")):
        with pytest.raises(OutputError, match=message):
            format_of(Path(name), given=given)


@pytest.fixture
def piped(monkeypatch):
    """A format that is written and read, and one that is only written."""

    def write(row):
        return "|".join(str(cell) for cell in row.values())

    def read(path):
        return ((number, line.split("|")) for number, line in read_lines(path))

    monkeypatch.setitem(formats.FORMATS, "piped", Format((".psv", ".pipe"), read, write, written=True))
    monkeypatch.setitem(formats.FORMATS, "barred", Format((".bar",), line=write, written=True))
    for suffix, name in {".psv": "piped", ".pipe": "piped", ".bar": "barred"}.items():
        monkeypatch.setitem(formats.SUFFIXES, suffix, name)
        monkeypatch.setitem(formats.SUFFIXES_READ, suffix, name)


def test_a_row_of_the_table_is_all_that_a_format_needs(piped, toy_static, tmp_path):
    texts = ["Good morning", "Thanks a lot", "See you soon"]
    isoglot.mine(toy_static, texts, texts, threshold="all", output=tmp_path / "mined.bar")
    mined = [line.split("|")[1:] for line in (tmp_path / "mined.bar").read_text().splitlines()]
    assert sorted(mined) == sorted([text, text] for text in texts)
    index = isoglot.Index.build(toy_static, texts, languages="eng")
    for name, form in (("a.psv", None), ("a.pipe", None), ("a.bar", None), ("a", "piped")):
        assert index.export(tmp_path / name, format=form) == 3
    assert [text for _, text in read_texts(tmp_path / "a.psv", {"text": "text"})] == texts
    assert [text for _, text in read_texts(tmp_path / "a.pipe", {"text": "text"})] == texts
    with pytest.raises(CorpusError, match="the format barred, and plain text is read here"):
        list(read_texts(tmp_path / "a.bar"))


@pytest.mark.parametrize("verb", [verbs.mine, verbs.align, export])
def test_every_format_is_named_where_files_are_written(verb):
    """The help takes the names from the table, without importing it."""
    parameters = expand_options(verb).__annotations__
    help_text = parameters["form" if verb is export else "format"].__metadata__[0].help
    assert f" {', '.join(dict.fromkeys(formats.SUFFIXES.values()))} " in help_text
