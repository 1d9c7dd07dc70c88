"""Estimates, in one pass over a page, how long the parser of wikitext would take for it.

The parser follows each opening mark (`{{`, `[[`, `<ref>`, `{|`, `''`) to the mark that closes it. Where none does, it
has read the rest of the page in vain, takes the mark for text and continues behind it, so its time is quadratic in the
number of such marks; it looks for the end of a comment again each time. Tables in tables and addresses in brackets of
links are read twice at each level. Each `=` of a heading is one call deeper on the stack of the process, which dies at
some 50,000. Vandalised pages have thousands of such marks, others a few.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from isoglot.core.errors import naming_extras

MOST_REREAD = 20_000_000  # characters that are read in vain: seconds
DEEPEST = 90  # elements in each other, and `=` in a heading; at 100 the parser gives up elements that are closed

_MARKS = re.compile(
    r"""
    <!-- | </(?P<end>[a-z]\w*) | <(?P<name>[^\s{}\[\]<>|=&'"\#*;:/\\!-]+)(?=[\s>]|/>) | /?> | '{2,} | {{+ | }}+
    | ^[^\S\n]*{\| | ^[^\S\n]*\|}+ | \[\[ | \[(?=[\w.+-]*:|//) | ]+ | ^=+ | =+ | \n
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_ADDRESS = re.compile(r"//|[\w.+-]+:")
_EMPTY = {"br", "hr", "img", "link", "meta", "wbr"}
_STYLES = ("''", "'''")
_OPTIONAL_END = {"<dd", "<dt", "<li", "<td", "<th", "<tr"}


TOO_DEEP, TOO_BROKEN = "with too many elements in each other", "with too many elements that do not end"


def find_damage(text: str) -> str | None:
    """Why the parser would take too long for a page, or None."""
    scan = Scan(text)
    return TOO_DEEP if scan.depth > DEEPEST else TOO_BROKEN if scan.reread > MOST_REREAD else None


@dataclass(slots=True)
class _Element:
    """Open elements of one kind, directly in each other: their mark, where they begin, their braces or `=`."""

    mark: str
    starts: list[int]
    size: int = 1


class Scan:
    """The open elements at a place of the page, and what failed before it.

    `reread`: characters that the parser reads in vain. `depth`: most elements in each other.
    """

    def __init__(self, text: str) -> None:
        with naming_extras():
            from mwparserfromhell.definitions import is_parsable
        self._is_parsable = is_parsable
        self.reread, self.depth = 0, 0
        self._text, self._open = text, list[_Element]()
        self._skip = 0  # the end of a comment or of an element that is not parsed
        self._absent = set[str]()  # ends that do not follow any more
        self._failures, self._comments = 0, 0
        handlers = {
            "<": self._tag, "/": self._tag_end, ">": self._tag_end, "'": self._style, "{": self._open_braces,
            "}": self._close_braces, "|": self._close_table, "[": self._open_bracket, "]": self._close_brackets,
            "=": self._equals, "\n": self._line_end,
        }  # fmt: skip
        for mark in _MARKS.finditer(text):
            if mark.start() < self._skip:
                continue
            word = mark[0].lstrip() or "\n"
            if self._top() != "<" or word[0] in "<>/{}[]":  # other marks are text inside a tag
                handlers[word[0]](word, mark)
            if self.depth > DEEPEST:
                return
        self._open = [element for element in self._open if element.mark not in _OPTIONAL_END]
        self._fail(0, len(text))
        self.reread += self._comments * (self._failures + 1)

    def _top(self) -> str:
        return self._open[-1].mark if self._open else ""

    def _push(self, mark: str, start: int, size: int = 1) -> None:
        """Add an element; tags as those around them, such as rows and cells without ends, are kept together."""
        for outer in reversed(self._open):
            if outer.mark == mark and mark[0] == "<":
                outer.starts.append(start)
                return
            if outer.mark not in _OPTIONAL_END:
                break
        self._open.append(_Element(mark, [start], size))
        self.depth = max(self.depth, len(self._open))

    def _fail(self, index: int, end: int) -> None:
        """The elements from this index on have no end: the parser has read up to `end` in vain."""
        for element in self._open[index:]:
            self._failures += len(element.starts)
            self.reread += sum(end - start for start in element.starts)
        del self._open[index:]

    def _find(self, *marks: str) -> int:
        """The index of the innermost element of these kinds; -1: there is none."""
        return next((index for index in reversed(range(len(self._open))) if self._open[index].mark in marks), -1)

    def _close(self, index: int, end: int) -> None:
        """Close an element. If others are open in it, these read its end as text, and it may fail with them."""
        if index < len(self._open) - 1:
            self._fail(index, len(self._text))
            return
        element = self._open.pop()
        if element.mark in ("{|", "[//"):
            level = sum(outer.mark in ("{|", "[//") for outer in self._open)
            self.reread += (end - element.starts[0]) * (2**level - 1)

    def _skip_to(self, end: str, start: int) -> bool:
        """Skip what is not parsed; false: it has no end."""
        if end not in self._absent and (match := re.compile(end, re.IGNORECASE).search(self._text, start)):
            self._skip = match.end()
            return True
        self._absent.add(end)
        return False

    def _tag(self, word: str, mark: re.Match[str]) -> None:
        if word == "<!--":
            if not self._skip_to("-->", mark.end()):
                self._comments += len(self._text) - mark.start()
        elif mark["name"]:
            self._push("<", mark.start())
        elif self._top() not in ("<", *_STYLES):
            self._close_tag("<" + mark["end"].lower(), mark.end())

    def _close_tag(self, name: str, end: int) -> None:
        """An end of another name makes the elements up to that name fail, or all within the template, table or link."""
        index = len(self._open)
        while index and self._open[index - 1].mark.startswith("<"):
            index -= 1
            if self._open[index].mark == name:
                self._fail(index + 1, end)
                self._pop_tag()
                return
        self._fail(index, end)

    def _pop_tag(self) -> int:
        start = self._open[-1].starts.pop()
        if not self._open[-1].starts:
            self._open.pop()
        return start

    def _tag_end(self, word: str, mark: re.Match[str]) -> None:
        if self._top() != "<":
            return
        start = self._pop_tag()
        if self._find("<") >= 0:  # a tag inside a tag is read again as its text
            self.reread += mark.end() - start
        name = re.split(r"[\s/>]", self._text[start + 1 : start + 20], maxsplit=1)[0].lower()
        if word == "/>" or name in _EMPTY:
            return
        if self._is_parsable(name):
            self._push("<" + name, start)
        elif not self._skip_to(rf"</{name}\s*>", mark.end()):
            self._failures += 1
            self.reread += len(self._text) - start

    def _style(self, word: str, mark: re.Match[str]) -> None:
        ticks = min(len(word), 5)
        for style in {2: _STYLES[:1], 5: _STYLES}.get(ticks, _STYLES[1:]):
            index = self._find(style)
            if index >= 0 and all(element.mark in _STYLES for element in self._open[index:]):
                del self._open[index]
            else:
                self._push(style, mark.start())

    def _open_braces(self, word: str, mark: re.Match[str]) -> None:
        self._push(word[:2], mark.start(), len(word))

    def _close_braces(self, word: str, mark: re.Match[str]) -> None:
        size = len(word)
        while size > 1 and (index := self._find("{{")) >= 0:
            element = self._open[index]
            closed = min(size, element.size)
            if closed == 2 < element.size:  # the parser has looked for three before
                self._failures += 1
                self.reread += len(self._text) - element.starts[0]
            size -= closed
            element.size -= closed
            if element.size < 2:
                self._close(index, mark.end())
            elif index < len(self._open) - 1:
                self._fail(index + 1, len(self._text))

    def _close_table(self, word: str, mark: re.Match[str]) -> None:
        if (index := self._find("{|", "{{")) >= 0 and self._open[index].mark == "{|":
            self._close(index, mark.end())
            word = word[1:]
        self._close_braces(word[1:], mark)

    def _open_bracket(self, word: str, mark: re.Match[str]) -> None:
        address = word == "[[" and _ADDRESS.match(self._text, mark.end())
        self._push("[//" if address else word, mark.start(), len(word))

    def _close_brackets(self, word: str, mark: re.Match[str]) -> None:
        size = len(word)
        while size and (index := self._find("[", "[[", "[//")) >= 0 and size >= self._open[index].size:
            size -= self._open[index].size
            self._close(index, mark.end())

    def _equals(self, _word: str, mark: re.Match[str]) -> None:
        if self._top() == "=":
            self._open[-1].size += 1
            self.depth = max(self.depth, self._open[-1].size)
        elif mark.start() == 0 or self._text[mark.start() - 1] == "\n":
            self._push("=", mark.start())

    def _line_end(self, _word: str, mark: re.Match[str]) -> None:
        while self._top() in ("[", "="):
            self._fail(len(self._open) - 1, mark.end()) if self._top() == "[" else self._open.pop()
