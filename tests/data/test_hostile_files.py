"""Files that are not what they should be, or worse: every reader parses them or raises `CorpusError` in one line."""

import bz2
import gzip
import io
import json
import lzma
import os
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packed import tar, zipped

from isoglot.core.errors import CorpusError, IsoglotError
from isoglot.core.numbers import LARGEST, LARGEST_WHOLE, finite, fits, whole
from isoglot.data import files, xml_stream
from isoglot.data.files import read_lines
from isoglot.data.formats import read_texts
from isoglot.data.languages import canonical
from isoglot.data.readers import (
    read_entities,
    read_jsonl,
    read_moses,
    read_nli,
    read_sentences,
    read_tmx,
    read_tsv,
    read_xnli,
)
from isoglot.data.readers.entities import read_table
from isoglot.data.vectors import open_table, require_finite
from isoglot.wikipedia.dump import open_dump, pages
from isoglot.wikipedia.entities import entity_lines, title_rows, type_rows, wikidata_lines
from isoglot.wikipedia.titles import Names
from wikipedia.wiki_dumps import page, xml

TMX = '<tmx version="1.4"><body><tu><tuv xml:lang="{code}"><seg>{text}</seg></tuv></tu></body></tmx>'
WIKIS = {"de": Names("de", {})}


def read_dump(path):
    return list(pages(open_dump(f"de={path}"), lambda _words: None))


def read_wikidata(path):
    return entity_lines(list(wikidata_lines(path, lambda _words: None)), path, WIKIS)


READERS = {
    "lines": read_lines,
    "texts": read_texts,
    "sentences": read_sentences,
    "tsv": read_tsv,
    "tsv score": partial(read_tsv, languages="score,deu,eng"),
    "jsonl": read_jsonl,
    "tmx": read_tmx,
    "nli": read_nli,
    "labelled": partial(read_nli, labelled=True),
    "entities": read_table,
    "dump": read_dump,
    "wikidata": read_wikidata,
    "titles": partial(title_rows, wikis=WIKIS),
    "types": type_rows,
    "table": lambda path: [open_table(path)],
}
NAMES = {"texts": "a.jsonl", "nli": "a.csv", "labelled": "a.jsonl"}
BUILDING = [
    *(b"\t", b"\n", b"\r", b'"', b"{", b"}", b"[", b":", b",", b"<", b">", b"&", b"\0", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"deu", b"eng", b"text", b'{"text": "a"}', b'{"deu": "a", "x": 1e999}', b"NaN", b"1e999", b"-", b"9" * 5000),
    *(b"\\ud800", b'"a"', b'{"id":"Q1","sitelinks":{"dewiki":{"title":"A"}}}', b'{"dewiki":1}', b"[" * 3000),
    *(b"<mediawiki>", b"<page>", b"<title>A</title>", b"<ns>x</ns>", b"</page>", b'<namespace key="x">', b"<text>"),
    *(b"</mediawiki>", b"<tmx>", b"<tu>", b'<tuv xml:lang="de">', b"<seg>", b"</seg></tuv></tu>", b"</tmx>", b"&x;"),
    *(b'<?xml version="1.0" encoding="gb2312"?>', b'<!DOCTYPE a SYSTEM "b">', b"<![CDATA[", b"<!--", b"\xc4\xe3"),
    *(b"\x93NUMPY\x01\0", b"PK\x03\x04", b"\x1f\x8b\x08\0", b"BZh91AY&SY", b"\xfd7zXZ\0", b"premise", b"\xe2\x80\xa8"),
]
BYTES = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(BUILDING), max_size=8).map(b"".join))


def check(error, start):
    assert str(error).startswith(start)
    assert str(error).isprintable()
    assert len(str(error)) < 500


@pytest.mark.parametrize("name", READERS)
@given(content=BYTES)
def test_any_bytes_are_read_or_refused(tmp_path_factory, name, content):
    path = tmp_path_factory.mktemp("any") / NAMES.get(name, "a.tsv")
    path.write_bytes(content)
    try:
        list(READERS[name](path))
    except CorpusError as error:
        check(error, str(path))


@pytest.mark.parametrize("number", ["abc", "9" * 5000, "1.5", "\u0661"])
def test_namespaces_that_are_no_numbers_name_the_line(tmp_path, number):
    path = tmp_path / "d.xml"
    path.write_text(xml(page("A", ns=number)), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"d\.xml:\d+: <ns> must be the number of a namespace"):
        read_dump(path)
    path.write_text(xml(page("A")).replace('key="1"', f'key="{number}"'), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"d\.xml:\d+: the key of a <namespace>"):
        read_dump(path)


