"""XLIFF 1.2 and 2.x, read as a stream: the sources and targets of a translation job.

Tags within a text are flattened: what `g`, `mrk`, `pc` and unknown tags mark is kept; codes of the original document
(`bpt`, `ept`, `it`, `ph`, `x`, …) are dropped. White space becomes single blanks, as in TMX.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from isoglot.data.groups import Group
from isoglot.data.languages import canonical
from isoglot.data.xml_stream import Gathered, XmlStream
from isoglot.errors import CorpusError

_CODE = {"bpt", "ept", "it", "ph", "ut", "sub"}
_UNITS = ("trans-unit", "segment")  # of 1.2 and of 2.x
_LANGUAGES = (("source-language", "target-language"), ("srcLang", "trgLang"))  # of <file> and of <xliff>


def read_xliff(path: str | Path, *, counts: Counter[str] | None = None) -> Iterator[Group]:
    """One group for each translated unit or segment; others are counted in `counts["untranslated"]`.

    Raises `CorpusError` with the line for what `XmlStream` rejects, a target without a language, and unknown languages,
    and for a file without units.
    """
    counts = Counter() if counts is None else counts
    units = _Units(path)
    for _ in units.stream.blocks():
        for pair in units.ready:
            if all(pair.texts):
                yield pair
            else:
                counts["untranslated"] += 1
        units.ready.clear()
    units.stream.close()
    if not units.number:
        raise CorpusError("contains no <trans-unit> or <segment>; is it an XLIFF file?", file=path)


class _Units:
    """Converts XML events to groups: a unit has one `source` and one `target` directly inside it."""

    def __init__(self, path: str | Path) -> None:
        self.stream = XmlStream(path, start=self._start, end=self._end, text=self._text)
        self.ready: list[Group] = []
        self.number = 0
        self._languages = ["", ""]
        self._unit = self._side = self._code = 0  # the depths at which these elements are open; 0: not open
        self._name = ""
        self._texts: dict[str, str] = {}
        self._gathered = Gathered(self.stream, "unit")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name, depth = name.rpartition(":")[2], self.stream.depth
        for names in _LANGUAGES:
            if name in ("file", "xliff") and names[0] in attributes:
                self._languages = [attributes.get(one, "") for one in names]
        if not self._unit:
            if name in _UNITS:
                self._unit, self._texts = depth, {}
                self.number += 1
                self._gathered.clear()
        elif not self._side:
            if name in ("source", "target") and depth == self._unit + 1:
                self._side, self._name = depth, name
        elif not self._code and name in _CODE:
            self._code = depth

    def _text(self, data: str) -> None:
        if self._side and not self._code:
            self._gathered.add(data)

    def _end(self, _name: str) -> None:
        depth = self.stream.depth + 1
        if depth == self._code:
            self._code = 0
        elif depth == self._side:
            self._side = 0
            self._texts[self._name] = " ".join(self._gathered.take().split())
        elif depth == self._unit:
            self._unit = 0
            texts = self._texts.get("source", ""), self._texts.get("target", "")
            self.ready.append(Group(texts, self._codes()) if all(texts) else Group(("", ""), ("und", "und")))

    def _codes(self) -> tuple[str, str]:
        if not all(self._languages):
            raise self.stream.error(f"unit {self.number} is translated, and the file does not declare both languages")
        try:
            return canonical(self._languages[0]), canonical(self._languages[1])
        except CorpusError as error:
            raise self.stream.error(f"unit {self.number}: {error}") from None
