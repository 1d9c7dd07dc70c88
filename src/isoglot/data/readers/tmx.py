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
from xml.etree.ElementTree import Element

from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.languages import OnUnknown, canonical_or_skip
from isoglot.data.xml_stream import read_elements, text_of

_CODE = {"bpt", "ept", "it", "ph", "ut"}
_LAYOUT = re.compile(r"[ \t\r\n]+")


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
    with the line for what `read_elements` rejects, a version without a language, unknown languages, and a file without
    units.
    """
    counts = Counter() if counts is None else counts
    skipped = counts if on_unknown_language == "skip" else None
    number = 0
    for number, (line, unit) in enumerate(read_elements(path, {"tu"}), 1):
        try:
            sentences = [pair for version in unit.findall("tuv") if (pair := _sentence(version, skipped))]
        except CorpusError as error:
            raise CorpusError(f"translation unit {number}: {error}", file=path, line=line) from None
        if sentences:
            texts, languages = zip(*sentences, strict=True)
            yield Group(texts, languages, unit.get("tuid", "") if keep_ids else "")
        else:
            counts["empty"] += 1
    if not number:
        raise CorpusError("contains no translation unit <tu>; is it a TMX file?", file=path)


def _sentence(version: Element, skipped: Counter[str] | None) -> tuple[str, str] | None:
    """The text of a `tuv`, which is its first `seg`, and its language; None without text."""
    code = version.get("xml:lang", version.get("lang"))
    if code is None:
        raise CorpusError("a <tuv> without xml:lang; add it")
    text = _LAYOUT.sub(" ", text_of(version.find("seg"), _CODE)).strip(" ")
    language = canonical_or_skip(code, skipped) if text.strip() else None
    return (text, language) if language else None