# Encodings

WRITTEN = {"KOI8-R": "привет", "windows-1256": "مرحبا", "iso-8859-15": "5 €", "TIS-620": "สวัสดี", "us-ascii": "hello"}


@pytest.mark.parametrize("encoding", WRITTEN)
def test_declared_encodings_of_one_byte_are_read(tmp_path, encoding, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK", 4099)
    text, declared = WRITTEN[encoding], f'<?xml version="1.0" encoding="{encoding}"?>\n'
    many = (text + " ") * 3000 + text
    path = tmp_path / "a.tmx"
    path.write_bytes((declared + TMX.format(code="und", text=many)).encode(encoding))
    assert next(read_tmx(path)).texts == (many,)
    path.write_bytes((declared + f"<mediawiki><page><text>{many}</text></page></mediawiki>").encode(encoding))
    assert read_dump(path)[0].text == many


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_wide_encodings_with_and_without_a_mark(tmp_path, encoding):
    path = tmp_path / "a.tmx"
    for declared in ("", '<?xml version="1.0" encoding="utf-16"?>', '<?xml version="1.0"?>'):
        path.write_bytes((declared + TMX.format(code="zh", text="你好 𠀀")).encode(encoding))
        assert next(read_tmx(path)).texts == ("你好 𠀀",)


REFUSED = ["UTF-7", "rot13", "hex", "base64", "zlib", "idna", "punycode", "gb2312", "EUC-JP"]
REFUSED += ["undefined", "nonsense", "cp037", "UTF-16", "mbcs", "", "a b", "é", "x" * 300, "\x01"]


@pytest.mark.parametrize("encoding", REFUSED)
def test_other_encodings_are_refused(tmp_path, encoding):
    path = tmp_path / "a.xml"
    text = f'<?xml version="1.0" encoding="{encoding}"?><mediawiki><tu/></mediawiki>'
    path.write_bytes(text.encode("latin-1"))
    for reader in (read_tmx, read_dump):
        with pytest.raises(CorpusError) as caught:
            list(reader(path))
        check(caught.value, f"{path}:1: ")


@given(
    encoding=st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=15),
        st.sampled_from([*REFUSED, *WRITTEN, "utf_8_sig", "latin1", "hz", "cp65001", "iso2022_kr", "quopri", "bz2"]),
    ),
    body=st.one_of(st.binary(max_size=30), st.just(TMX.format(code="de", text="+ADw-a").encode())),
)
@example(encoding="latin1", body=b"<tu>\xe4</tu>")
def test_any_declared_encoding_is_read_or_refused(tmp_path_factory, encoding, body):
    path = tmp_path_factory.mktemp("enc") / "a.tmx"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + body)
    for reader in (read_tmx, read_dump):
        try:
            list(reader(path))
        except CorpusError as error:
            check(error, str(path))


# XML that is well-formed and hostile


@pytest.mark.parametrize("reader", [read_tmx, read_dump])
def test_deep_nesting_is_refused(tmp_path, reader):
    path, root = tmp_path / "a.xml", "tmx" if reader is read_tmx else "mediawiki"
    text = f"<{root}><tu><tuv xml:lang='de'><seg>{{}}</seg></tuv></tu></{root}>"
    path.write_text(text.format("<hi>" * 200_000 + "x" + "</hi>" * 200_000))
    with pytest.raises(CorpusError, match=rf"a\.xml:1: more than {xml_stream.DEEPEST} elements"):
        list(reader(path))
    depth = xml_stream.DEEPEST - 5
    path.write_text(text.format("<hi>" * depth + "x" + "</hi>" * depth))
    assert [group.texts for group in reader(path)] == [("x",)] * (reader is read_tmx)


BOMB = "<!ENTITY a '" + "x" * 100 + "'>" + "".join(f"<!ENTITY a{i} '{'&a;' * 100}'>" for i in range(5))


@pytest.mark.parametrize(
    ("dtd", "text", "message"),
    [
        (f"[{BOMB}]", "&a4;", "declares the entity 'a'"),
        ("[<!ENTITY x SYSTEM 'secret'>]", "&x;", "declares the entity 'x'"),
        ("[<!ENTITY % x SYSTEM 'secret'> %x;]", "y", "declares the entity 'x'"),
        ("SYSTEM 'secret'", "caf&eacute;", "undefined entity &eacute;"),
        ("[]", "&eacute;", "undefined entity"),
    ],
)
def test_entities_are_never_expanded_or_fetched(tmp_path, monkeypatch, dtd, text, message):
    (tmp_path / "secret").write_text("<!ENTITY eacute 'é'>secret")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.tmx"
    path.write_text(f"<!DOCTYPE tmx {dtd}>" + TMX.format(code="fr", text=text))
    with pytest.raises(CorpusError, match=message):
        list(read_tmx(path))


