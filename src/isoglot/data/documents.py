"""The texts of documents: DOCX, HTML, Markdown and subtitles.

A text is a paragraph, a heading, a cell of a table, an item of a list, or the words of one subtitle, on one line:
white space inside it is layout and becomes single spaces; no-break and ideographic spaces stay. A line break ends a
text. Code blocks, scripts and styles are left out, and so are pronunciations beside characters (ruby), and notes,
headers and footers of DOCX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError, naming_extras
from isoglot.data.files import first_bytes, read_lines, suffix_of
from isoglot.data.xml_stream import LONGEST_TEXT, read_events

LARGEST = 1 << 28  # bytes of the text of a DOCX document when unpacked, and characters of Markdown
_LONGEST_PARAGRAPH = 100_000  # characters; of Markdown that is not one, a parser's time is quadratic
_INLINE = frozenset(
    ["a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img",
     "ins", "kbd", "label", "mark", "nobr", "picture", "q", "rb", "rp", "rt", "ruby", "s", "samp", "script",
     "small", "source", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"]
)  # fmt: skip
_HIDDEN = frozenset(("rp", "rt", "script", "style", "template"))  # inside a paragraph as well as between two
_FRONT_MATTER = re.compile(r"\A---\n(?!\s*\n)(?:.*\n)*?(?:---|\.\.\.)\n")  # a blank line first: it is a rule
_BREAK = re.compile(r"<br\b", re.IGNORECASE)
_LAYOUT = re.compile(r"[ \t\r\n\f\v]+")
_TIMES = re.compile(r"\s*(?:\d+:)?\d+:\d+[.,]\d+\s*-->\s*(?:\d+:)?\d+:\d+[.,]\d+")
_TAGS = re.compile(r"</?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")  # of HTML, WebVTT and SubStation Alpha
_DOCX_TEXT = "word/document.xml"
_DOCX_BORDERS = ("w:p", "w:br", "w:cr")
_DOCX_LETTERS = {"w:tab": " ", "w:ptab": " ", "w:noBreakHyphen": "-"}
_DOCX_REPEATED = {"mc:Fallback", "w:moveFrom", "w:rt"}  # for older programs; what stands elsewhere now; pronunciation
_BLOCK = 1 << 16


def collapse(text: str) -> str:
    """The text with single spaces as layout, and none around it; no-break and ideographic spaces stay. Empty: blank."""
    return _LAYOUT.sub(" ", text).strip(" ") if text.strip() else ""


class _Gathered:
    """The texts of a document while it is parsed."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._pieces, self._size, self._done = path, list[str](), 0, list[str]()

    def add(self, piece: str) -> None:
        """Append to the present text. Raises `CorpusError` for one that grows too long."""
        self._size += len(piece) + 1
        if self._size > LONGEST_TEXT:
            problem = f"contains a text of more than {LONGEST_TEXT >> 20} Mi characters; cut it"
            raise CorpusError(problem, file=self._path)
        self._pieces.append(piece)

    def end(self) -> None:
        """The present text is complete."""
        if text := collapse("".join(self._pieces)).strip():
            self._done.append(text)
        self._pieces, self._size = [], 0

    def take(self) -> list[str]:
        """The texts that are complete, once."""
        done, self._done = self._done, []
        return done


