"""A MediaWiki XML dump as a stream of pages, with any compression, one page in memory at a time.

Truncated dumps are common (a sample, an interrupted download): their complete pages are read and a warning is
reported. A file that is not a dump, or is damaged in the middle, is an error that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from isoglot.core.errors import CorpusError
from isoglot.core.numbers import whole
from isoglot.data.files import CutShortError
from isoglot.data.xml_stream import read_events
from isoglot.wikipedia.titles import WIKIS, Names, find_language

T = TypeVar("T")

# Elements whose text is kept until the page is complete.
_FIELDS = frozenset({"page", "title", "ns", "text", "dbname", "base", "namespace"})
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
    code, equals, file = name.partition("=")
    path = Path(file if equals and not Path(name).exists() else name)
    wanted = code.strip().lower().replace("_", "-") if path != Path(name) else ""
    head = _Head()
    next(_read(path, head), None)
    wiki = wanted or head.find_wiki(project, path)
    return Dump(path, Names(wiki, head.namespaces, head.first_letter), find_language(wiki, file=path))


def pages(dump: Dump, report: Callable[[str], None]) -> Iterator[Page]:
    """The complete pages in order. `report` is called once if the dump is truncated.

    Raises `CorpusError` with the line for malformed XML (see `read_events`) and for a namespace without a number.
    """
    yield from filter(None, until_cut(_read(dump.path, _Head()), report))


def until_cut(items: Iterator[T], report: Callable[[str], None]) -> Iterator[T]:
    """The items of a file; if it is truncated after one of them, `report` is called instead of an error."""
    has_started = False
    try:
        for item in items:
            has_started = True
            yield item
    except CutShortError as error:
        if not has_started:
            raise
        report(str(error).partition(";")[0] + "; the complete part was read")


@dataclass(slots=True)
class _Head:
    """What stands in a dump before its pages."""

    lang: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, int] = field(default_factory=dict)
    first_letter: bool = True

    def find_wiki(self, project: str, path: Path) -> str:
        """Code of the wiki of the project. Raises `CorpusError` if the header names none."""
        base = self.fields.get("base", "")
        if match := re.match(rf"https?://([a-z-]+)\.(?:m\.)?{project}\.org/", base):
            return match[1]
        if base:
            host = base.split("/")[2] if base.count("/") > 1 else base
            raise CorpusError(f"is a dump of {host}, not of a {project.title()}; pass CODE=FILE to read it", file=path)
        name = self.fields.get("dbname", "").removesuffix("wiki" if project == "wikipedia" else project)
        for code in (name.replace("_", "-"), self.lang):
            if code in WIKIS:
                return code
        raise CorpusError(f"does not name its {project.title()}; pass CODE=FILE, for German de=FILE", file=path)

    def add_namespace(self, name: str, attributes: Mapping[str, str], path: Path, line: int) -> None:
        """Add a name of a namespace. Raises `CorpusError` if it has no number."""
        number = _number(attributes.get("key", "0"), "the key of a <namespace>", path, line)
        if name:
            self.namespaces[_normal(name)] = number
        if number == 0:
            self.first_letter = attributes.get("case", "first-letter") == "first-letter"


def _read(path: Path, head: _Head) -> Iterator[Page | None]:
    """The pages, and None before each."""
    fields = head.fields
    for tag, line, text, attributes in _read_tags(path):
        if tag == "mediawiki":
            head.lang = attributes.get("xml:lang", "")
        elif tag == "page":
            fields = {}
            yield None
        elif tag == "/page":
            yield _page(fields, head, path, line)
        elif tag == "/namespace":
            head.add_namespace(text, attributes, path, line)
        elif tag[0] == "/":
            fields[tag[1:]] = attributes.get("title", "") if tag == "/redirect" else text


def _read_tags(path: Path) -> Iterator[tuple[str, int, str, Mapping[str, str]]]:
    """Each tag (`ns`, `/ns`), its line, the text before it, and the attributes of the last one that opened."""
    pieces: list[str] = []
    opened: Mapping[str, str] | None = None
    for kind, line, text, attributes in read_events(path, _FIELDS):
        if kind == "text":
            pieces.append(text)
            continue
        if opened is None and text != "mediawiki":
            advice = "pass one such as pages-articles.xml.bz2"
            raise CorpusError(f"not a MediaWiki XML dump: its first element is <{text[:40]}>; {advice}", file=path)
        opened = attributes if opened is None or kind == "start" else opened
        yield text if kind == "start" else f"/{text}", line, "".join(pieces), opened
        pieces = []


def _page(fields: dict[str, str], head: _Head, path: Path, line: int) -> Page:
    title, text, target = fields.get("title", ""), fields.get("text", ""), fields.get("redirect")
    # Dumps before 2012 have no <ns> and no redirect target: these come from the title and the text.
    namespace = fields.get("ns", "").strip()
    number = head.namespaces.get(_normal(title.partition(":")[0]), 0)
    number = _number(namespace, "<ns>", path, line) if namespace else number
    if not target and (match := _REDIRECT[target is None].match(text)):
        target = match[1]
    return Page(title, number, target, text)


def _normal(namespace: str) -> str:
    return namespace.strip().lower().replace(" ", "_")


def _number(text: str, what: str, path: Path, line: int) -> int:
    try:
        return whole(text)
    except ValueError as error:
        raise CorpusError(f"{what} must be the number of a namespace, but {error}", file=path, line=line) from None
