"""TMX 1.4, the exchange format of translation memories, read as a stream: memory does not grow with the file.

Inline tags within a segment are flattened: text that is highlighted (`hi`) or marked by tags this format does not
define is kept; what stands inside `bpt`, `ept`, `it`, `ph` and `ut` is code of the original document, not language,
and is dropped. White space inside a segment is layout and becomes single blanks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from isoglot.data.groups import Group
from isoglot.data.languages import OnUnknown, canonical_or_skip
from isoglot.data.xml_stream import Gathered, XmlStream
from isoglot.errors import CorpusError

_CODE = {"bpt", "ept", "it", "ph", "ut"}
_LAYOUT = re.compile(r"[ \t\r\n]+")
_LANG = ("xml:lang", "lang")


def read_tmx(
    path: str | Path,
    *,
    on_unknown_language: OnUnknown = "error",
    counts: Counter[str] | None = None,
    keep_ids: bool = False,
) -> Iterator[Group]:
    """One group per translation unit; segments without text are left out.

    With `keep_ids`, the `tuid` of a unit is the `key` of its group.
    With `on_unknown_language = "skip"`, segments in a language that is not known are left out and counted. Units
    without any text are counted in `counts["empty"]`. The encoding is the one the file declares. Raises `CorpusError`
    with the line for what `XmlStream` rejects, truncated XML, a version without a language, and unknown languages, and
    for a file without units.
    """
    counts = Counter() if counts is None else counts
    units = _Units(path, counts if on_unknown_language == "skip" else None, keep_ids=keep_ids)
    for _ in units.stream.blocks():
        for group in units.ready:
            if group.texts:
                yield group
            else:
                counts["empty"] += 1
        units.ready.clear()
    units.stream.close()
    if not units.number:
        raise CorpusError("contains no translation unit <tu>; is it a TMX file?", file=path)


class _Units:
    """Converts XML events to groups: a `tu` contains `tuv`s; the first `seg` of a `tuv` is its text."""

    def __init__(self, path: str | Path, skipped: Counter[str] | None, *, keep_ids: bool) -> None:
        self.skipped, self.keep_ids = skipped, keep_ids
        self.stream = XmlStream(path, start=self._start, end=self._end, text=self._text)
        self.ready: list[Group] = []
        self.number = 0
        # The depths at which these elements are open; 0: not open.
        self._unit = self._version = self._segment = self._code = 0
        self._code_of_language = ""
        self._said = False
        self._gathered = Gathered(self.stream, "tu")
        self._key = ""
        self._texts: list[str] = []
        self._languages: list[str] = []

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name, depth = name.rpartition(":")[2], self.stream.depth
        if not self._unit:
            if name == "tu":
                self._unit, self._texts, self._languages = depth, [], []
                self._key = attributes.get("tuid", "") if self.keep_ids else ""
                self.number += 1
                self._gathered.clear()
        elif not self._version:
            if name == "tuv" and depth == self._unit + 1:
                self._version, self._said = depth, False
                self._code_of_language = self._declared(attributes)
        elif not self._segment:
            if name == "seg" and depth == self._version + 1 and not self._said:
                self._segment = depth
        elif not self._code and name in _CODE:
            self._code = depth

    def _text(self, data: str) -> None:
        if self._segment and not self._code:
            self._gathered.add(data)

    def _end(self, _name: str) -> None:
        depth = self.stream.depth + 1
        if depth == self._code:
            self._code = 0
        elif depth == self._segment:
            self._segment, self._said = 0, True
        elif depth == self._version:
            self._version = 0
            text = _LAYOUT.sub(" ", self._gathered.take()).strip(" ")
            if text.strip() and (language := self._language(self._code_of_language)):
                self._texts.append(text)
                self._languages.append(language)
        elif depth == self._unit:
            self._unit = 0
            self.ready.append(Group(tuple(self._texts), tuple(self._languages), self._key))

    def _declared(self, attributes: dict[str, str]) -> str:
        code = next((attributes[name] for name in _LANG if name in attributes), None)
        if code is None:
            raise self.stream.error(f"translation unit {self.number} has a <tuv> without xml:lang; add it")
        return code

    def _language(self, code: str) -> str | None:
        try:
            return canonical_or_skip(code, self.skipped)
        except CorpusError as error:
            raise self.stream.error(f"translation unit {self.number}: {error}") from None
