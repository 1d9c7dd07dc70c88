"""A MediaWiki XML dump as a stream of pages, with any compression, one page in memory at a time.

Truncated dumps are common (a sample, an interrupted download): their complete pages are read and a warning is
reported. A file that is not a dump, or is damaged in the middle, is an error that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.files import CutShortError
from isoglot.data.numbers import whole
from isoglot.data.xml_stream import Gathered, XmlError, XmlStream
from isoglot.wikipedia.titles import WIKIS, Names, language_of

_KEPT = frozenset({"title", "ns", "text", "dbname", "base", "namespace"})
# The target of a redirect: in a page marked as a redirect, and in one without the mark.
_REDIRECT = (
    re.compile(r"\s*#\w+\s*(?::\s*)?\[\[([^\]|#\n]+)"),
    re.compile(r"(?i)\s*#redirect\s*(?::\s*)?\[\[([^\]|#\n]+)"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page in its last revision; `redirect` is the title that it leads to."""

    title: str
    namespace: int
    redirect: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump and the contents of its header: names of its Wikipedia, and the language code."""

    path: Path
    names: Names
    lang: str


def open_dump(name: str, *, project: str = "wikipedia") -> Dump:
    """Open the dump `FILE`, or `CODE=FILE` where the file names the wrong wiki of the project or none.

    Raises `CorpusError` for a file that is missing, empty, not a MediaWiki dump, or not from the project.
    """
    code, equals, rest = name.partition("=")
    path = Path(rest if equals and not Path(name).exists() else name)
    wanted = code.strip().lower().replace("_", "-") if path != Path(name) else ""
    reader = _Reader(path)
    for _ in reader.pages(lambda _message: None, head=True):
        break
    wiki = wanted or reader.wiki(project)
    return Dump(path, Names(wiki, reader.namespaces, reader.first_letter), language_of(wiki, file=path))


def pages(dump: Dump, report: Callable[[str], None]) -> Iterator[Page]:
    """The complete pages in order. `report` is called once if the dump is truncated.

    Raises `CorpusError` with the line for malformed XML (see `XmlStream`) and for a namespace without a number.
    """
    yield from _Reader(dump.path).pages(report)


class _Reader:
    """Events of the XML to pages; knows the head when the first page begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = XmlStream(path, start=self._start, end=self._end, text=self._text)
        self._fields: dict[str, str] = {}
        self._gathered = Gathered(self._stream, "text")
        self._gathering = False
        self._attributes: dict[str, str] = {}
        self._ready: list[Page] = []
        self._root = ""
        self._in_page = False
        self._head: dict[str, str] = {}
        self._begun = False
        self.namespaces: dict[str, int] = {}
        self.first_letter = True

    def pages(self, report: Callable[[str], None], *, head: bool = False) -> Iterator[Page]:
        try:
            for _ in self._stream.blocks():
                if head and self._begun:
                    return
                yield from self._ready
                self._ready.clear()
        except CutShortError as error:
            if not self._begun:
                raise
            report(str(error).partition(";")[0] + "; the complete part was read")
            return
        except XmlError as error:
            if self._begun:
                raise
            raise self._no_dump(f"line {error.line}: {error.why}") from None
        if not self._root:
            raise self._no_dump("it contains no XML")
        if self._stream.depth:
            report(f"{self._path}: truncated after line {self._stream.line}; the complete part was read")

    def wiki(self, project: str) -> str:
        """Code of the wiki of the project, from the header. Raises `CorpusError` if the header names none."""
        base, name = self._head.get("base", ""), self._head.get("dbname", "")
        if found := re.match(rf"https?://([a-z-]+)\.(?:m\.)?{project}\.org/", base):
            return found[1]
        if base:
            host = base.split("/")[2] if base.count("/") > 1 else base
            raise CorpusError(
                f"is a dump of {host}, not of a {project.title()}; to read it as German, pass de=FILE", file=self._path
            )
        for code in (
            name.removesuffix("wiki" if project == "wikipedia" else project).replace("_", "-"),
            self._head.get("lang", ""),
        ):
            if code in WIKIS:
                return code
        raise CorpusError(f"does not name its {project.title()}; pass CODE=FILE, for German de=FILE", file=self._path)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
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
            self._gathering, self._attributes = True, attributes
            self._gathered.clear()

    def _text(self, data: str) -> None:
        if self._gathering:
            self._gathered.add(data)

    def _end(self, name: str) -> None:
        if name in _KEPT and self._gathering:
            value, self._gathering = self._gathered.take(), False
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
        # Dumps before 2012 have no <ns> and no redirect target: these come from the title and the text.
        prefix = title.partition(":")[0].strip().lower().replace(" ", "_")
        namespace = fields.get("ns", "").strip()
        number = self._number(namespace, "<ns>") if namespace else self.namespaces.get(prefix, 0)
        if not target and (found := _REDIRECT[target is None].match(text)):
            target = found[1]
        return Page(title, number, target, text)

    def _namespace(self, name: str) -> None:
        number = self._number(self._attributes.get("key", "0"), "the key of a <namespace>")
        if name:
            self.namespaces[name.strip().lower().replace(" ", "_")] = number
        if number == 0:
            self.first_letter = self._attributes.get("case", "first-letter") == "first-letter"

    def _number(self, text: str, what: str) -> int:
        try:
            return whole(text)
        except ValueError as error:
            raise self._stream.error(f"{what} must be the number of a namespace, but {error}; fix it") from None

    def _no_dump(self, why: str) -> CorpusError:
        return CorpusError(
            f"not a MediaWiki XML dump: {why}; pass a file such as pages-articles.xml.bz2", file=self._path
        )
