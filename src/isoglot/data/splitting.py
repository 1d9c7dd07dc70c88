"""Running text as sentences, with sentencex, whose rules know the abbreviations and full stops of many languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isoglot.core.errors import naming_extras
from isoglot.data.languages import canonical

_LONGEST = 20_000  # characters looked at together, since the time of the splitter is quadratic in a paragraph's length


def splitter(language: str | None) -> Callable[[str], Iterator[str]]:
    """A function from a paragraph to its sentences, without the spaces around them; None: an unknown language."""
    with naming_extras():
        from sentencex import segment
    from langcodes import Language

    code = Language.get(canonical(language or "und")).language or "en"

    def split(paragraph: str) -> Iterator[str]:
        for start in range(0, len(paragraph), _LONGEST):
            yield from filter(None, map(str.strip, segment(code, paragraph[start : start + _LONGEST])))

    return split
