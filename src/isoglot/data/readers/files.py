"""Groups of files of any format, chosen by suffix: what `plot`, `trim` and `negatives` read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from isoglot.core.errors import CorpusError
from isoglot.data.formats import DOCUMENTS, TABLES
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.readers import read, reader_of
from isoglot.data.readers.aligned import language_in_name, read_aligned


def read_files(
    files: Sequence[Path], *, languages: Sequence[str] = (), parallel: bool = False, skip_empty: bool = True
) -> Iterator[Group]:
    """The groups of the files, read by suffix; plain text is one group per line, without blank lines.

    languages   languages of text files (one for all, or one for each), of the columns of TSV, of messages and
                translations of .po, and of JSONL sentences without one (one, or one for each of a row). Default: those
                in the names of the files
    parallel    treat line i of all text files as translations
    skip_empty  False: a blank line of plain text is a group too

    Raises `CorpusError` if the languages do not match the files, and for invalid files.
    """
    each = [*languages] * len(files) if len(languages) == 1 else [*languages]
    codes = each if len(each) == len(files) else [None] * len(files)  # None: there is not one for each
    if not parallel:
        for file, code in zip(files, codes, strict=True):
            yield from _read(file, code, languages, skip_empty=skip_empty)
        return
    if len(files) < 2:
        raise CorpusError("parallel text needs two files or more, one for each language")
    yield from read_aligned([(file, _language(file, code, languages)) for file, code in zip(files, codes, strict=True)])


def _read(file: Path, language: str | None, languages: Sequence[str], *, skip_empty: bool) -> Iterator[Group]:
    reader = reader_of(file, default="lines")
    if (reader in (*TABLES, "folder") and languages) or (reader == "po" and len(languages) == 2):
        return read(reader, file, languages=list(languages))
    if reader in ("jsonl", "parquet") and languages:
        return read(reader, file, language=language or ",".join(languages))
    if reader in ("lines", *DOCUMENTS):
        return read(reader, file, language=_language(file, language, languages), skip_empty=skip_empty)
    return read(reader, file)


def _language(file: Path, code: str | None, languages: Sequence[str]) -> str:
    if languages and code is None:
        raise CorpusError(f"got {len(languages)} languages; pass one for all files, or one for each", file=file)
    return canonical(code or language_in_name(file.name) or UNKNOWN, file=file)
