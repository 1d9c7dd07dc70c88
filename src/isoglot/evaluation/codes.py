"""Which languages were asked for, when test sets and users write their codes in different systems."""

from __future__ import annotations

from collections.abc import Sequence

from isoglot.data.languages import canonical, canonical_list, is_language, matches


def among(code: str, languages: Sequence[str]) -> bool:
    """Whether the code that a test set uses names one of `languages`; without any, every one does.

    A test set that names no script (`cmn`) answers for all of them (`zho_Hans`). Raises `CorpusError` for a language
    that does not exist and that the test set does not use either.
    """
    if not languages or code in languages:
        return True
    wanted = canonical_list(languages)
    return is_language(code) and matches(canonical(code), {*wanted, *(name.partition("_")[0] for name in wanted)})


def words(text: str) -> tuple[str, ...]:
    """The names in a text, separated by spaces: how long lists of codes are written."""
    return tuple(text.split())
