"""What may not be a pair, or not take part: identical text, unlike lengths, another language than the file's.

Filters of pairs work on candidates, before pairs are chosen, so that the second best takes the place of what is
refused. Filters of sentences work before anything is encoded. All are off unless asked for.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from langcodes import Language
from numpy.typing import NDArray

from isoglot.data.languages import canonical
from isoglot.errors import CorpusError
from isoglot.search.lines import Lines
from isoglot.search.mining import Allowed
from isoglot.search.top import Ids

# How the names of a script's letters in Unicode begin.
SCRIPTS = {
    "Arab": "ARABIC", "Armn": "ARMENIAN", "Beng": "BENGALI", "Cyrl": "CYRILLIC", "Deva": "DEVANAGARI",
    "Ethi": "ETHIOPIC", "Geor": "GEORGIAN", "Grek": "GREEK", "Gujr": "GUJARATI", "Guru": "GURMUKHI",
    "Hans": "CJK", "Hant": "CJK", "Hani": "CJK", "Hebr": "HEBREW", "Jpan": "CJK HIRAGANA KATAKANA",
    "Khmr": "KHMER", "Knda": "KANNADA", "Kore": "HANGUL CJK", "Laoo": "LAO", "Latn": "LATIN", "Mlym": "MALAYALAM",
    "Mong": "MONGOLIAN", "Mymr": "MYANMAR", "Orya": "ORIYA", "Sinh": "SINHALA", "Taml": "TAMIL", "Telu": "TELUGU",
    "Thaa": "THAANA", "Thai": "THAI", "Tibt": "TIBETAN", "Tfng": "TIFINAGH",
}  # fmt: skip


def different_text(x: Lines, y: Lines) -> Allowed:
    """Refuses a pair of the same sentence twice."""
    return lambda source, target: np.not_equal(x.hashes[source], y.hashes[target])


def like_lengths(x: Lines, y: Lines, ratio: float) -> Allowed:
    """Refuses a pair whose longer sentence has more than `ratio` times the bytes of the shorter one.

    Bytes of UTF-8 rather than characters: a character of Chinese has three and says about as much as three of English.
    Raises `ValueError` for a ratio below 1.
    """
    if not ratio >= 1:
        raise ValueError(f"the length ratio is {ratio:g}; it must be at least 1")
    a, b = x.sizes(), y.sizes()
    return lambda source, target: _alike(a[source], b[target], ratio)


def all_of(filters: list[Allowed]) -> Allowed | None:
    """Allows what all allow; None if there are none."""
    if not filters:
        return None

    def allowed(source: Ids, target: Ids) -> NDArray[np.bool_]:
        answer = filters[0](source, target)
        for one in filters[1:]:
            answer = answer & one(source, target)
        return answer

    return allowed


def written_in(language: str) -> Callable[[str], bool]:
    """Whether at least half of the letters of a sentence are of the script that the language is written in.

    It tells Russian from English, not German from English. A sentence without letters passes. Raises `CorpusError` for
    an unknown language and one whose script is not among `SCRIPTS`.
    """
    script = Language.get(canonical(language)).maximize().script or ""
    if script not in SCRIPTS:
        raise CorpusError(f"no script is known for {language!r}; leave the check of languages out")
    wanted = set(SCRIPTS[script].split())

    def keep(text: str) -> bool:
        letters = Counter(_letters(character) for character in text if character.isalpha())
        total = sum(letters.values())
        return 2 * sum(letters[name] for name in wanted) >= total

    return keep


def identified_as(language: str, identify: Callable[[str], str]) -> Callable[[str], bool]:
    """Whether a function from a sentence to a code of any system names this language; scripts are not compared."""
    wanted = canonical(language).partition("_")[0]
    same = lru_cache(maxsize=1024)(lambda code: canonical(code).partition("_")[0] == wanted)
    return lambda text: bool(same(identify(text)))


def _alike(a: Ids, b: Ids, ratio: float) -> NDArray[np.bool_]:
    alike: NDArray[np.bool_] = np.maximum(a, b) <= ratio * np.minimum(a, b)
    return alike


@lru_cache(maxsize=1 << 16)
def _letters(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0].split("-")[0]
