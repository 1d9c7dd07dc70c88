"""A MediaWiki XML dump as a stream of pages, whatever it is packed in, held one page at a time.

What is special here: a dump that ends too early is usual (a sample, a transfer that was cut), so its complete pages
count and the end is a remark; what is no dump at all, or damaged in the middle, is an error with its line. The
parser is expat itself, which reads UTF-16 by its byte order mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from isoglot.data.files import read_blocks
from isoglot.data.wikipedia.titles import WIKIS, Names, language_of
from isoglot.errors import CorpusError

_KEPT = frozenset({"title", "ns", "text", "dbname", "base", "namespace"})
# The target of a redirect: in a page that is said to be one, and in one that is not.
_REDIRECT = (re.compile(r"\s*#\w+\s*:?\s*\[\[([^\]|#\n]+)"), re.compile(r"(?i)\s*#redirect\s*:?\s*\[\[([^\]|#\n]+)"))


@dataclass(frozen=True, slots=True)
class Page:
    """One page in its last revision; `redirect` is the title that it leads to."""

    title: str
    namespace: int
    redirect: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump and what its head says: names of its Wikipedia, and the house code of the language."""

    path: Path
    names: Names
    lang: str


def open_dump(name: str) -> Dump:
    """The dump of `FILE`, or of `CODE=FILE` where the file does not tell its Wikipedia rightly.

    Raises `CorpusError` for a file that is missing, empty, no MediaWiki dump, or not of a Wikipedia.
    """
    code, equals, rest = name.partition("=")
    path = Path(rest if equals and not Path(name).exists() else name)
    wanted = code.strip().lower().replace("_", "-") if path != Path(name) else ""
    reader = _Reader(path)
    for _ in reader.pages(lambda _words: None, head=True):
        break
    wiki = wanted or reader.wiki()
    return Dump(path, Names(wiki, reader.namespaces, reader.first_letter), language_of(wiki, file=path))


def pages(dump: Dump, remark: Callable[[str], None]) -> Iterator[Page]:
    """The complete pages in order. `remark` is told once if the dump ends too early.

    Raises `CorpusError` for XML that is not well-formed, with the line.
    """
    yield from _Reader(dump.path).pages(remark)


class _Reader:
    """Events of expat to pages; knows the head when the first page begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fields: dict[str, str] = {}
        self._pieces: list[str] | None = None
        self._attributes: dict[str, str] = {}
        self._ready: list[Page] = []
        self._root = ""
        self._depth = 0
        self._in_page = False
        self._head: dict[str, str] = {}
        self._begun = False
        self.namespaces: dict[str, int] = {}
        self.first_letter = True

    def pages(self, remark: Callable[[str], None], *, head: bool = False) -> Iterator[Page]:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        for block in self._blocks(remark):
            self._feed(parser, block)
            if head and self._begun:
                return
            yield from self._ready
            self._ready.clear()
        if not self._root:
            raise self._no_dump("it holds no XML")
        if self._depth:
            remark(f"{self._path}: ends before its end, after line {parser.CurrentLineNumber}; what is whole was read")

    def wiki(self) -> str:
        """Code of the Wikipedia, from the head. Raises `CorpusError` where it names none."""
        base, name = self._head.get("base", ""), self._head.get("dbname", "")
        if found := re.match(r"https?://([a-z-]+)\.(?:m\.)?wikipedia\.org/", base):
            return found[1]
        if base:
            host = base.split("/")[2] if base.count("/") > 1 else base
            raise CorpusError(
                f"is a dump of {host}, not of a Wikipedia; to read it as one of German, write de=FILE", file=self._path
            )
        for code in (name.removesuffix("wiki").replace("_", "-"), self._head.get("lang", "")):
            if code in WIKIS:
                return code
        raise CorpusError("does not say of which Wikipedia it is; write, for German, de=FILE", file=self._path)

    def _blocks(self, remark: Callable[[str], None]) -> Iterator[bytes]:
        try:
            yield from read_blocks(self._path)
        except CorpusError as error:
            if not self._begun:
                raise
            remark(str(error).partition(";")[0] + "; what is whole was read")
            self._depth = 0  # said already

    def _feed(self, parser: expat.XMLParserType, block: bytes) -> None:
        try:
            parser.Parse(block, False)
        except expat.ExpatError as error:
            if not self._begun:
                raise self._no_dump(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
            why = expat.ErrorString(error.code)
            problem = f"not well-formed XML, or not in its encoding ({why}); convert it to UTF-8, or copy it again"
            raise CorpusError(problem, file=self._path, line=error.lineno) from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if not self._root:
            self._root = name
            if name != "mediawiki":
                raise self._no_dump(f"its first element is <{name[:40]}>")
            self._head["lang"] = attributes.get("xml:lang", "")
        if name == "page":
            self._begun = self._in_page = True
            self._fields = {}
        elif name == "redirect":
            self._fields["redirect"] = attributes.get("title", "")
        elif name in _KEPT:
            self._pieces, self._attributes = [], attributes

    def _text(self, data: str) -> None:
        if self._pieces is not None:
            self._pieces.append(data)

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name in _KEPT and self._pieces is not None:
            value, self._pieces = "".join(self._pieces), None
            if name == "namespace":
                self._namespace(value)
            elif self._in_page:
                self._fields[name] = value
            else:
                self._head[name] = value
        elif name == "page":
            self._in_page = False
            self._ready.append(self._page(self._fields))

    def _page(self, fields: dict[str, str]) -> Page:
        title, text, target = fields.get("title", ""), fields.get("text", ""), fields.get("redirect")
        # Dumps before 2012 tell the namespace by the title alone, and the target of a redirect by the text.
        prefix = title.partition(":")[0].strip().lower().replace(" ", "_")
        number = fields.get("ns", "").strip() or self.namespaces.get(prefix, 0)
        if not target and (found := _REDIRECT[target is None].match(text)):
            target = found[1]
        return Page(title, int(number), target, text)

    def _namespace(self, name: str) -> None:
        number = int(self._attributes.get("key", "0"))
        if name:
            self.namespaces[name.strip().lower().replace(" ", "_")] = number
        if number == 0:
            self.first_letter = self._attributes.get("case", "first-letter") == "first-letter"

    def _no_dump(self, why: str) -> CorpusError:
        return CorpusError(
            f"is no MediaWiki XML dump: {why}; give a file such as pages-articles.xml.bz2", file=self._path
        )
