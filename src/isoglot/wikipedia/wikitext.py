"""Converts wikitext to paragraphs of plain text and to sentences, with the exact position of each link.

The text is built once, in its final form, and a link's position is recorded while its words are appended. Nothing is
searched for afterwards, so offsets are exact. Templates, tables, references, files, categories, headings and formulas
are left out; brackets left empty by them are removed, and the links after them shifted.

The splitter's pieces are concatenated without gaps, so each has an exact position in the paragraph and a link belongs
to the piece that contains it. Sentence ends inside a link ("Yahoo! Inc.") or inside quotation marks that close later,
which splitters that look at the punctuation alone find, are ignored.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from isoglot.core.arguments import PositiveInt
from isoglot.core.errors import IsoglotError, naming_extras
from isoglot.wikipedia.damage import find_damage
from isoglot.wikipedia.titles import ARTICLE, HIDDEN, Names, resolve

_LEFT_OUT = {  # beside the tags that the parser itself calls invisible
    "caption", "ce", "chem", "hiero", "includeonly", "indicator", "mapframe", "maplink", "pre", "ref", "references",
    "rp", "rt", "script", "source", "style", "syntaxhighlight", "table", "td", "templatestyles", "th", "tr", "video",
}  # fmt: skip
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
    """A page that is skipped, with the reason: "that cannot be parsed" and so on."""


def read(text: str, names: Names) -> tuple[list[Paragraph], list[str]]:
    """Paragraphs and list items of an article, and the titles of all links in its markup, tables and templates too.

    Raises `UnreadableError` where the parser does, and for damage with which it would take minutes.
    """
    with naming_extras():
        from mwparserfromhell import definitions, parse
    if damage := find_damage(text):
        raise UnreadableError(damage)
    try:
        code = parse(text)
        builder = _Builder(names, definitions.is_visible)
        builder.walk(code)
        builder.end()
        titles = [resolve(str(link.title), names) for link in code.filter_wikilinks()]
    except (RecursionError, ValueError, RuntimeError) as error:
        raise UnreadableError("that cannot be parsed") from error
    return builder.paragraphs, [title for kind, title in titles if kind == ARTICLE]


class _Builder:
    """The paragraph that is being built and those that are done."""

    def __init__(self, names: Names, is_visible: Callable[[str], bool]) -> None:
        self._names, self._is_visible = names, is_visible
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
        is_whole = len(self.paragraphs) == done and len(self._pieces) > pieces
        if kind == ARTICLE and is_whole and "{" not in target:
            self._links.append(Link(start + (self._pieces[pieces] == " "), self._length, title))

    def _tag(self, node: Any) -> None:
        name = str(node.tag).strip().lower()
        if name in _LEFT_OUT or not self._is_visible(name):
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
    cuts = [match.span() for match in _EMPTY.finditer(text)]
    if not cuts:
        return text, links
    starts, removed = [start for start, _ in cuts], [0, *accumulate(end - start for start, end in cuts)]
    remaining = _EMPTY.sub("", text)
    indent = len(remaining) - len(remaining.lstrip())

    def move(position: int) -> int:
        index = bisect_left(starts, position)
        inside = max(0, cuts[index - 1][1] - position) if index else 0
        return position - indent - removed[index] + inside

    moved = [Link(move(link.start), move(link.end), link.title) for link in links]
    remaining = remaining.strip()
    return remaining, [link for link in moved if 0 <= link.start < link.end <= len(remaining)]


TOO_SHORT, TOO_LONG, MARKUP, ONLY_LINKS = "too short", "too long", "with leftover markup", "of links only"

_MARKUP = re.compile(r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|''|</?[a-zA-Z][^<]*>|\|")
_TABLE = re.compile(r"\{\||\|-|\|\}")  # rows of a table that the parser did not see as one
_LEADING = " ,;:،؛、，；：·"  # separators left at the beginning where a template was removed
LONGEST_PARAGRAPH = 20_000  # characters; with many quotation marks, the splitter's time is quadratic
_LONGEST_QUOTATION = 200  # characters; in longer ones sentences end
_PAIRS = {"«": "»", "「": "」", "『": "』", "“": "”", "(": ")", "（": "）", "《": "》"}


@dataclass(frozen=True, slots=True)
class Limits:
    """The width of sentences in columns: wide characters (Chinese, Japanese, Korean) take two.

    least  minimum width of a sentence in columns; wide characters count two
    most   maximum width of a sentence in columns
    """

    least: PositiveInt = 20
    most: PositiveInt = 500


def split(paragraph: Paragraph, wiki: str) -> Iterator[tuple[str, list[Link]]]:
    """Each sentence without outer spaces and leading separators, with the links inside it.

    Link offsets are relative to the sentence. A paragraph of more than `LONGEST_PARAGRAPH` characters has none.
    """
    text = paragraph.text
    if len(text) > LONGEST_PARAGRAPH:
        return
    edges = [0, *_find_edges(paragraph, wiki), len(text)]
    inside: list[list[Link]] = [[] for _ in edges]
    for link in paragraph.links:
        inside[bisect_right(edges, link.start) - 1].append(link)
    for first, last, links in zip(edges, edges[1:], inside, strict=False):
        sentence = text[first:last]
        reach = links[0].start - first if links else len(sentence)
        start = first + reach - len(sentence[:reach].lstrip(_LEADING))
        yield text[start:last].rstrip(), [Link(link.start - start, link.end - start, link.title) for link in links]


def is_table(paragraph: Paragraph) -> bool:
    """Whether the paragraph contains rows of a table, whose cells are not sentences."""
    return _TABLE.search(paragraph.text) is not None


def fault(sentence: str, links: list[Link], limits: Limits) -> str | None:
    """Why a sentence is dropped (width, leftover markup, no letter outside its links), or None to keep it."""
    width = len(sentence) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in sentence)
    if width < limits.least:
        return TOO_SHORT
    if width > limits.most:
        return TOO_LONG
    if _MARKUP.search(sentence):
        return MARKUP
    ends = [0, *(link.end for link in links)]
    starts = [*(link.start for link in links), len(sentence)]
    outside = (sentence[end:start] for end, start in zip(ends, starts, strict=True))
    return None if any(letter.isalpha() for piece in outside for letter in piece) else ONLY_LINKS


def _find_edges(paragraph: Paragraph, wiki: str) -> Iterator[int]:
    """Where sentences end inside the paragraph, ascending, none within a link or within quotation marks."""
    with naming_extras():
        from sentencex import segment
    text = paragraph.text
    pieces = segment(wiki, text)
    if "".join(pieces) != text:
        return
    quotations = _find_quotations(text)
    unbroken = [(link.start, link.end) for link in paragraph.links] + quotations
    # A Japanese sentence continues in hiragana after a quotation that ends with a full stop: 「…。」と言った。
    unbroken += [(start, end + 1) for start, end in quotations if "\u3041" <= text[end : end + 1] <= "\u309f"]
    unbroken.sort(reverse=True)
    place, unbroken_until = 0, 0
    for piece in pieces[:-1]:
        place += len(piece)
        while unbroken and unbroken[-1][0] < place:
            unbroken_until = max(unbroken_until, unbroken.pop()[1])
        decimal = text[place - 1] == "." and text[place].isdigit()  # in digits that the splitter does not know
        if unbroken_until <= place and not decimal:
            yield place


def _find_quotations(text: str) -> list[tuple[int, int]]:
    """Spans of brackets and quotation marks that are opened and closed in order, without long ones."""
    spans: list[tuple[int, int]] = []
    opened: list[tuple[int, str]] = []
    for place, letter in enumerate(text):
        if letter in _PAIRS:
            opened.append((place, _PAIRS[letter]))
        elif opened and letter == opened[-1][1]:
            spans.append((opened.pop()[0], place + 1))
    return [(start, end) for start, end in spans if end - start <= _LONGEST_QUOTATION]
