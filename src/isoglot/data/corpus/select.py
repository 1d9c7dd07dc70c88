"""Leaving out: languages that are not wanted, and groups that were there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

from isoglot.data.corpus.hashes import Seen
from isoglot.data.groups import Group
from isoglot.data.languages import canonical_list, matches


def select_languages(
    groups: Iterable[Group], languages: str | Iterable[str], *, smallest: int = 2, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """The groups with only the sentences in `languages`; a code without a script stands for all its scripts.

    Groups cut to fewer than `smallest` sentences are dropped and counted in `counts["of other languages"]`; groups
    that lost a sentence and stay are counted in `counts["shortened"]`. A group that was smaller stays if all of it is
    wanted. Held in memory: nothing. Raises `CorpusError` for an unknown language.
    """
    wanted = frozenset(canonical_list(languages))
    counts = Counter() if counts is None else counts
    untouched: dict[tuple[str, ...], bool] = {}
    for group in groups:
        codes = group.langs + group.hard_langs
        if codes not in untouched:
            untouched[codes] = all(matches(code, wanted) for code in codes)
        kept = group if untouched[codes] else _limited(group, wanted)
        if len(kept.texts) < min(smallest, max(1, len(group.texts))):
            counts["of other languages"] += 1
            continue
        counts["shortened"] += len(kept.texts) < len(group.texts)
        yield kept


def deduplicate(
    groups: Iterable[Group], *, seen: Seen | None = None, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """The groups without exact repetitions, the first of each kept.

    Groups repeat each other when they hold the same sentences in the same languages, in any order, and the same hard
    negatives. Dropped ones are counted in `counts["repeated"]`. One `seen` for several calls finds repetitions across
    their sources. Held in memory: 11 to 22 bytes for each group kept.
    """
    seen = Seen() if seen is None else seen
    counts = Counter() if counts is None else counts
    for group in groups:
        if seen.add(_hash_group(group)):
            yield group
        else:
            counts["repeated"] += 1


def _limited(group: Group, wanted: frozenset[str]) -> Group:
    kept = [(text, code) for text, code in zip(group.texts, group.langs, strict=True) if matches(code, wanted)]
    hard = [
        (text, code) for text, code in zip(group.hard_negatives, group.hard_langs, strict=True) if matches(code, wanted)
    ]
    return replace(
        group,
        texts=tuple(text for text, _ in kept),
        langs=tuple(code for _, code in kept),
        hard_negatives=tuple(text for text, _ in hard),
        hard_langs=tuple(code for _, code in hard),
    )


def _hash_group(group: Group) -> bytes:
    # Control characters keep "a" + "bc" apart from "ab" + "c"; a line feed cannot occur in either part.
    sentences = sorted({f"{code}\0{text}" for text, code in zip(group.texts, group.langs, strict=True)})
    hard = sorted({f"{code}\0{text}" for text, code in zip(group.hard_negatives, group.hard_langs, strict=True)})
    return blake2b("\n".join([*sentences, "\n", *hard]).encode(), digest_size=8).digest()
