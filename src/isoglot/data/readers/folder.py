"""Folders of line-aligned files, one per language: the layout of N-way parallel sets such as NTREX, FLORES and
Multi30k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.languages import canonical, canonical_list, matches
from isoglot.data.readers.aligned import read_aligned, split_name


def read_folder(
    path: str | Path,
    *,
    sets: str | None = None,
    languages: str | Iterable[str] | None = None,
    skip_empty: bool = False,
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """One group per line from files `<name>.<language>[.txt][.gz|.xz|.bz2]` or `<language>...`, sorted by language.

    Files of equal name, in the folder or below it, are one line-aligned set; the endings `-src` and `-ref` of WMT names
    do not count. A set in a subfolder is called `<subfolder>/<name>`, or `<subfolder>` if its files are named by
    language alone. A folder with several sets (train, val, test) needs `sets`, which may contain wildcards (`eng-*`,
    `*` for all). `languages` limits the files read; sets with fewer than two of them are skipped. Blank lines as in
    `read_aligned`. Raises `CorpusError` for a missing folder or set, and for two files of one language.
    """
    root = Path(path)
    if not root.is_dir():
        raise CorpusError("not a folder; pass the folder with the line-aligned files", file=root)
    wanted = None if languages is None else canonical_list(languages, file=root)
    found = _sets(root)
    if not found:
        raise CorpusError("contains no line-aligned files named <name>.<language> or <language>.txt", file=root)
    shown = ", ".join(list(found)[:5]) + (", ..." if len(found) > 5 else "")
    if sets is None and len(found) > 1:
        raise CorpusError(f"contains {len(found)} sets ({shown}); pass sets=, where '*' means all", file=root)
    named = {label: files for label, files in found.items() if sets is None or fnmatchcase(label, sets)}
    if not named:
        raise CorpusError(f"no set is named {sets!r}; there are: {shown}", file=root)
    limited = (
        [(files[code], code) for code in sorted(files) if wanted is None or matches(code, wanted)]
        for files in named.values()
    )
    chosen = [files for files in limited if len(files) >= 2]
    if not chosen:
        raise CorpusError(f"no set has two of the languages {', '.join(wanted or ())}", file=root)
    for files in chosen:
        yield from read_aligned(files, skip_empty=skip_empty, counts=counts)


def _sets(root: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(root.rglob("*")):
        stem, code = split_name(file.name)
        if code is None or not file.is_file():
            continue
        stem = stem.removesuffix("-src").removesuffix("-ref")
        label = "/".join([*file.parent.relative_to(root).parts, *([stem] if stem else [])])
        files = found.setdefault(label, {})
        language = canonical(code)
        if language in files:
            raise CorpusError(f"and {files[language].name} are both {language}; remove one of them", file=file)
        files[language] = file
    return {label: files for label, files in found.items() if len(files) >= 2}
