"""Paragraphs with links to sentences with links.

The splitter's pieces are concatenated without gaps, so each has an exact position in the paragraph and a link belongs
to the piece that contains it. Sentence ends inside a link ("Yahoo! Inc.") or inside quotation marks that close later,
which splitters that look at the punctuation alone find, are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isoglot.errors import IsoglotError
from isoglot.wikipedia.wikitext import Link, Paragraph

TOO_SHORT, TOO_LONG, MARKUP, ONLY_LINKS = "too short", "too long", "with leftover markup", "of links only"

_MARKUP = re.compile(r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|''|</?[a-zA-Z]+[^<]*>|\|")
_TABLE = re.compile(r"\{\||\|-|\|\}")  # rows of a table that the parser did not see as one
_LEADING = " ,;:،؛、，；：·"  # separators left at the beginning where a template was removed
_LONGEST_QUOTATION = 200  # characters; in longer ones sentences end
_PAIRS = {"«": "»", "「": "」", "『": "』", "“": "”", "(": ")", "（": "）", "《": "》"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Minimum and maximum width of a sentence in columns: wide characters (Chinese, Japanese, Korean) take two."""

    least: int = 20
    most: int = 500


def split(paragraph: Paragraph, wiki: str) -> Iterator[tuple[str, list[Link]]]:
    """Each sentence without outer spaces and leading separators, with the links inside it.

    Link offsets are relative to the sentence.
    """
    text = paragraph.text
    edges = [0, *_edges(paragraph, wiki), len(text)]
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


def _edges(paragraph: Paragraph, wiki: str) -> list[int]:
    """Where sentences end inside the paragraph, ascending, none within a link or within quotation marks."""
    text, edges, place = paragraph.text, [], 0
    pieces = _segment()(wiki, text)
    if "".join(pieces) != text:
        return []
    for piece in pieces[:-1]:
        place += len(piece)
        if not (text[place - 1] == "." and text[place].isdigit()):  # decimals in digits that the splitter does not know
            edges.append(place)
    quotations = _quotations(text)
    barred = [(link.start, link.end) for link in paragraph.links] + quotations
    # A Japanese sentence continues in hiragana after a quotation that ends with a full stop: 「…。」と言った。
    barred += [(start, end + 1) for start, end in quotations if "\u3041" <= text[end : end + 1] <= "\u309f"]
    return [edge for edge in edges if not any(start < edge < end for start, end in barred)]


def _quotations(text: str) -> list[tuple[int, int]]:
    """Spans of brackets and quotation marks that are opened and closed in order."""
    spans: list[tuple[int, int]] = []
    opened: list[tuple[int, str]] = []
    for place, letter in enumerate(text):
        if letter in _PAIRS:
            opened.append((place, _PAIRS[letter]))
        elif opened and letter == opened[-1][1]:
            spans.append((opened.pop()[0], place + 1))
    return [(start, end) for start, end in spans if end - start <= _LONGEST_QUOTATION]


def _segment() -> Any:
    try:
        from sentencex import segment
    except ImportError as error:
        raise IsoglotError('sentences are split with sentencex: pip install "isoglot[wikipedia]"') from error
    return segment
