"""Hard negatives for translation ranking (mUSE): the targets nearest to a source that don't translate it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import CorpusError
from isoglot.core.progress import Progress, Report
from isoglot.data import Group, filters
from isoglot.data.groups import Languages, groups_of
from isoglot.data.languages import canonical_list, matches
from isoglot.data.readers import READERS, read, reader_of
from isoglot.model import Model, encode, load
from isoglot.search import hard_negatives


@check_arguments()
def add_hard_negatives(
    model: Model | str | Path,
    pairs: Any,
    count: PositiveInt = 3,
    *,
    languages: Languages = None,
    progress: Progress | None = None,
    report: Report | None = None,
) -> list[Group]:
    """The pairs as Groups, with hard negatives in the target's language.

    pairs      Groups, or any data that `groups_of` takes
    count      maximum number of hard negatives per pair
    languages  as of `groups_of`; of two the first one is that of the sources

    Every target that is paired with the same source text counts as its translation, and equal targets are one. Texts
    are in memory, vectors in a temporary folder. Raises `CorpusError` for groups that are not pairs, and if there are
    none.
    """
    codes = () if languages is None or isinstance(languages, Mapping) else canonical_list(languages)
    groups: Sequence[Group] = [source_first(group, codes) for group in groups_of(pairs, languages, name="pairs")]
    for number, group in enumerate(groups, 1):
        if len(group.texts) != 2:
            problem = f"group {number} has {len(group.texts)} sentences ({', '.join(group.langs)}), not two"
            raise CorpusError(f"{problem}; specify two languages, source first")
    if not groups:
        raise CorpusError("no pairs are left")
    encoder = model if isinstance(model, Model) else load(model)
    made: dict[int, Group] = {}
    for language in dict.fromkeys(group.langs[1] for group in groups):
        members = {place: group for place, group in enumerate(groups) if group.langs[1] == language}
        hard = _hard_negatives(encoder, [*members.values()], count, progress, report)
        for (place, group), some in zip(members.items(), hard, strict=True):
            made[place] = replace(group, hard_negatives=tuple(some), hard_langs=(language,) * len(some))
    return [made[place] for place in range(len(groups))]


def _hard_negatives(
    encoder: Model, groups: Sequence[Group], count: int, progress: Progress | None, report: Report | None
) -> list[list[str]]:
    """Of pairs whose targets are in one language: at most `count` other targets for each."""
    sources, targets = (list(dict.fromkeys(group.texts[side] for group in groups)) for side in range(2))
    rows, columns = ({text: row for row, text in enumerate(side)} for side in (sources, targets))
    if count > len(targets) - 1 and report is not None:
        report(f"count is {count}: only {len(targets) - 1:,} other targets exist in {groups[0].langs[1]}; using all")
    # A text is no negative of itself, as one that is a source and a target within a language, or is left untranslated;
    # nor are the targets of groups with one key of each other's sources.
    groups_by_key: dict[str, list[Group]] = {}
    for group in (group for group in groups if group.key):
        groups_by_key.setdefault(group.key, []).append(group)
    translations = [*(group.texts for group in groups), *((text, text) for text in rows if text in columns)]
    translations += [(a.texts[0], b.texts[1]) for members in groups_by_key.values() for a in members for b in members]
    gold = [rows[source] for source, _ in translations], [columns[target] for _, target in translations]
    with tempfile.TemporaryDirectory(prefix="isoglot-", ignore_cleanup_errors=True) as folder:
        settings: dict[str, Any] = {"normalize_embeddings": True, "progress": progress}
        x = encode(encoder, sources, output=Path(folder) / "x.npy", **settings)
        y = encode(encoder, targets, output=Path(folder) / "y.npy", **settings)
        nearest = hard_negatives(x, y, gold, min(count, len(targets)), device=str(encoder.device))
    return [[targets[place] for place in nearest[row] if place >= 0] for row in gold[0][: len(groups)]]


def source_first(group: Group, codes: Sequence[str]) -> Group:
    """The pair with its sentences in the order of two languages; any other group as it is."""
    pair = len(group.langs) == 2 == len(set(codes))
    if pair and all(map(matches, group.langs, ([code] for code in reversed(codes)))):
        return replace(group, texts=group.texts[::-1], langs=group.langs[::-1])
    return group


def open_pairs(
    path: Path, *, languages: str | Sequence[str] = (), columns: Mapping[str, str] | None = None
) -> Iterator[Group]:
    """The groups of a file by its suffix, of a folder of line-aligned files, or else of a table (tsv).

    Of a file that names the languages of all its sentences, such as TMX, those in `languages` are selected.
    """
    reader = reader_of(path, default="tsv")
    options: dict[str, Any] = {"columns": columns} if columns else {}
    if not languages:
        return read(reader, path, **options)
    if "languages" not in READERS.options_of(reader):
        return filters.select_languages(read(reader, path, **options), languages)
    return read(reader, path, languages=languages if isinstance(languages, str) else [*languages], **options)


def read_pairs(path: Path, *, languages: Sequence[str] = (), leakage: Sequence[Path] = ()) -> list[Group]:
    """The pairs of a file, or of a folder of two line-aligned files, without exact duplicates.

    The sentences of a pair are in the order of `languages`. Pairs with a sentence of the test files `leakage` are
    removed. Raises `CorpusError` if none are left.
    """
    codes = canonical_list(languages)
    groups: Iterator[Group] = (source_first(group, codes) for group in open_pairs(path, languages=languages))
    if leakage:
        groups = filters.remove_leaks(groups, filters.test_sentences(leakage))
    if not (pairs := list(filters.deduplicate(groups))):
        raise CorpusError("no pairs are left", file=path)
    return pairs
