"""Plain text, one sentence per line, and documents; line-aligned files, where line i of each has the same meaning.

`read_moses` reads two files that differ in the language at the end of their names, `read_folder` the layout of N-way
parallel sets such as NTREX, FLORES and Multi30k, one file per language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.files import read_lines, without_compression
from isoglot.data.formats import DOCUMENTS, input_format, read_texts
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical, canonical_list, is_language, matches

# Commands read files too, and have no such option.
SKIPPING = " (a source of a recipe can also skip it: skip_empty = true)"
# File extensions that are also language codes, but not meant as such.
_ENDINGS = {"csv", "html", "ids", "json", "jsonl", "log", "md", "py", "srt", "tmx", "tsv", "txt", "vtt", "xml", "zip"}


def read_sentences(
    path: str | Path, *, language: str = UNKNOWN, skip_empty: bool = False, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """A group of one sentence per line, or per text of a document, all in `language`.

    A blank line is an error, or with `skip_empty` left out and counted in `counts["empty"]`.
    """
    languages = (canonical(language, file=path),)
    for number, text in read_texts(path) if input_format(path) in ("lines", *DOCUMENTS) else read_lines(path):
        if text.strip():
            yield Group((text,), languages)
        elif not skip_empty:
            raise CorpusError(f"is empty; remove the line{SKIPPING}", file=path, line=number)
        elif counts is not None:
            counts["empty"] += 1


def split_name(name: str) -> tuple[str, str | None]:
    """`news.deu.txt.xz` -> ("news", "deu"), `deu.txt` -> ("", "deu"); the code as written, None if there is none."""
    stem, _, code = without_compression(name).removesuffix(".txt").rpartition(".")
    return (stem, code) if code.lower() not in _ENDINGS and is_language(code) else (name, None)


def language_in_name(name: str) -> str | None:
    """The code in the name of a text, which may be a document, such as `report.deu.docx`; as `split_name`.

    `film.eng.sdh.srt` is not in Southern Kurdish: these are subtitles for the deaf.
    """
    stem = without_compression(name).rpartition(".")[0] if input_format(name) in DOCUMENTS else name
    return split_name(stem[:-4] if stem.lower().endswith(".sdh") and stem != name else stem)[1]


def pair_in_name(name: str) -> tuple[str, str] | None:
    """The two languages at the end of `news.de-en`, as written; None if there are none."""
    parts = name.rpartition(".")[2].split("-")
    return (parts[0], parts[1]) if len(parts) == 2 and all(map(is_language, parts)) else None


def read_aligned(
    files: Sequence[tuple[Path, str]], *, skip_empty: bool = False, counts: Counter[str] | None = None
) -> Iterator[Group]:
    """One group per line, from (file, language code) pairs, with the sentences in that order.

    A blank line is an error. With `skip_empty` it is skipped: rows that keep two sentences or more are counted in
    `counts["shortened"]`, the others are dropped and counted in `counts["empty"]`. Raises `CorpusError` if the files
    have unequal numbers of lines.
    """
    languages = tuple(language for _, language in files)
    streams = [read_lines(path) for path, _ in files]
    counts = Counter() if counts is None else counts
    for row in zip_longest(*streams):
        if None in row:
            ended = row.index(None)
            longer, (number, _) = next((place, cell) for place, cell in enumerate(row) if cell is not None)
            total = number + sum(1 for _ in streams[longer])
            problem = f"has {number - 1} lines, but {files[longer][0]} has {total}, so from line {number} on they are "
            problem += "not translations; aligned files need equal numbers of lines"
            raise CorpusError(problem, file=files[ended][0])
        texts = tuple(text for _, text in row)
        if all(map(str.strip, texts)):
            yield Group(texts, languages)
            continue
        if not skip_empty:
            (number, _), (path, _) = next(pair for pair in zip(row, files, strict=True) if not pair[0][1].strip())
            raise CorpusError(f"is empty; remove the line from all aligned files{SKIPPING}", file=path, line=number)
        pairs = [(text, language) for text, language in zip(texts, languages, strict=True) if text.strip()]
        counts["shortened" if len(pairs) >= 2 else "empty"] += 1
        if len(pairs) >= 2:
            yield Group(tuple(text for text, _ in pairs), tuple(language for _, language in pairs))


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
    if other is None:
        files = _find_pair(Path(path), wanted)
    else:
        paths = [Path(path), Path(other) if Path(other).exists() else Path(path).parent / other]
        codes = [split_name(file.name)[1] for file in paths]
        if wanted is None and None in codes:
            raise CorpusError("has no language at the end of its name; pass languages=", file=paths[codes.index(None)])
        files = list(zip(paths, wanted or [canonical(code or "") for code in codes], strict=True))
    yield from read_aligned(files, skip_empty=skip_empty, counts=counts)


def _find_pair(prefix: Path, wanted: Sequence[str] | None) -> list[tuple[Path, str]]:
    sides: dict[str, Path] = {}
    for file in sorted(prefix.parent.glob("*")) if prefix.parent.is_dir() else []:
        stem, code = split_name(file.name)
        if code is not None and stem == prefix.name:
            sides.setdefault(canonical(code), file)
    named = wanted or [*map(canonical, pair_in_name(prefix.name) or sides)]
    missing = [language for language in named if language not in sides]
    if missing or len(named) != 2:
        shown = ", ".join(file.name for file in sides.values()) or "none"
        lacking = f"no file for {', '.join(missing)}" if missing else f"two files are needed, not {len(sides)}"
        problem = f"{lacking}; files {prefix.name}.<language> here: {shown}; pass languages= or other="
        raise CorpusError(problem, file=prefix)
    return [(sides[language], language) for language in named]


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
    every_set = _sets(root)
    if not every_set:
        raise CorpusError("contains no line-aligned files named <name>.<language> or <language>.txt", file=root)
    shown = ", ".join(list(every_set)[:5]) + (", ..." if len(every_set) > 5 else "")
    if sets is None and len(every_set) > 1:
        raise CorpusError(f"contains {len(every_set)} sets ({shown}); pass sets=, where '*' means all", file=root)
    named = {label: files for label, files in every_set.items() if sets is None or fnmatchcase(label, sets)}
    if not named:
        raise CorpusError(f"no set is named {sets!r}; there are: {shown}", file=root)
    empty = True
    for files in named.values():
        limited = [(files[code], code) for code in sorted(files) if wanted is None or matches(code, wanted)]
        if len(limited) >= 2:
            empty = False
            yield from read_aligned(limited, skip_empty=skip_empty, counts=counts)
    if empty:
        raise CorpusError(f"no set has two of the languages {', '.join(wanted or ())}", file=root)


def _sets(root: Path) -> dict[str, dict[str, Path]]:
    sets: dict[str, dict[str, Path]] = {}
    for file in sorted(root.rglob("*")):
        stem, code = split_name(file.name)
        if code is None or not file.is_file():
            continue
        stem = stem.removesuffix("-src").removesuffix("-ref")
        label = "/".join([*file.parent.relative_to(root).parts, *([stem] if stem else [])])
        files = sets.setdefault(label, {})
        language = canonical(code)
        if language in files:
            raise CorpusError(f"and {files[language].name} are both {language}; remove one of them", file=file)
        files[language] = file
    return {label: files for label, files in sets.items() if len(files) >= 2}
