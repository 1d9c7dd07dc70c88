"""Files of translation tools: TMX 1.4, XLIFF 1.2 and 2.x, and GNU gettext.

TMX and XLIFF are read as a stream. Tags within a text are flattened: text that is highlighted (`hi`, `g`, `mrk`, `pc`)
or marked by tags the format does not define is kept; what stands inside `bpt`, `ept`, `it`, `ph` and `ut` is code of
the original document, not language, and is dropped. White space is layout and becomes single blanks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from gettext import c2py
from pathlib import Path
from xml.etree.ElementTree import Element

from isoglot.core.errors import CorpusError, naming_extras
from isoglot.data.documents import collapse
from isoglot.data.files import read_lines
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, OnUnknown, canonical_list, canonical_or_skip
from isoglot.data.xml_stream import read_elements, text_of

_TMX_CODE = {"bpt", "ept", "it", "ph", "ut"}


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
    text = collapse(text_of(version.find("seg"), _TMX_CODE))
    language = canonical_or_skip(code, skipped) if text.strip() else None
    return (text, language) if language else None


_XLIFF_CODE = {*_TMX_CODE, "sub"}
_UNITS = ("trans-unit", "segment")  # of 1.2 and of 2.x
_UNTRANSLATED = {"new", "needs-translation", "initial"}  # states in which tools enter the source as the target
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
        source, target = (collapse(text_of(element.find(side), _XLIFF_CODE)) for side in ("source", "target"))
        states = {part.get("state") for part in (element, *element.findall("target"))}
        if not source or not target or (source == target and states & _UNTRANSLATED):
            counts["untranslated"] += 1
            continue
        if not all(languages):
            problem = f"unit {number} is translated, and its file lacks source-language or target-language (trgLang)"
            raise CorpusError(f"{problem}; add it", file=path, line=line)
        try:
            yield Group((source, target), canonical_list(languages))
        except CorpusError as error:
            raise CorpusError(f"unit {number}: {error}", file=path, line=line) from None
    if not number:
        raise CorpusError("contains no <trans-unit> or <segment>; is it an XLIFF file?", file=path)


_LINE = re.compile(r"line (\d+)")


def _plural_forms(header: str) -> list[int]:
    """The numbers of the forms for 1 and for 100, which are not the first and the last in every language."""
    try:
        form_of = c2py(header.rpartition("plural")[2].strip(" =;"))
        return [*dict.fromkeys((form_of(1), form_of(100)))]
    except (ValueError, ZeroDivisionError):  # none, or that of a template
        return [0, 1]


def read_po(
    path: str | Path, *, languages: str | Sequence[str] = (), counts: Counter[str] | None = None
) -> Iterator[Group]:
    """A group of a message and its translation; of a plural, the singular with the form for 1, the plural with that for
    100.

    languages   of messages and translations; default: English, or `X-Source-Language`, and `Language` of the header

    Messages that are not translated, fuzzy or obsolete are left out and counted in `counts["untranslated"]`. Raises
    `CorpusError` for a file that is not valid, and for unknown languages.
    """
    with naming_extras():
        import polib
    counts = Counter() if counts is None else counts
    text = "".join(f"{' '.join(line.splitlines())}\n" for _, line in read_lines(path))  # polib splits at U+2028 too
    try:
        entries = polib.pofile(text)
    except (OSError, ValueError, IndexError) as error:
        line = _LINE.search(str(error))
        problem = f"cannot be read as a .po file ({error}); correct it, for instance with: msgfmt --check"
        raise CorpusError(problem, file=path, line=int(line[1]) if line else None) from None
    header = entries.metadata
    code = re.sub("([^_@]*)[^@]*@latin", r"\1_Latn", header.get("Language") or UNKNOWN)
    languages = canonical_list(languages or (header.get("X-Source-Language") or "eng", code), file=path)
    if len(languages) != 2:
        raise CorpusError(f"got {len(languages)} languages; pass two, of messages and translations", file=path)
    if not entries:
        raise CorpusError("contains no message; is it a .po file?", file=path)
    numbers = _plural_forms(header.get("Plural-Forms", ""))
    for entry in entries:
        forms = entry.msgstr_plural or {numbers[0]: entry.msgstr}
        sides = zip((entry.msgid, entry.msgid_plural), (forms.get(at, "") for at in numbers), strict=False)
        pairs = [(collapse(text), collapse(other)) for text, other in sides]
        groups = [Group(texts, languages) for texts in pairs if all(texts)]
        if entry.obsolete or entry.fuzzy or not groups:
            counts["untranslated"] += 1
        else:
            yield from groups