@pytest.mark.parametrize(
    "content",
    [
        TMX.format(code="de", text="x" * 5000),
        TMX.format(code="de", text="<hi/>x" * 3000),
        TMX.format(code="de", text="x<!-- " + "y" * 300_000 + " -->"),
        TMX.format(code="de", text=f'<hi a="{"y" * 300_000}"/>x'),
    ],
)
def test_what_is_too_long_for_memory_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(xml_stream, "LONGEST_TEXT", 4000)
    path = tmp_path / "a.tmx"
    path.write_text(content)
    with pytest.raises(CorpusError, match=r"a\.tmx:1: .*more than"):
        list(read_tmx(path))


# Lines


@pytest.mark.parametrize("pack", [bytes, gzip.compress, partial(lzma.compress, preset=0), bz2.compress])
def test_a_line_without_end_is_refused_in_bounded_memory(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "a.txt"
    path.write_bytes(pack(b"first\n" + b"x" * 16_000_000))
    tracemalloc.start()
    with pytest.raises(CorpusError, match=r"a\.txt:2: has more than 1 MiB without a line end"):
        list(read_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


@pytest.mark.parametrize("content", [b"a\rb\rc\r", b"a\rb", b"x\r" * 400_000])
def test_lines_that_end_at_carriage_returns_alone_are_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 19)
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.txt:1: ends its lines with CR alone"):
        list(read_lines(path))


ZIPPED = zipped({"a.txt": b"deu\teng\n" * 100})


def saved(table):
    stream = io.BytesIO()
    np.save(stream, table)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (ZIPPED, "a zip archive"),
        (tar({"a.txt": b"text"}, "w"), "a tar archive"),
        (b"PAR1\x15\0\x15 PAR1", "a Parquet file"),
        (b"SQLite format 3\0" + bytes(80), "an SQLite database"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF document"),
        (saved(np.ones(3)), "a NumPy table"),
        (b"\x80\x04\x95.", "a Python pickle"),
        (b"\x28\xb5\x2f\xfd\0", "Zstandard data"),
        (b"text, \0 and more", "contains a NUL byte"),
        ("deu\teng\nja\tyes\n".encode("utf-16-le"), "seems to be UTF-16"),
        ("hello".encode("utf-16"), "iconv -f UTF-16"),
        ("deu\teng\n".encode("utf-32"), "iconv -f UTF-32"),
        (b"fine\nalso\ncaf\xe9 noir\n", ":3: byte 0xe9 at position 3 is not UTF-8; .*iconv -f ENCODING"),
        (b"0123456789\n" * 100_000 + b"\xff\n", ":100001: byte 0xff at position 0"),
        (b"", "no text"),
        (b"\xef\xbb\xbf", "no text"),
    ],
)
def test_files_that_are_not_text_are_called_by_their_name(tmp_path, content, kind):
    path = tmp_path / "a.tsv"
    for pack in (bytes, gzip.compress):
        path.write_bytes(pack(content))
        with pytest.raises(CorpusError, match=kind) as caught:
            list(read_lines(path))
        check(caught.value, str(path))


@pytest.mark.parametrize("text", ["PAR1 is a name", "%PDF-1.4 is a version", "BZhang", "ARROW1", "ustar " * 60])
def test_text_that_begins_like_another_format_is_text(tmp_path, text):
    (tmp_path / "a.txt").write_text(text + "\n")
    assert list(read_lines(tmp_path / "a.txt")) == [(1, text)]


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody writes: opening it would wait for ever
    for path in (tmp_path / "pipe", "/dev/null"):
        for reader in (read_lines, read_tmx, read_dump, open_table):
            with pytest.raises(CorpusError, match="is a pipe or a device"):
                list(reader(path))
    with pytest.raises(CorpusError, match="is a folder"):
        open_table(tmp_path)


@pytest.mark.parametrize("reader", [read_tmx, read_moses, read_entities, read_xnli, read_dump, open_table])
def test_paths_that_cannot_be(tmp_path, reader):
    for name in ("a\0b", "\ud800"):
        with pytest.raises(IsoglotError) as caught:
            list(reader(f"{tmp_path}/{name}"))
        check(caught.value, "")


