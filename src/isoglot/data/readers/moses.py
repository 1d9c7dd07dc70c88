"""Moses pairs: two line-aligned files that differ in the language at the end of their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.languages import canonical, canonical_list
from isoglot.data.readers.aligned import pair_in_name, read_aligned, split_name


def read_moses(
    path: str | Path,
    *,
    other: str | Path | None = None,
    languages: str | Iterable[str] | None = None,
    skip_empty: bool = False,
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """Pairs from two line-aligned files, the sentence of the first file or language in slot 0.

    `path` is the common prefix of both names (`OpenSubtitles.de-en` for `OpenSubtitles.de-en.de` and `....en`,
    compressed or not), or, with `other`, the first of the two files; `other` may be relative to its folder. The
    languages are inferred from the names unless `languages` has two. Blank lines as in `read_aligned`. Raises
    `CorpusError` if the files or languages can't be inferred.
    """
    wanted = None if languages is None else canonical_list(languages, file=path)
    if wanted is not None and len(wanted) != 2:
        raise CorpusError(f"a pair has two languages, not {len(wanted)}: {', '.join(wanted)}", file=path)
    files = _pair(Path(path), wanted) if other is None else _given(Path(path), Path(other), wanted)
    yield from read_aligned(files, skip_empty=skip_empty, counts=counts)


def _given(path: Path, other: Path, wanted: Sequence[str] | None) -> list[tuple[Path, str]]:
    paths = (path, other if other.exists() else path.parent / other)
    if wanted is not None:
        return list(zip(paths, wanted, strict=True))
    files = []
    for path in paths:
        _, code = split_name(path.name)
        if code is None:
            raise CorpusError("has no language at the end of its name; pass languages=", file=path)
        files.append((path, canonical(code)))
    return files


def _pair(prefix: Path, wanted: Sequence[str] | None) -> list[tuple[Path, str]]:
    found: dict[str, Path] = {}
    for file in sorted(prefix.parent.glob("*")) if prefix.parent.is_dir() else []:
        stem, code = split_name(file.name)
        if code is not None and stem == prefix.name:
            found.setdefault(canonical(code), file)
    named = wanted or [*map(canonical, pair_in_name(prefix.name) or found)]
    missing = [language for language in named if language not in found]
    if missing or len(named) != 2:
        shown = ", ".join(file.name for file in found.values()) or "none"
        lacking = f"no file for {', '.join(missing)}" if missing else f"two files are needed, not {len(found)}"
        raise CorpusError(
            f"{lacking}; files {prefix.name}.<language> here: {shown}; pass languages= or other=", file=prefix
        )
    return [(found[language], language) for language in named]
