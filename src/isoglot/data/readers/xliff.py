"""XLIFF 1.2 and 2.x, read as a stream: the sources and targets of a translation job.

Tags within a text are flattened: what `g`, `mrk`, `pc` and unknown tags mark is kept; codes of the original document
(`bpt`, `ept`, `it`, `ph`, `x`, …) are dropped. White space becomes single blanks, as in TMX.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.languages import canonical_list
from isoglot.data.xml_stream import read_elements, text_of

_CODE = {"bpt", "ept", "it", "ph", "ut", "sub"}
_UNITS = ("trans-unit", "segment")  # of 1.2 and of 2.x
_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}


def read_xliff(path: str | Path, *, counts: Counter[str] | None = None) -> Iterator[Group]:
    """One group for each translated unit or segment; others are counted in `counts["untranslated"]`.

    Raises `CorpusError` with the line for what `read_elements` rejects, a target without a language, unknown languages,
    and a file without units.
    """
    counts = Counter() if counts is None else counts
    languages: Sequence[str] = ("", "")
    number = 0
    for line, element in read_elements(path, _UNITS, _LANGUAGES):
        if names := _LANGUAGES.get(element.tag):
            languages = [element.get(name, "") for name in names] if names[0] in element.attrib else languages
            continue
        number += 1
        source, target = (" ".join(text_of(element.find(side), _CODE).split()) for side in ("source", "target"))
        if not source or not target:
            counts["untranslated"] += 1
            continue
        if not all(languages):
            problem = f"unit {number} is translated, and the file does not declare both languages"
            raise CorpusError(problem, file=path, line=line)
        try:
            yield Group((source, target), canonical_list(languages))
        except CorpusError as error:
            raise CorpusError(f"unit {number}: {error}", file=path, line=line) from None
    if not number:
        raise CorpusError("contains no <trans-unit> or <segment>; is it an XLIFF file?", file=path)
