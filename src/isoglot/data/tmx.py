"""Writing TMX 1.4, the exchange format of translation memories; `readers/translations.py` reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from isoglot.data.files import atomic_write
from isoglot.data.formats import one_line
from isoglot.data.languages import UNKNOWN, canonical, tag

ALL = "*all*"  # the source language of a memory in which any language may be the source
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="isoglot" creationtoolversion="1" segtype="sentence" o-tmf="tsv" adminlang="en" \
srclang={source} datatype="plaintext"/>
<body>
"""
Properties = Mapping[str, str]
Sentences = Sequence[tuple[str, str]]
Unit = tuple[Properties, Sentences]


def write_tmx(path: str | Path, units: Iterable[Unit], *, source: str = ALL) -> int:
    """Write translation units as a whole or not at all, as `tmx_writer` does. Returns their number."""
    count = 0
    with tmx_writer(path, source=source) as write:
        for count, unit in enumerate(units, 1):  # noqa: B007 - it is returned
            write(*unit)
    return count


@contextmanager
def tmx_writer(path: str | Path, *, source: str = ALL) -> Iterator[Callable[[Properties, Sentences], None]]:
    """A function that writes a translation unit to a new file, which appears as a whole when the block ends.

    It takes the properties of the unit, of which `tuid` is its id, and its sentences with their language codes.
    `source` is the language code of the first sentences. Tabs, line ends and characters that XML forbids become spaces.
    Raises `CorpusError` for an unknown language.
    """

    def write(properties: Properties, sentences: Sentences) -> None:
        key = f" tuid={quoteattr(_clean(properties['tuid']))}" if "tuid" in properties else ""
        stream.write(f"<tu{key}>")
        for name, value in properties.items():
            if name != "tuid":
                stream.write(f"<prop type={quoteattr(name)}>{escape(_clean(value))}</prop>")
        for code, text in sentences:
            stream.write(f"<tuv xml:lang={quoteattr(_tag(code))}><seg>{escape(_clean(text))}</seg></tuv>")
        stream.write("</tu>\n")

    with atomic_write(Path(path)) as stream:
        stream.write(_HEADER.format(source=quoteattr(source if source == ALL else _tag(source))))
        yield write
        stream.write("</body>\n</tmx>\n")


def _tag(code: str) -> str:
    return tag(canonical(code)) or UNKNOWN


def _clean(text: str) -> str:
    return _FORBIDDEN.sub(" ", one_line(text))
