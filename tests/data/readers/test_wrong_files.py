"""What every reader says of a wrong file: one line with the file, the line and the fault."""

import json

import pytest
from packed import zipped

from isoglot.core.errors import CorpusError
from isoglot.data.readers import read

TSV = [
    ("Hello there\tHallo\n", ":1: .*language of each column, and 'Hello there' is not a language"),
    ("from\tinto\nHi\tHallo\n", ":1: .*'from' is not a language; the columns are from, into: choose some with"),
    ("en\tde\nHi\tHallo\nHi\n", r":3: a column is missing: 1 columns where 2 are expected \(en, de\)"),
    ("en\tde\na\tb\tc\n", ":2: a cell too many: 3 columns"),
    ("en\tde\na\tb\n\nc\td\n", ":3: is empty"),
    ("en\tde\n\t \n", ":2: contains no text in any language"),
    *(
        (f"score\ten\n{number}\tHi\n", ":2: the score '?.* is not a number")
        for number in ("high", "nan", "1_000", "١", "", "0x1p3", "9" * 400, "1e39")
    ),
    ("en\tde\n", ": contains a header and no text below it"),
    ("ID\ten\tde\n17\tHi\tHallo\n", ":2: the column ID would be Indonesian, and has ids such as '17'"),
]
OPTIONS = [
    ("de\ten\nHallo\tHi\n", {"languages": "en,de"}, "1: .*deu, eng, and `languages` in another order"),
    ("a\tb\nHi\tHallo\n", {"columns": {"a": "en", "c": "de"}}, "1: has no column 'c'"),
    ("a\tb\nHi\tHallo\n", {"columns": {"a": "en", "b": "de"}, "languages": "en,fr"}, "`columns` are in eng, deu, but"),
    ("a\tb\nHi\tHallo\n", {"columns": {"a": "text", "b": "text"}}, "1: two columns have the same name: text, text"),
]
JSONL = [
    ('{"en": "Hi"', "is not JSON"),
    ('{"xx": "Hi"}', "unknown language 'xx'"),
    ('{"en": ["Hi"]}', "'en' contains"),
    ('{"en": "", "de": null}', "no text in any language"),
    ('{"translation": "Hi"}', "'translation'"),
    ('{"texts": ["a", "b"], "langs": ["en"]}', "2 sentences with 1 languages in 'langs'"),
    ('{"texts": ["a"], "lang": ["en"]}', "'lang' is not a part of a group"),
    ('{"texts": [1]}', "'texts' contains"),
    ('{"texts": ["a"], "extras": {"x": "y"}}', "the extra 'x' must be a number"),
    ('{"texts": ["a"], "extras": 3}', "'extras'"),
    # Rows of texts and languages are read on a short path, which must not pass over anything.
    ('{"texts": ["a: b"], "langs": ["en"], "langs": ["de"]}', "stands twice"),
    ('{"texts": ["a"], "texts": ["b"], "langs": ["en"]}', "stands twice"),
    ('{"texts" : ["a"], "langs":["en"], "langs" :["en"]}', "stands twice"),
    ('{"texts": ["a"], "langs": null, "extras": {"x": 1, "x": 2}}', "stands twice"),
    ('{"texts": ["a"], "langs": ["qx9"]}', "unknown language 'qx9'"),
    ('{"texts": ["a", 3], "langs": ["en", "de"]}', "'texts' contains"),
    ('{"texts": ["a", NaN], "langs": ["en", "de"]}', "NaN is not a JSON number"),
    ('{"texts": [" "], "langs": ["en"]}', "no text in any language"),
    ('{"texts": [], "langs": []}', "no text in any language"),
    ('{"texts": ["a"], "langs": [["en"]]}', "'langs' contains"),
]
NOT_FINITE = ["NaN", "Infinity", "-Infinity", "1e999", "1e39", "1" + "0" * 30, "9" * 5000]
JSONL += [(f'{{"deu": "a", "eng": "b", "score": {number}}}', "") for number in NOT_FINITE]
JSONL += [(f'{{"texts": ["a"], "extras": {{"s": [{number}]}}}}', "") for number in NOT_FINITE]
NLI = [
    ("a.tsv", "a\tb\tc\na\n", "a.tsv:2: 1 columns where premise"),
    ("a.tsv", "a\tb\tc\td\n", "a.tsv:1: 4 columns"),
    ("a.tsv", "\tb\tc\n", "a.tsv:1: the premise is empty"),
    ("a.tsv", "a\t \tc\n", "a.tsv:1: the entailment is empty"),
    ("a.tsv", "sent0\tsent1\n", "a.tsv: contains a header and no text"),
    ("a.csv", 'a,b,c\n"two\nlines",b,c\n"open,b,c\n', "a.csv:4: is not quoted as CSV"),
    ("a.csv", "a,b,c\n\na\n", "a.csv:3: 1 columns"),
]
LABELLED = [
    ("a.tsv", "a\tb\tneutral\na\tb\tperhaps\n", r"a\.tsv:2: .*'perhaps' .*entailment, neutral"),
    ("a.tsv", "a\tb\tneutral\na\tb\n", r"a\.tsv:2: .*2 columns where 3"),
    ("a.tsv", "a\t\tneutral\n", r"a\.tsv:1: the hypothesis is empty"),
    ("a.tsv", "a\tb\tc\n", r"a\.tsv:1: has the columns 'a, b, c', and not those of premise"),
    ("a.jsonl", '{"premise": "a", "hypothesis": "b"}', r"a\.jsonl:1: has the columns 'premise, hypothesis', and not"),
    ("a.jsonl", '{"premise": ["a"], "hypothesis": "b", "label": 1}', r"a\.jsonl:1: contains a JSON dict or list"),
    ("a.jsonl", "[]\n", r"a\.jsonl:1: contains a JSON list; write one object per line"),
    ("a.jsonl", "{}\n", r"a\.jsonl:1: has the columns '', and not"),
    ("a.jsonl", "{\n", r"a\.jsonl:1: is not JSON"),
]
TMX = [
    ('<tuv xml:lang="en"><seg>Hi</seg></tuv><tuv xml:lang="xx"><seg>?</seg></tuv>', ":1: translation unit 1: unknown"),
    ("<tuv><seg>Hi</seg></tuv>", ":1: translation unit 1: a <tuv> without xml:lang"),
]
MOSES = [
    ({}, r"two files are needed, not 3; files a\.<language> here: a\.de, a\.en, a\.fr; pass languages="),
    ({"languages": "de,it"}, "no file for ita"),
    ({"languages": "de"}, "a pair has two languages, not 1"),
    ({"languages": "de,xx"}, "unknown language 'xx'"),
    ({"other": "a.en"}, "has no language at the end of its name"),
]
TWO_SETS = dict.fromkeys(("train.de", "train.en", "val.de", "val.en"), "a\n")
UNEQUAL = [
    ("1\n2\n", "1\n2\n3\n", r"a\.de: has 2 lines, but .*a\.en has 3, so from line 3 on they are not translations"),
    ("1\n2\n3\n4\n", "1\n2\n", r"a\.en: has 2 lines, but .*a\.de has 4, so from line 3 on"),
]
ENTITY = {"text": "Berlin ist groß.", "lang": "deu", "entity": "Q64"}
ENTITIES = [
    (ENTITY | {"entity": "Q7"}, "the entity 'Q7' is not in entities\\.tsv"),
    (ENTITY | {"hard": ["Q8"]}, "the entity 'Q8' is not in"),
    ("{", "is not JSON"),
    ("", "is empty"),
    ([1], "contains a JSON list; write one object per line"),
    (ENTITY | {"text": " "}, "'text' must be a non-blank string, not ' '"),
    ({"text": "a", "lang": "deu"}, "'entity' must be"),
    (ENTITY | {"entity": 64}, "'entity' must be .* not 64"),
    (ENTITY | {"lang": "qqq1"}, "unknown language 'qqq1'"),
    (ENTITY | {"hard": "Q90"}, "'hard' must be a list of ids"),
]
TABLES = [
    ("Q64\t12\tBerlin\nQ90\tmany\tParis\n", r"tsv:2: a line must be: id, tab, number of links, tab, label"),
    ("Q64\t12\tBerlin\nQ64\t11\tBerlin\n", r"tsv:2: duplicate entity 'Q64'"),
]
GOOD = json.dumps(ENTITY) + "\n"
CSV = [
    ("name,value\na,b\n", r":1: .*'name' is not a language; the columns are name, value: .*--columns"),
    ("Name,English,German\na,b,c\n", ":1: .*'Name' is not a language"),
    ("Nr,en,de\n1,a,b\n", ":2: the column Nr would be South Ndebele, and has ids such as '1'"),
    ("en,de\na\n", ":2: a column is missing"),
    ("en,de\na,b,c\n", ":2: a cell too many"),
    ('en,de\na,b\n"open,b\n', ":3: is not quoted as CSV"),
    ("source,target,score\na,b,high\n", ":2: the score 'high'"),
    ("en,de\n", ": contains a header and no text"),
]
UNIT = "<trans-unit><source>a</source><target>b</target></trans-unit>"
XLIFF = f"""<xliff><file source-language="en" target-language="de">
<body>{UNIT}
</body></file></xliff>"""
DOCUMENTS = [
    ("docx", b"PK\x03\x04 damaged", ": cannot be read as a DOCX document"),
    ("docx", "text", ": cannot be read as a DOCX document"),
    ("docx", zipped({"a.txt": b"a"}), r": cannot be read as a DOCX document \(.*word/document\.xml"),
    ("xlsx", "en,de\n", ": cannot be read as an XLSX workbook"),
    ("xlsx", zipped({"a.txt": b"a"}), ": cannot be read as an XLSX workbook"),
    ("docx", "", ": "),
    ("html", b"<p>\xff</p>", ":1: byte 0xff"),
    ("html", "<p> </p>", ": contains no text"),
    ("md", "\n\n", ": contains no text"),
    ("md", "x\n\n" + "[" * 100_001, ":3: a paragraph too long"),
    ("srt", "Hello\n\n1\n00:00:01,000 --> 00:00:02,000\nx\n", ":1: text before the first times"),
    ("srt", "Hello\n", ": contains no times"),
    ("po", 'msgid "a"\nmsgid "b"\n', r":2: cannot be read as a \.po file"),
    ("po", 'msgid ""\nmsgstr "Language: xx-none\\n"\n\nmsgid "a"\nmsgstr "b"\n', ": unknown language"),
    ("po", "# only a comment\n", ": contains no message"),
    ("xliff", "<xliff/>", ": contains no <trans-unit>"),
    ("xliff", XLIFF.replace("</body>", ""), ":3: not well-formed"),
    ("xliff", XLIFF.replace(' target-language="de"', ""), ":2: unit 1 is translated"),
    ("xliff", XLIFF.replace('"de"', '"zzzz"'), ":2: unit 1: unknown language"),
    ("xliff", '<!DOCTYPE x [<!ENTITY a "b">]>' + XLIFF, ":1: declares the entity"),
]
XNLI = [
    ({"dev-de.tsv": "a\tb\tentailment\n"}, r"dev-de.tsv: has fewer rows"),
    ({"dev-de.tsv": "a\tb\tneutral\nc\td\tneutral\n"}, r"dev-de.tsv:1: the label differs from that of dev-en.tsv:1"),
    ({"dev-de.tsv": "a\tb\nc\td\tneutral\n"}, r"dev-de.tsv:1: a column is missing"),
    ({"dev-de.tsv": "a\tb\tmaybe\n"}, r"dev-de.tsv:1: .*maybe'"),
    ({"dev-de.tsv": "", "dev-de.tsv.gz": "x"}, r"dev-de.tsv.gz: and dev-de.tsv are both deu"),
    ({}, "no contradiction"),
]
XNLI_OPTIONS = [
    ({"pool": "en,kor"}, r"no file dev-<xx>.tsv .* of kor; there are: deu, eng"),
    ({"split": "test"}, r"no file test-<xx>.tsv or \*\.test\.<xx>\.tsv of any language"),
    ({"pool": "xx"}, "unknown language 'xx'"),
]
XNLI_FILES = {f"dev-{code}.tsv": "a\tb\tentailment\nc\td\tneutral\n" for code in ("de", "en")}
ROWS = [  # reader, options, the path that is read, files, what is said after the folder
    *(("tsv", {}, "a.tsv", {"a.tsv": text}, f"a.tsv{message}") for text, message in TSV),
    *(("tsv", options, "a.tsv", {"a.tsv": text}, f"a.tsv:.*{message}") for text, options, message in OPTIONS),
    ("tsv", {"languages": "en,xx"}, "a.tsv", {"a.tsv": "a\tb\n"}, r"a\.tsv: unknown language 'xx'"),
    *(
        ("jsonl", {}, "a.jsonl", {"a.jsonl": f'{{"en": "Hi 😀", "de": "a"}}\n{line}\n'}, f"jsonl:2: .*{message}")
        for line, message in JSONL
    ),
    *(("csv", {}, "a.csv", {"a.csv": text}, f"a.csv{message}") for text, message in CSV),
    *((reader, {}, f"a.{reader}", {f"a.{reader}": text}, f"{reader}{message}") for reader, text, message in DOCUMENTS),
    *(("nli", {}, name, {name: text}, message) for name, text, message in NLI),
    *(("nli", {"labelled": True}, name, {name: text}, message) for name, text, message in LABELLED),
    ("nli", {"labelled": True, "split": "dev"}, "", {"s1.dev": "a\n", "labels.dev": "a\n"}, r"s2\.dev: no such"),
    ("nli", {"labelled": True}, "", {"s1.train": "a", "s2.train": "a\nb", "labels.train": "0\n0"}, r"s1\.train: has"),
    *(("tmx", {}, "a.tmx", {"a.tmx": f"<tmx><tu>{unit}</tu></tmx>"}, f"tmx{message}") for unit, message in TMX),
    ("tmx", {}, "a.tmx", {"a.tmx": "<tmx/>"}, "contains no translation unit"),
    *(("moses", given, "a", dict.fromkeys(["a", "a.de", "a.en", "a.fr"], "?\n"), message) for given, message in MOSES),
    *(("moses", {}, "a", {"a.de": german, "a.en": english}, message) for german, english, message in UNEQUAL),
    ("moses", {}, "a", {"a.de": "eins\n\ndrei\n", "a.en": "one\ntwo\nthree\n"}, r"a\.de:2: is empty"),
    ("folder", {}, "nothing", {}, "nothing: not a folder"),
    ("folder", {}, "", {}, "contains no line-aligned files"),
    ("folder", {}, "", TWO_SETS, r"contains 2 sets \(train, val\); pass sets="),
    ("folder", {"sets": "test"}, "", TWO_SETS, "no set is named 'test'; there are: train, val"),
    ("folder", {"sets": "*", "languages": "de,fr"}, "", TWO_SETS, "no set has two of the languages deu, fra"),
    ("folder", {}, "", dict.fromkeys(("zho.txt", "cmn.txt", "eng.txt"), "a\n"), r"zho\.txt: and cmn\.txt are both zho"),
    ("jsonl", {}, "a.jsonl", {"a.jsonl": '{"id": "s-17", "en": "Hi"}\n'}, ":1: the column id would be Indonesian, and"),
    ("lines", {"language": "xx"}, "a.txt", {"a.txt": "a\n"}, r"a\.txt: unknown language 'xx'"),
    *(
        (
            "entities", {}, "",
            {"sentences.jsonl": GOOD + (item if isinstance(item, str) else json.dumps(item)) + "\n",
             "entities.tsv": "Q64\t12\tBerlin\n"},
            f"sentences\\.jsonl:2: {message}",
        )
        for item, message in ENTITIES
    ),
    *(("entities", {}, "", {"sentences.jsonl": GOOD, "entities.tsv": text}, message) for text, message in TABLES),
    ("entities", {}, "", {"sentences.jsonl": GOOD}, r"entities\.tsv: no such file"),
    ("entities", {"hard": -1}, "", {"sentences.jsonl": GOOD}, "hard must be 0 to 1024"),
    *(
        ("xnli", {"split": "dev", "mode": "groups" if files else "triplets"}, "", XNLI_FILES | files, message)
        for files, message in XNLI
    ),
    *(("xnli", {"split": "dev", "mode": "groups"} | given, "", XNLI_FILES, message) for given, message in XNLI_OPTIONS),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "options", "place", "files", "message"), ROWS)
def test_what_is_wrong_is_named_with_its_place(tmp_path, reader, options, place, files, message):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CorpusError, match=message) as caught:
        list(read(reader, tmp_path / place, **options))
    assert str(caught.value).startswith(str(tmp_path))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
