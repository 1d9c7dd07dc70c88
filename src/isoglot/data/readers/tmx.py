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
from typing import cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from isoglot.data.files import read_blocks
from isoglot.data.languages import canonical
from isoglot.data.records import Group
from isoglot.errors import CorpusError

_CODE = {"bpt", "ept", "it", "ph", "ut"}
_LAYOUT = re.compile(r"[ \t\r\n]+")
_LANG = ("{http://www.w3.org/XML/1998/namespace}lang", "lang")


def read_tmx(path: str | Path, *, counts: Counter[str] | None = None) -> Iterator[Group]:
    """One group a translation unit; segments without text are left out.

    Units without any text are counted in `counts["empty"]`. The encoding is the one the file declares. Raises
    `CorpusError` with the line for broken or truncated XML and unknown languages, and for a file without units.
    """
    units = 0
    for unit in _units(path):
        units += 1
        group = _group(unit, path, units)
        if group.texts:
            yield group
        elif counts is not None:
            counts["empty"] += 1
    if not units:
        raise CorpusError("holds no translation unit <tu>; is it a TMX file?", file=path)


def _units(path: str | Path) -> Iterator[Element]:
    parser: XMLPullParser[Element] = XMLPullParser(["start", "end"])
    ancestors: list[Element] = []
    try:
        for block in read_blocks(path):
            parser.feed(block)
            yield from _finished(parser, ancestors)
        parser.close()
    except ParseError as error:
        raise CorpusError(
            f"broken or truncated XML ({error}); make the file again", file=path, line=error.position[0]
        ) from None


def _finished(parser: XMLPullParser[Element], ancestors: list[Element]) -> Iterator[Element]:
    for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
        if event == "start":
            ancestors.append(element)
            continue
        ancestors.pop()
        if _local(element) == "tu":
            yield element
            # The parser would keep every unit it has seen as a child of <body>.
            for parent in ancestors[-1:]:
                parent.clear()


def _group(unit: Element, path: str | Path, place: int) -> Group:
    texts, languages = [], []
    for version in unit:
        if _local(version) != "tuv":
            continue
        code = next((version.attrib[name] for name in _LANG if name in version.attrib), None)
        if code is None:
            raise CorpusError(f"translation unit {place} has a <tuv> without xml:lang; add it", file=path)
        segment = next((child for child in version if _local(child) == "seg"), None)
        text = "" if segment is None else _LAYOUT.sub(" ", "".join(_flat(segment))).strip(" ")
        if text.strip():
            texts.append(text)
            languages.append(_language(code, path, place))
    return Group(tuple(texts), tuple(languages))


def _language(code: str, path: str | Path, place: int) -> str:
    try:
        return canonical(code)
    except CorpusError as error:
        raise CorpusError(f"translation unit {place}: {error}", file=path) from None


def _flat(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if _local(child) not in _CODE:
            yield from _flat(child)
        yield child.tail or ""


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]
