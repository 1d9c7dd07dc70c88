"""Documents: what their texts are, and what is an error, with its place."""

import zipfile

import pytest
from folders import write

from isoglot.core.errors import CorpusError, MissingExtraError
from isoglot.data import documents
from isoglot.data.formats import read_texts
from isoglot.data.groups import Group
from isoglot.data.readers import read, reader_of
from isoglot.data.readers.files import read_files
from isoglot.index import read_sentences

PAGE = """<!doctype html><html lang=en><head><title>Two  boats</title><style>p { color: red }</style></head>
<body><nav><ul><li>Home<li>Away</ul></nav>
<p>The <b>red</b> boat &amp; the <a href="x">blue</a>
one.<br>They sail.</p><script>var x = "<p>no</p>"</script><template>no</template>
<table><tr><td>one</td><td>two</td></tr></table>A tail
<p>   </p></body></html>
"""
PAGE_TEXTS = ["Two boats", "Home", "Away", "The red boat & the blue one.", "They sail.", "one", "two", "A tail"]

MARKDOWN = """---
title: Boats
---
# Two *boats*

The **red** boat and
the [blue](x) `one`.\\
They sail. <b>Fast</b>

- home
- away

| a | b |
|---|---|
| c | d |

```
no = 1
```

> A quotation ![of a picture](x.png)
"""
MARKDOWN_TEXTS = ["Two boats", "The red boat and the blue one.", "They sail. Fast", "home", "away", "a", "b", "c", "d"]
MARKDOWN_TEXTS += ["A quotation of a picture"]

SUBTITLES = """1
00:00:01,000 --> 00:00:02,500
<i>The red</i> boat

2
00:00:03,000 --> 00:00:04,000 X1:100
{\\an8}sails
at 7

3
00:00:05,000 --> 00:00:06,000

4
00:01:05.000 --> 00:01:06.000
1984
"""

WEB_SUBTITLES = """WEBVTT - A film

STYLE
::cue { color: red }

NOTE The first
two lines

first
00:01.000 --> 00:02.500 align:start
<v Ann><i>The</i> <00:01.500><c.big>red</c> boat &amp; &lt;crew&gt;

NOTE between

2
00:00:03.000 --> 00:00:04.000
sails
at 7

00:01:05.000 --> 00:01:06.000
1984

00:01:06.000 --> 00:01:07.000
"""

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PARAGRAPHS = """<w:p><w:r><w:t>The red </w:t></w:r><w:r><w:t>boat</w:t></w:r></w:p>
<w:p><w:r><w:t>sails</w:t><w:br/><w:t>away</w:t><w:tab/><w:t>now</w:t><w:instrText>no</w:instrText></w:r>
<w:del><w:r><w:delText>no</w:delText></w:r></w:del></w:p><w:p/>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell &amp;</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><mc:AlternateContent><mc:Choice><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Choice><mc:Fallback><w:p><w:r>
<w:t>box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent></w:p>"""
PARAGRAPHS += """<w:p><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>
<w:p><w:r><w:t>re</w:t><w:noBreakHyphen/><w:t>do</w:t></w:r></w:p>
<w:p><w:moveTo><w:r><w:t>moved</w:t></w:r></w:moveTo></w:p>"""
WORD_TEXTS = ["The red boat", "sails", "away now", "cell &", "box", "re-do", "moved"]


def write_docx(path, body=PARAGRAPHS, head=""):
    xml = f'<?xml version="1.0" encoding="UTF-8"?>{head}<w:document xmlns:w="{WORD}" xmlns:mc="mc"><w:body>{body}'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", xml + "</w:body></w:document>")
    return path


def texts_of(path):
    return [text for _, text in read_texts(path)]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "a.html", PAGE)
    write(tmp_path / "a.htm", PAGE)
    write(tmp_path / "a.md", MARKDOWN)
    write(tmp_path / "a.srt", SUBTITLES)
    write(tmp_path / "a.vtt", WEB_SUBTITLES)
    write_docx(tmp_path / "a.docx")
    return tmp_path


