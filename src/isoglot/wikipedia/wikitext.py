"""Wikitext to paragraphs of plain text with the exact position of each link.

The text is built once, in its final form, and a link's position is recorded while its words are appended. Nothing is
searched for afterwards, so offsets are exact. Templates, tables, references, files, categories, headings and formulas
are left out; brackets left empty by them are removed, and the links after them shifted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isoglot.errors import IsoglotError
from isoglot.wikipedia.titles import ARTICLE, HIDDEN, Names, resolve

_UNREAD = """
    caption categorytree ce chem gallery graph hiero imagemap includeonly indicator inputbox mapframe maplink math
    pre ref references rp rt score script section source style syntaxhighlight table td templatedata templatestyles th
    timeline tr video"""
_LEFT_OUT = frozenset(_UNREAD.split())
_BLOCKS = {"blockquote", "br", "center", "dd", "div", "dl", "dt", "hr", "li", "ol", "p", "poem", "ul"}
_CLOSING = ",.;:!?)،؛؟।、。"  # no space is left before these where something was left out
_WORDS = re.compile(r"\s+|\S+")
_SWITCH = re.compile(r"__\w+?__")
# An empty pair of brackets with the space before it, or a separator that follows an opening bracket.
_EMPTY = re.compile(
    r"(?:\s|^)[(\[][\s,;:،؛–—-]*[)\]]|[（［「『][\s,;:，；、/–—-]*[）］」』]|(?<=[(（])[\s,;:،؛，；、]+"
)


@dataclass(frozen=True, slots=True)
class Link:
    """`text[start:end]` of its paragraph links to the article `title` (normal form; redirects not yet resolved)."""

    start: int
    end: int
    title: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text on one line, without double spaces, and its links in order."""

    text: str
    links: tuple[Link, ...]


class UnreadableError(IsoglotError):
    """The parser gave up on a page."""


def read(text: str, names: Names) -> tuple[list[Paragraph], list[str]]:
    """Paragraphs and list items of an article, and the titles of all links in its markup, tables and templates too.

    Raises `UnreadableError` where the parser does, `IsoglotError` when the parser is not installed.
    """
    parse = _parser()
    try:
        code = parse(text)
        builder = _Builder(names)
        builder.walk(code)
        builder.end()
        titles = [resolve(str(link.title), names) for link in code.filter_wikilinks()]
    except (RecursionError, ValueError, RuntimeError) as error:
        raise UnreadableError(f"the page cannot be parsed: {type(error).__name__}") from error
    return builder.paragraphs, [title for kind, title in titles if kind == ARTICLE]


def _parser() -> Any:
    try:
        import mwparserfromhell
    except ImportError as error:
        raise IsoglotError('wikitext needs mwparserfromhell: pip install "isoglot[wikipedia]"') from error
    return mwparserfromhell.parse


class _Builder:
    """The paragraph that is being built and those that are done."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._pieces: list[str] = []
        self._length = 0
        self._links: list[Link] = []
        self._space, self._feeds, self._in_list, self._hole = False, 0, False, False
        self.paragraphs: list[Paragraph] = []

    def walk(self, code: Any) -> None:
        """Append what is shown of parsed wikitext."""
        for node in code.nodes:
            kind = type(node).__name__
            if kind == "Text":
                self._append(_SWITCH.sub("", str(node)) if "__" in node else str(node))
            elif kind == "Wikilink":
                self._wikilink(node)
            elif kind == "Tag":
                self._tag(node)
            elif kind == "HTMLEntity":
                self._append(node.normalize())
            elif kind == "ExternalLink" and node.brackets and node.title is not None:
                self.walk(node.title)
            elif kind == "Heading":
                self.end()
            else:  # a template, an argument, a comment, an address
                self._hole = True

    def end(self) -> None:
        """The paragraph is complete."""
        if self._pieces:
            text, links = _without_empty_brackets("".join(self._pieces), self._links)
            if text:
                self.paragraphs.append(Paragraph(text, tuple(links)))
        self._pieces, self._length, self._links = [], 0, []
        self._space, self._feeds, self._in_list, self._hole = False, 0, False, False

    def _append(self, text: str) -> None:
        for word in _WORDS.findall(text):
            if not word.isspace():
                self._push(word)
                continue
            self._space = True
            self._feeds += word.count("\n")
            # A line of a list ends with the line; a template alone on its line leaves a blank one.
            if self._feeds > 1 or (self._feeds and self._in_list):
                self.end()

    def _push(self, word: str) -> None:
        if self._space and self._length and not (self._hole and word[0] in _CLOSING):
            self._pieces.append(" ")
            self._length += 1
        self._pieces.append(word)
        self._length += len(word)
        self._space, self._feeds, self._hole = False, 0, False

    def _wikilink(self, node: Any) -> None:
        target = str(node.title)
        kind, title = resolve(target, self._names)
        if kind == HIDDEN:
            return
        pieces, start, done = len(self._pieces), self._length, len(self.paragraphs)
        if node.text is None:
            if "{" not in target:
                self._append(html.unescape(target).strip().removeprefix(":"))
        else:
            self.walk(node.text)
        whole = len(self.paragraphs) == done and len(self._pieces) > pieces
        if kind == ARTICLE and whole and "{" not in target:
            self._links.append(Link(start + (self._pieces[pieces] == " "), self._length, title))

    def _tag(self, node: Any) -> None:
        name = str(node.tag).strip().lower()
        if name in _LEFT_OUT:
            self._hole = True
            return
        if name in _BLOCKS:
            self.end()
            self._in_list = node.wiki_markup is not None and name != "hr"
        if node.contents is not None:
            self.walk(node.contents)
            if name in _BLOCKS and not node.wiki_markup:
                self.end()


def _without_empty_brackets(text: str, links: list[Link]) -> tuple[str, list[Link]]:
    cuts = [found.span() for found in _EMPTY.finditer(text)]
    if not cuts:
        return text, links
    kept = "".join(_between(text, cuts))
    shift = len(kept) - len(kept.lstrip())

    def moved(position: int) -> int:
        return position - shift - sum(min(position, end) - start for start, end in cuts if start < position)

    places = [Link(moved(link.start), moved(link.end), link.title) for link in links]
    return kept.strip(), [link for link in places if 0 <= link.start < link.end <= len(kept.strip())]


def _between(text: str, cuts: list[tuple[int, int]]) -> Iterator[str]:
    last = 0
    for start, end in cuts:
        yield text[last:start]
        last = end
    yield text[last:]