class _Page:
    """What lxml calls for the tags and the text of a page."""

    def __init__(self, path: str | Path) -> None:
        self.texts, self._hidden = _Gathered(path), 0

    def start(self, tag: str, _attributes: object) -> None:
        self._hidden += tag in _HIDDEN
        if tag not in _INLINE:
            self.texts.end()
        self.data(" " if tag == "img" else "")

    def end(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN
        if tag not in _INLINE:
            self.texts.end()

    def data(self, text: str) -> None:
        if not self._hidden:
            self.texts.add(text)

    def close(self) -> None:
        self.texts.end()


def read_html(path: str | Path) -> Iterator[str]:
    """The texts of a page in UTF-8; block elements and line breaks are borders. Raises as `read_lines` does."""
    with naming_extras():
        from lxml import etree
    page = _Page(path)
    parser = etree.HTMLParser(target=page, encoding="utf-8", no_network=True)
    for _, line in read_lines(path):
        parser.feed(f"{line}\n".encode())
        yield from page.texts.take()
    parser.close()
    yield from page.texts.take()


def read_markdown(path: str | Path) -> Iterator[str]:
    """The texts of Markdown (CommonMark with tables), without blocks of code and of HTML, and without front matter.

    Raises `CorpusError` as `read_lines` does, and for a paragraph of more than 100,000 characters.
    """
    from markdown_it import MarkdownIt

    lines, size, paragraph = list[str](), 0, 0
    for number, line in read_lines(path):
        size += len(line) + 1
        paragraph = paragraph + len(line) if line.strip() else 0
        if paragraph > _LONGEST_PARAGRAPH or size > LARGEST:
            what = "paragraph" if paragraph > _LONGEST_PARAGRAPH else "document"
            raise CorpusError(f"a {what} too long for Markdown; save plain text as .txt", file=path, line=number)
        lines.append(line)
    text = _FRONT_MATTER.sub("", "\n".join([*lines, ""]))
    texts = _Gathered(path)
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for part in token.children or ():
            if part.type == "hardbreak" or (part.type == "html_inline" and _BREAK.match(part.content)):
                texts.end()
            elif part.type != "html_inline":
                texts.add(" " if part.type == "softbreak" else part.content)
        texts.end()
    yield from texts.take()


def read_subtitles(path: str | Path) -> Iterator[str]:
    """The words of each subtitle of SRT or WebVTT, without tags.

    Raises `CorpusError` for words before the first times of SRT, and for a file without any.
    """
    has_times, words, number = False, list[str](), ""
    has_blocks = is_outside = suffix_of(path) == ".vtt"  # blocks end with a blank line; some have no subtitle
    for _, text in read_lines(path):
        if _TIMES.match(text):
            is_outside = False
            words = words[:-1] if words and words[-1].strip() == number else words
            if has_times and (joined := _words(words)):
                yield joined
            elif not has_times and any(map(str.strip, words)):
                raise CorpusError("text before the first times; is it a subtitle file (SRT)?", file=path, line=1)
            has_times, words = True, []
        elif has_blocks and not text.strip():
            is_outside = True
        elif not is_outside:
            words.append(text)
            number = text.strip() if text.strip().isdigit() and not has_blocks else number
    if not has_times:
        raise CorpusError("contains no times such as 00:00:01,000 --> 00:00:02,000; is it SRT or WebVTT?", file=path)
    if joined := _words(words):
        yield joined


def _words(lines: list[str]) -> str:
    return collapse(unescape(_TAGS.sub("", " ".join(lines)))).strip()


def read_docx(path: str | Path) -> Iterator[str]:
    """The texts of a DOCX document; deleted text of tracked changes is left out.

    Raises `CorpusError` for a file that is not DOCX or damaged, of more than `LARGEST` bytes, and with entities.
    """
    from zipfile import BadZipFile, ZipFile
    from zlib import error as zlib_error

    first_bytes(path)  # raises for a missing file, a folder or a pipe
    try:
        with ZipFile(path) as archive:
            size = archive.getinfo(_DOCX_TEXT).file_size
            if size > LARGEST:
                problem = f"has {size >> 20:,} MiB of text when unpacked, more than {LARGEST >> 20:,}; divide it"
                raise CorpusError(problem, file=path)
            with archive.open(_DOCX_TEXT) as member:
                yield from _docx_texts(path, member)
    except (BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError, zlib_error) as error:
        # zipfile raises these for damaged and for encrypted files
        raise CorpusError(f"cannot be read as a DOCX document ({error}); save it again", file=path) from error


def _docx_texts(path: str | Path, member: Any) -> Iterator[str]:
    texts, within = _Gathered(path), list[str]()
    for kind, _, text, _ in read_events(path, ["p"], blocks=iter(lambda: member.read(_BLOCK), b"")):
        if kind == "start":
            within.append(text)
            texts.add(_DOCX_LETTERS.get(text, ""))
        elif kind == "end":
            within.pop()
        elif within[-1] == "w:t" and _DOCX_REPEATED.isdisjoint(within):
            texts.add(text)
        if kind != "text" and text in _DOCX_BORDERS:
            texts.end()
            yield from texts.take()