EXPECTED = {
    "a.html": PAGE_TEXTS,
    "a.htm": PAGE_TEXTS,
    "a.md": MARKDOWN_TEXTS,
    "a.srt": ["The red boat", "sails at 7", "1984"],
    "a.vtt": ["The red boat & <crew>", "sails at 7", "1984"],
    "a.docx": WORD_TEXTS,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_texts_of_documents_by_every_reader(folder, name):
    assert list(read_texts(folder / name)) == list(enumerate(EXPECTED[name], 1))
    groups = [Group((text,), ("eng",)) for text in EXPECTED[name]]
    assert list(read(reader_of(folder / name, default="lines"), folder / name, language="eng")) == groups
    assert [*read_files([folder / name], languages=["eng"])] == groups
    assert [(one.text, one.language) for one in read_sentences(f"en={folder / name}")] == [
        (text, "eng") for text in EXPECTED[name]
    ]


@pytest.mark.parametrize(
    "name, text, texts",
    [
        (
            "a.html",
            "<p>Click <img src=x> to<script>x</script> go&nbsp;!<p>&nbsp;<p>a<img>b",
            ["Click to go\u00a0!", "a b"],
        ),
        ("a.html", "<p><ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>です", ["東京です"]),
        ("a.md", "---\n\nThe boat\n\n---\n\nsails\u3000now\n", ["The boat", "sails\u3000now"]),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,500\n\u00a0\n\n2\n00:00:03,000 --> 00:00:04,000\nHé\u00a0!\n",
            ["Hé\u00a0!"],
        ),
    ],
)
def test_what_stands_inside_a_sentence_does_not_cut_it(tmp_path, name, text, texts):
    assert texts_of(write(tmp_path / name, text)) == texts


def test_pronunciations_and_tabs_of_docx(tmp_path):
    ruby = "<w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r></w:rubyBase></w:ruby>"
    body = f"<w:p><w:r>{ruby}<w:t>京</w:t><w:ptab/><w:t>now\u00a0!</w:t></w:r></w:p>"
    assert texts_of(write_docx(tmp_path / "a.docx", body)) == ["東京 now\u00a0!"]


def test_docx_that_is_too_large_or_hostile(tmp_path, monkeypatch):
    bomb = write_docx(tmp_path / "bomb.docx", "<w:p/>" * 100_000)
    assert bomb.stat().st_size < 20_000
    monkeypatch.setattr(documents, "LARGEST", 1 << 19)
    with pytest.raises(CorpusError, match="when unpacked, more than"):
        texts_of(bomb)
    entities = write_docx(tmp_path / "a.docx", "<w:p><w:t>&a;</w:t></w:p>", head='<!DOCTYPE x [<!ENTITY a "b">]>')
    with pytest.raises(CorpusError, match="declares the entity 'a'"):
        texts_of(entities)
    whole = write_docx(tmp_path / "c.docx").read_bytes()
    (tmp_path / "c.docx").write_bytes(whole[:60] + bytes([whole[60] ^ 255]) + whole[61:])
    with pytest.raises(CorpusError, match=r"cannot be read as a DOCX document|not well-formed"):
        texts_of(tmp_path / "c.docx")


def test_a_text_without_end_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_TEXT", 1000)
    with pytest.raises(CorpusError, match=r"a\.html: contains a text of more than"):
        texts_of(write(tmp_path / "a.html", "<p>\n" + "word <b>word</b>\n" * 200))


def test_nested_and_unfinished_tags_take_no_time(tmp_path):
    for number, unit in enumerate(("<!--", "<div>", "<a ", "<b><p>")):
        path = write(tmp_path / f"{number}.html", "<p>one</p>" + unit * 20_000)
        assert texts_of(path)[0] == "one"


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lxml", None)
    with pytest.raises(MissingExtraError, match=r"isoglot\[documents\]"):
        texts_of(write(tmp_path / "a.html", PAGE))
