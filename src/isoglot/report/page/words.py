"""The words that find a subset: every code of its languages, in any system. "ja" finds `jpn-eng` and not `jav-eng`."""

from __future__ import annotations

from functools import cache, lru_cache

from langcodes.data_dicts import LANGUAGE_ALPHA3, LANGUAGE_ALPHA3_BIBLIOGRAPHIC, NORMALIZED_MACROLANGUAGES

from isoglot.data.languages import canonical, is_language

_MORE = ("fil",)  # that the library's tables do not have, and corpora do


@lru_cache(maxsize=4096)
def search_words(subset: str) -> str:
    """A subset's name, its parts, and of those that are languages all codes, with spaces between, in lower case.

    The box of the page looks for whole words among them.
    """
    parts = subset.split("-")
    found = [subset, *parts]
    for part in parts:
        if is_language(part):
            code = canonical(part)
            found += [code, *_codes().get(code.partition("_")[0], ())]
    return " ".join(dict.fromkeys(word.lower() for word in found))


@cache
def _codes() -> dict[str, list[str]]:
    """House code -> the codes of ISO 639-1, 639-2 and 639-3 that mean it."""
    table: dict[str, list[str]] = {}
    everything = (LANGUAGE_ALPHA3, LANGUAGE_ALPHA3.values(), LANGUAGE_ALPHA3_BIBLIOGRAPHIC.values())
    for code in dict.fromkeys(code for codes in (*everything, NORMALIZED_MACROLANGUAGES, _MORE) for code in codes):
        if is_language(code):
            table.setdefault(canonical(code).partition("_")[0], []).append(code)
    return table