# Numbers and JSON


@given(st.one_of(st.floats(), st.integers()))
def test_what_is_read_as_a_number_is_finite(value):
    try:
        found = finite(repr(value))
    except ValueError:
        assert not abs(float(value)) <= LARGEST
    else:
        assert found == float(value)
        assert np.isfinite(np.float32(found))
    assert fits(value) == (abs(value) <= (LARGEST_WHOLE if isinstance(value, int) else LARGEST))


@given(st.text(max_size=25))
@example("-1")
@example("9" * 5000)
def test_whole_numbers(text):
    try:
        assert abs(whole(text)) < 10**18
        assert whole(text) == int(text)
    except ValueError as error:
        check(error, "")


@pytest.mark.parametrize("line", ['"\\ud800"', "[" * 100_000, "5", "null", '{"a": 1}', '"a" "b"', "NaN"])
def test_a_file_of_json_strings_holds_nothing_else(tmp_path, line):
    (tmp_path / "t.jsonl").write_text(f'"fine"\n{line}\n')
    with pytest.raises(CorpusError, match=r"t\.jsonl:2: "):
        list(read_texts(tmp_path / "t.jsonl"))


def test_wikidata_of_another_shape_is_refused(tmp_path):
    good = {"id": "Q1", "sitelinks": {"dewiki": {"title": "A"}}}
    for wrong in (
        {**good, "id": 5},
        {**good, "sitelinks": {"dewiki": {}}},
        {**good, "sitelinks": {"dewiki": {"title": "\ud800"}}},
        {**good, "claims": {"P31": [5]}},
        {**good, "claims": "P31"},
    ):
        path = tmp_path / "w.json"
        path.write_text("\n".join(map(json.dumps, (good, wrong, good))))
        with pytest.raises(CorpusError, match=r"w\.json:2: .*JSON of an entity"):
            read_wikidata(path)
    path.write_text(json.dumps(good) + '\n{"dewiki": ' + "[" * 100_000)
    assert len(read_wikidata(path)) == 1  # cut inside its last entity


def test_a_sentence_is_no_language_and_is_not_repeated_whole():
    with pytest.raises(CorpusError, match="unknown language") as caught:
        canonical("x" * 10_000_000)
    assert len(str(caught.value)) < 300


# Tables of vectors


def header(text, data=b""):
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text.encode("latin-1") + data


TABLE = saved(np.zeros((100, 4)))
SHAPE = "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 4)}}\n"
NO_TABLES = [
    *(saved(np.zeros(shape)) for shape in (5, (2, 2, 2), (), (3, 0))),
    *(saved(np.zeros((2, 2), kind)) for kind in (complex, np.longdouble, int, bool, [("a", "<f4")])),
    *(saved(np.array([[cell]])) for cell in ("a", {})),
    *(TABLE[:size] for size in (-1, 90, 9, 0)),
    *(header(SHAPE.format(size), bytes(64)) for size in ("-1", "9" * 30, "'a'")),
    *(header(text) for text in ("(" * 5000, "__import__('os').abort()")),
    *(gzip.compress(TABLE, mtime=0), ZIPPED, b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94.", b"1 2 3\n"),
]


@pytest.mark.parametrize("content", NO_TABLES)
def test_files_that_are_no_table_of_vectors(tmp_path, content):
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        open_table(path)
    check(caught.value, str(path))


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
def test_the_row_that_is_not_finite_is_named(tmp_path, value):
    table = np.ones((5_000, 300))
    table[4_321, 299] = value
    np.save(tmp_path / "v.npy", table)
    with pytest.raises(CorpusError, match=r"v\.npy: row 4321 contains"):
        require_finite(open_table(tmp_path / "v.npy"), tmp_path / "v.npy")


def test_an_error_is_one_line_that_a_terminal_can_show():
    assert str(CorpusError("a\n  b\x1b[2J\0", file="c\rd")) == "c d: a b\\x1b[2J\\x00"


@pytest.mark.parametrize("name", ["memory.tmx", "pairs.TSV", "pairs.csv", "page.xml", "memory.tmx.xz", "renamed.txt"])
def test_columns_and_markup_are_not_lines_of_text(tmp_path, name):
    content = b'<?xml version="1.0"?>\n<tmx/>\n' if name == "renamed.txt" else b"by its name alone\n"
    (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
    with pytest.raises(CorpusError, match=name):
        list(read_texts(tmp_path / name))
