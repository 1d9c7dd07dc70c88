"""Importers convert the published layouts of test sets to the normal form (`normal.py`), one function per layout.

An importer takes a folder and returns the parts of its set found there. It looks at file names only; a part is read on
request. `IMPORTERS` maps the names of the catalogue to importers; those of the user's own files are named `own/...`.
To add a data set in a known layout, add a folder or a name; for a new layout, add a function. Each function documents
the quirks of its layout: blank scores, swapped columns, quoted cells.

Errors are `CorpusError`s with file and line. Missing values are errors. So are carriage returns, since such a copy of
the set may differ in more than its line ends, except in sets published with them.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from isoglot.data.files import (
    COMPRESSED,
    check_output,
    exclusive,
    foreign_files,
    read_blocks,
    read_lines,
    remove_temporary,
)
from isoglot.data.languages import canonical, is_language
from isoglot.data.readers.aligned import split_name
from isoglot.data.sets.exports import export, records, subsets
from isoglot.data.sets.normal import MANIFEST, Part, Parts, Row, import_set, imported, parts_of, read_rows
from isoglot.errors import CorpusError, OutputError, nearest

Find = Callable[[Path], Parts]

_PACKED = r"(?:\.(?:gz|xz|bz2))?"
_FLORES = r"[a-z]{3}_[A-Z][a-z]{3}"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Reading files


def _lines(path: Path, *, carriage_returns: bool = False, blank: bool = False) -> list[str]:
    """The lines of a text file, none blank unless `blank`, no carriage return unless `carriage_returns`."""
    if not carriage_returns:
        number = 0
        for block in read_blocks(path):
            if (at := block.find(b"\r")) >= 0:
                line = number + block.count(b"\n", 0, at) + 1
                raise CorpusError("has a carriage return; convert the file with dos2unix", file=path, line=line)
            number += block.count(b"\n")
    found = []
    for number, text in read_lines(path):
        if not blank and not text.strip():
            raise CorpusError("the line is empty; restore it", file=path, line=number)
        found.append(text)
    return found


def _cells(
    path: Path, columns: int, *, carriage_returns: bool = False, at_least: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """The lines of a file split at tabs, without quoting, each with its place; with `at_least` further cells may
    follow.
    """
    for number, line in enumerate(_lines(path, carriage_returns=carriage_returns, blank=True), 1):
        cells = line.split("\t")
        if len(cells) < columns or (len(cells) > columns and not at_least):
            problem = f"{len(cells)} cells between tabs where {columns} are expected; correct the line"
            raise CorpusError(problem, file=path, line=number)
        yield f"{path}:{number}", cells


def _headed(path: Path, fields: Sequence[str], *, carriage_returns: bool) -> Iterator[tuple[str, list[str]]]:
    """The cells of the named columns of a table with a header, others next to them allowed."""
    table = _cells(path, len(fields), carriage_returns=carriage_returns, at_least=True)
    header = [cell.strip() for cell in next(table, ("", []))[1]]
    if missing := [name for name in fields if name not in header]:
        raise CorpusError(f"the header lacks {', '.join(missing)}; add these column names", file=path, line=1)
    for place, cells in table:
        if len(cells) != len(header):
            problem = f"{len(cells)} cells between tabs where the header has {len(header)}; correct the line"
            raise CorpusError(f"{place}: {problem}")
        yield place, [cells[header.index(name)] for name in fields]


def _quoted(path: Path, *, delimiter: str, carriage_returns: bool) -> Iterator[tuple[str, list[str]]]:
    """The rows of a file with CSV quotes; the place of a row that has line ends inside is its last line."""
    # The reader is given line ends, as a quoted cell may contain one, and counts the lines itself.
    lines = (f"{line}\n" for line in _lines(path, carriage_returns=carriage_returns, blank=True))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for cells in rows:
            yield f"{path}:{rows.line_num}", cells
    except csv.Error as error:
        problem = f"is not quoted as CSV ({error}); correct the line or get the file again"
        raise CorpusError(problem, file=path, line=rows.line_num) from None


def _zipped(path: Path, ours: Sequence[Any], other: Path, theirs: Sequence[Any]) -> Iterator[tuple[int, Any, Any]]:
    """The lines of two aligned files, with their number."""
    if len(ours) != len(theirs):
        raise CorpusError(
            f"{path} has {len(ours)} lines and {other} has {len(theirs)}; they are not aligned from line "
            f"{min(len(ours), len(theirs)) + 1} on: get both files again"
        )
    yield from zip(range(1, len(ours) + 1), ours, theirs, strict=True)


def _find(data: Path, places: Iterable[str], name: str) -> Path | None:
    """The file (or folder) `name`, plain or compressed, in the first of the places below `data` that has it."""
    paths = (data / place / f"{name}{ending}" for place in places for ending in ("", *COMPRESSED))
    return next((path for path in paths if path.exists()), None)


def _matching(folder: Path, glob: str, pattern: str) -> dict[tuple[str, ...], Path]:
    """The files of a folder whose path in it matches, by the groups of the pattern, with `_` for `-`; sorted.

    Of one text stored both plain and compressed it is the plain file.
    """
    found: dict[tuple[str, ...], Path] = {}
    for path in sorted(folder.glob(glob), reverse=True):  # the plain name sorts first
        if match := re.fullmatch(pattern + _PACKED, path.relative_to(folder).as_posix()):
            found[tuple(group.replace("-", "_") for group in match.groups())] = path
    return dict(sorted(found.items()))


def _first(data: Path, places: Sequence[str], layout: Callable[[Path], Iterable[Part]]) -> Parts:
    """The parts in the first of the places that has any, so that no score is over parts of two copies."""
    return next((found for place in places if (found := parts_of(layout(data / place)))), {})


def _partner(path: Path, name: str) -> Path:
    partner = _find(path.parent, ("",), name)
    if partner is None:
        raise CorpusError(f"has no partner {name}; add that file", file=path)
    return partner


def _plain(path: Path, *, carriage_returns: bool = False) -> Iterator[Row]:
    """One sentence per line; the identifier of a row is the number of its line."""
    for number, text in enumerate(_lines(path, carriage_returns=carriage_returns), 1):
        yield Row((text,), (f"{path}:{number}",), id=str(number))


def _monolingual(split: str, code: str, path: Path, *, carriage_returns: bool = False, subset: str = "") -> Part:
    load = partial(_plain, path, carriage_returns=carriage_returns)
    return Part(split, subset or code, (code,), (path,), load, labelled=False)


def _filled(place: str, **cells: Any) -> None:
    """Raise `CorpusError` for the first of the cells that is blank or not text."""
    for name, cell in cells.items():
        if not isinstance(cell, str) or not cell.strip():
            raise CorpusError(f"{place}: {name.replace('_', ' ')} is empty or not text; restore it")


# Translations


def tatoeba(data: Path) -> Parts:
    """LASER's pairs, `tatoeba.<xxx>-eng.<xxx>` and `.eng`, foreign sentence first, or MTEB's copy of them."""
    places = ("tatoeba-laser/v1", "tatoeba-laser", "", "v1", "tatoeba", "tatoeba/v1", "data/tatoeba/v1")
    return _first(data, places, _tatoeba) or parts_of(
        Part("test", pair, (pair[:3], "eng"), paths, partial(_sentence_pairs, paths))
        for pair in subsets(data, ("tatoeba-bitext-mining", "Tatoeba"), split="test", pattern="[a-z]{3}-eng")
        if (paths := export(data, ("tatoeba-bitext-mining", "Tatoeba"), split="test", subset=pair))
    )


def _tatoeba(folder: Path) -> Iterator[Part]:
    found: dict[str, dict[str, Path]] = {}
    for (code, side), path in _matching(folder, "tatoeba.*", r"tatoeba\.([^.]+)-eng\.([^.]+?)").items():
        found.setdefault(code, {})[side] = path
    for code, files in found.items():
        load = partial(_two_sides, code, files)
        yield Part("test", f"{code}-eng", (code, "eng"), tuple(files.values()), load, labelled=False)


def _two_sides(code: str, files: Mapping[str, Path]) -> Iterator[Row]:
    for side in (code, "eng"):
        if side not in files:
            there = next(iter(files.values()))
            raise CorpusError(f"has no partner tatoeba.{code}-eng.{side}; add that file", file=there)
    foreign, english = _lines(files[code]), _lines(files["eng"])
    for number, text, translation in _zipped(files[code], foreign, files["eng"], english):
        yield Row((text, translation), (f"{files[code]}:{number}", f"{files['eng']}:{number}"))


def _sentence_pairs(paths: Sequence[Path], *, stripped: bool = True) -> Iterator[Row]:
    """MTEB's pairs, whose sentences may end in a line feed each."""
    for number, (place, record) in enumerate(records(paths, ("sentence1", "sentence2")), 1):
        pair = record["sentence1"], record["sentence2"]
        _filled(place, sentence1=pair[0], sentence2=pair[1])
        yield Row(tuple(text.rstrip("\r\n") if stripped else text for text in pair), (place,), id=str(number))


def flores(data: Path) -> Parts:
    """FLORES-200: `<split>/<xxx_Xxxx>.<split>`."""
    places = ("flores-200", "", "flores200_dataset", "flores200", "flores-200/flores200_dataset")
    return {
        key: part
        for split in ("devtest", "dev")
        for key, part in _first(data, places, partial(_flores, split=split)).items()
    }


def _flores(folder: Path, split: str) -> Iterator[Part]:
    files = _matching(folder, f"{split}/*.{split}*", rf"{split}/({_FLORES})\.{split}")
    return (_monolingual(split, code, path) for (code,), path in files.items())


def ntrex(data: Path) -> Parts:
    """NTREX-128: `newstest2019-src.eng.txt` and `newstest2019-ref.<code>.txt`, published with carriage returns."""
    return _first(data, ("ntrex-128/NTREX-128", "", "NTREX-128", "NTREX/NTREX-128"), _ntrex)


def _ntrex(folder: Path) -> Iterator[Part]:
    files = _matching(folder, "newstest2019-*.txt*", r"newstest2019-(?:src|ref)\.([^./]+)\.txt")
    return (_monolingual("test", code, path, carriage_returns=True) for (code,), path in files.items())


def tico(data: Path) -> Parts:
    """TICO-19: `en-<xx>/tico19-test.<xx>`. Its English is corrected for some languages: the subset `en.<xx>`."""
    return _first(data, ("tico-19", "", "tico19", "tico19/testsets", "datasets/tico19/testsets"), _tico)


def _tico(folder: Path) -> Iterator[Part]:
    for (partner, code), path in _matching(folder, "en-*/tico19-test.*", r"en-([^/.]+)/tico19-test\.(en|\1)").items():
        yield _monolingual("test", code, path, subset=f"en.{partner}" if code == "en" else code)


def multi30k(data: Path) -> Parts:
    """Multi30k: `test_2016_flickr.<xx>`."""
    places = ("multi30k/task1/raw", "", "task1/raw", "data/task1/raw", "multi30k/data/task1/raw")
    return _first(data, places, _multi30k)


def _multi30k(folder: Path) -> Iterator[Part]:
    files = _matching(folder, "test_2016_flickr.*", r"test_2016_flickr\.([a-z]{2})")
    return (_monolingual("test", code, path) for (code,), path in files.items())


def own_aligned(data: Path) -> Parts:
    """The user's line-aligned files in `xsim/`: `<name>.<code>[.txt]` or `<code>[.txt]`, all of one name."""
    found: dict[str, Path] = {}
    names: dict[str, Path] = {}
    for path in sorted((data / "xsim").glob("*"), reverse=True):
        name, code = split_name(path.name)
        if code is not None:
            found[code.replace("-", "_")] = names[name] = path
    if len(names) > 1:
        one, other, *_ = names.values()
        problem = f"contains more than one set, such as {one.name} and {other.name}; keep the files of one set there"
        raise CorpusError(problem, file=one.parent)
    return parts_of(_monolingual("test", code, found[code]) for code in sorted(found))


def own_search(data: Path) -> Parts:
    """The user's sentences for `nearest`: `nearest/queries.<code>.txt` and `nearest/corpus.<code>.txt`."""
    files = _matching(data / "nearest", "*", r"(queries|corpus)\.([^.]+?)(?:\.txt)?")
    return parts_of(_monolingual(role, code, path) for (role, code), path in files.items())


# Comparable corpora


_BUCC_SPLITS = "sample|dev|training|test"


def bucc(data: Path) -> Parts:
    """BUCC 2018 and what XTREME made of it: `<xx>-en.<split>.<xx>`, `.en` (identifier, sentence) and `.gold`.

    A split of a pair is three parts, `zh-en.zh`, `zh-en.en` and `zh-en.gold`; a row of gold has the identifiers of a
    pair as its texts. Text without gold cannot be scored and is not listed.
    """
    found: list[Part] = []
    for place in ("bucc2018", "xtreme-bucc2018", "", "bucc", "data/bucc2018", "download/bucc2018"):
        folder = data / place
        for path in sorted([*folder.glob("*-en.*.gold*"), *folder.glob("*-en/*-en.*.gold*")]):
            if name := re.fullmatch(rf"(([^-.]+)-en)\.({_BUCC_SPLITS})\.gold{_PACKED}", path.name):
                pair, code, split = name.groups()
                for side in (code, "en"):
                    partner = f"{pair}.{split}.{side}"
                    files = tuple(filter(None, [_find(path.parent, ("",), partner)]))
                    found.append(Part(split, f"{pair}.{side}", (side,), files, partial(_bucc, path, partner), False))
                found.append(Part(split, f"{pair}.gold", (), (path,), partial(_bucc_gold, path), labelled=False))
    return parts_of(sorted(found, key=lambda part: part.subset))


def _bucc(gold: Path, name: str) -> Iterator[Row]:
    path, lines = _partner(gold, name), dict[str, int]()
    for number, (place, (key, text)) in enumerate(_cells(path, 2), 1):
        _filled(place, the_identifier=key, the_sentence=text)
        if lines.setdefault(key, number) != number:
            raise CorpusError(f"{place}: the id {key!r} is in line {lines[key]} already; make ids unique")
        yield Row((text,), (place,), id=key)


def _bucc_gold(path: Path) -> Iterator[Row]:
    return (Row(tuple(keys), (place,)) for place, keys in _cells(path, 2))


_BUCC_PAIRS = ("de-en", "fr-en", "ru-en", "zh-en")


def bucc_mteb(data: Path) -> Parts:
    """MTEB's first copy of BUCC: one record with all sentences of both sides, and gold as pairs of numbers from 1."""
    found = {pair: export(data, ("BUCC",), split="test", subset=pair) for pair in _BUCC_PAIRS}
    return parts_of(
        Part("test", f"{pair}.{kind}", (kind,), paths, partial(_bucc_record, paths, number), labelled=False)
        for pair, paths in found.items()
        if paths
        for number, kind in enumerate((*pair.split("-"), "gold"))
    )


def _bucc_record(paths: Sequence[Path], column: int) -> Iterator[Row]:
    fields = ("sentence1", "sentence2", "gold")
    found = [record for _, record in records(paths, fields)]
    if len(found) != 1 or not all(isinstance(found[0][name], list) for name in fields):
        raise CorpusError(f"is not a single record of three lists, {', '.join(fields)}", file=paths[0])
    lists = [found[0][name] for name in fields]
    if column < 2:
        for number, text in enumerate(lists[column], 1):
            if not isinstance(text, str):
                raise CorpusError(f"number {number} of {fields[column]} is not text; export it again", file=paths[0])
            yield Row((text,), (f"{paths[0]}, number {number} of {fields[column]}",), id=str(number))
        return
    counts = len(lists[0]), len(lists[1])
    for pair in lists[2]:
        whole = isinstance(pair, list) and len(pair) == 2 and all(isinstance(number, int) for number in pair)
        if not whole or not (0 < pair[0] <= counts[0] and 0 < pair[1] <= counts[1]):
            problem = f"gold has {pair} for {counts[0]} and {counts[1]} sentences, numbered from 1"
            raise CorpusError(problem, file=paths[0])
        yield Row((str(pair[0]), str(pair[1])), (str(paths[0]),))


def bucc_mteb_v2(data: Path) -> Parts:
    """MTEB's second copy of BUCC: the gold pairs alone, one a record."""
    names = ("BUCC.v2", "bucc-bitext-mining")
    found = {pair: export(data, names, split="test", subset=pair) for pair in _BUCC_PAIRS}
    return parts_of(
        Part("test", f"{pair}.{kind}", (kind,), paths, partial(_bucc_column, paths, number), labelled=False)
        for pair, paths in found.items()
        if paths
        for number, kind in enumerate((*pair.split("-"), "gold"))
    )


def _bucc_column(paths: Sequence[Path], column: int) -> Iterator[Row]:
    for row in _sentence_pairs(paths, stripped=False):
        yield Row((row.texts[column],), row.places, id=row.id) if column < 2 else Row((row.id, row.id), row.places)


# Questions and paragraphs

# A subset is three parts, `fra.questions`, `fra.paragraphs` and `fra.gold`, whose rows have the identifiers of a
# question and of a paragraph as texts and the paragraph's relevance as label.

_QA_DEV = _words("fra ind mar por")


def qa_retrieval(data: Path) -> Parts:
    """`<language>.questions.jsonl` and `.paragraphs.jsonl`, or `<a>-<b>` with paragraphs in another language.

    The split goes by language: four are `dev`, all others `test`.
    """
    return _first(data, ("qa-retrieval", ""), _qa_retrieval)


def _qa_retrieval(folder: Path) -> Iterator[Part]:
    files = _matching(folder, "*.questions.jsonl*", r"([^.]+)\.questions\.jsonl")
    for (code,), path in files.items():
        subset = "-".join(code.split("_")) if _is_pair(code) else code
        paragraphs = _partner(path, f"{subset}.paragraphs.jsonl")
        gold = partial(_gold_lists, path)
        yield from _asked("dev" if code in _QA_DEV else "test", subset, ([path], [paragraphs], [path]), gold)


def _is_pair(code: str) -> bool:
    """Whether `_matching` made this of `bem-eng`; a script, as in `zho_Hans`, begins with a capital letter."""
    return code.partition("_")[2].islower()


def own_questions(data: Path) -> Parts:
    """The user's sets in the layout of MTEB and BEIR, in `questions/<language>/` or `questions/<a>-<b>/`.

    That is `corpus`, `queries` and `qrels` as JSON lines or Parquet, alone, in shards or in a folder of that name; or
    the relevance as a table with a header, `qrels.tsv`, `qrels/test.tsv` or `qrels/dev.tsv`.
    """
    found: list[Part] = []
    for folder in sorted(filter(Path.is_dir, (data / "questions").glob("*"))):
        subset = "-".join(canonical(code, file=folder) for code in folder.name.split("-"))
        corpus, queries, qrels = (_beir(folder, name) for name in ("corpus", "queries", "qrels"))
        found += _asked("test", subset, (queries, corpus, qrels), partial(_qrels, qrels))
    return parts_of(found)


def _beir(folder: Path, name: str) -> list[Path]:
    tables = [_find(folder, ("", name), f"{stem}.tsv") for stem in (name, "test", "dev")] if name == "qrels" else []
    if table := next(filter(None, tables), None):
        return [table]
    paths = [path for pattern in (f"{name}.*", f"{name}-*", f"{name}/*") for path in sorted(folder.glob(pattern))]
    if not (kept := [path for path in paths if re.fullmatch(rf".*\.(?:jsonl{_PACKED}|parquet)", path.name)]):
        raise CorpusError(f"has no {name}.jsonl (or .parquet); add that file", file=folder)
    return kept


def _asked(
    split: str, subset: str, files: tuple[Sequence[Path], ...], gold: Callable[[], Iterator[Row]]
) -> Iterator[Part]:
    """The parts of a subset, from the files of its questions, paragraphs and relevance."""
    first, _, last = subset.partition("-")
    for kind, code, paths in zip(("questions", "paragraphs"), (first, last or first), files, strict=False):
        yield Part(split, f"{subset}.{kind}", (code,), tuple(paths), partial(_identified, paths), labelled=False)
    yield Part(split, f"{subset}.gold", (), tuple(files[2]), gold)


def _identified(paths: Sequence[Path]) -> Iterator[Row]:
    """Texts with `_id` or `id`, an optional title put before the text; identifiers may be numbers, and are unique."""
    seen: dict[str, str] = {}
    for place, record in records(paths, ("text",)):
        key = str(record.get("_id", record.get("id", "")))
        text = " ".join(filter(None, (record.get("title"), record["text"])))
        _filled(place, the_identifier=key, the_text=text)
        if seen.setdefault(key, place) != place:
            raise CorpusError(f"{place}: the id {key!r} is in {seen[key]} already; make ids unique")
        yield Row((text,), (place,), id=key)


def _gold_lists(path: Path) -> Iterator[Row]:
    for place, record in records([path], ("id", "gold")):
        if not isinstance(record["gold"], list):
            raise CorpusError(f"{place}: gold is not a list of identifiers; get the file again")
        for paragraph in record["gold"]:
            yield Row((str(record["id"]), str(paragraph)), (place,), 1.0)


def _qrels(paths: Sequence[Path]) -> Iterator[Row]:
    names = ("query-id", "corpus-id", "score")
    table: Iterable[tuple[str, list[Any]]] = (
        _headed(paths[0], names, carriage_returns=False)
        if ".tsv" in paths[0].suffixes
        else ((place, [record[name] for name in names]) for place, record in records(paths, names))
    )
    for place, (question, paragraph, score) in table:
        yield Row((str(question), str(paragraph)), (place,), _gold(score, place, _ANY_SCALE))


# Similarity


_STS_SCALE, _SICK_SCALE, _ANY_SCALE = (0.0, 5.0), (1.0, 5.0), (-math.inf, math.inf)
_CORPORA = {
    "sts12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "sts13": ("FNWN", "headlines", "OnWN"),
    "sts14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "sts15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "sts16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}

# Place, sentence 1, sentence 2, gold score.
_Judged = tuple[str, Any, Any, Any]


def _judged(
    table: Iterable[_Judged],
    *,
    scale: tuple[float, float] = _STS_SCALE,
    swap: bool = False,
    empty: bool = False,
    advice: str = "restore it",
) -> Iterator[Row]:
    """The pairs that have a gold score; a blank score means that the pair was not rated.

    `swap` puts the second sentence first; `empty` lets empty sentences pass; `advice` ends the message about them.
    """
    for place, one, other, cell in table:
        gold = _gold(cell, place, scale)
        if gold is None:
            continue
        for number, text in enumerate((one, other), 1):
            if not isinstance(text, str) or not (empty or text.strip()):
                raise CorpusError(f"{place}: sentence {number} is empty; {advice}")
        yield Row((other, one) if swap else (one, other), (place,), gold)


def _gold(cell: Any, place: str, scale: tuple[float, float]) -> float | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        gold = float(cell)
    except (TypeError, ValueError):
        gold = math.nan
    if not math.isfinite(gold) or not scale[0] <= gold <= scale[1]:
        kind = "finite number" if scale == _ANY_SCALE else f"number from {scale[0]:g} to {scale[1]:g}"
        raise CorpusError(f"{place}: the score {cell!r} is not a {kind}; correct it, or leave it blank")
    return gold


def _two_files(sentences: Path, gold: Path, *, swap: bool = False, unlabelled_tail: bool = False) -> Iterator[Row]:
    """SemEval and SentEval: pairs between tabs in one file, gold scores on the same lines of another.

    With `unlabelled_tail` the gold file may be the shorter one: its line i still belongs to line i.
    """
    pairs, scores = [cells for _, cells in _cells(sentences, 2)], _lines(gold, blank=True)
    if unlabelled_tail and len(scores) < len(pairs):
        pairs = pairs[: len(scores)]
    table = [
        (f"{sentences}:{number}", one, other, _gold(score, f"{gold}:{number}", _STS_SCALE))
        for number, (one, other), score in _zipped(sentences, pairs, gold, scores)
    ]
    return _judged(table, swap=swap)


def _sts_part(split: str, subset: str, paths: Sequence[Path], load: Callable[[], Iterable[Row]]) -> Part:
    codes = subset.partition(".")[0].split("-")
    return Part(split, subset, (codes[0], codes[1] if len(codes) > 1 else codes[0]), tuple(paths), load)


def senteval(data: Path) -> Parts:
    """STS 2012 to 2016 by corpus (`eng.MSRpar`), STS benchmark and SICK, as in `data/downstream` of SentEval."""
    places = ("senteval-en", "", "downstream", "data/downstream", "SentEval/data/downstream")
    found: list[Part] = []
    for split, corpora in _CORPORA.items():
        inside = [f"{place}/{inner}".strip("/") for place in places for inner in ("STS", "")]
        folder = _find(data, inside, f"STS{split[3:]}-en-test")
        for corpus in corpora if folder else ():
            assert folder is not None
            names = [f"STS.{kind}.{corpus}.txt" for kind in ("input", "gs")]
            text, gold = (_find(folder, ("",), name) or folder / name for name in names)
            found.append(_sts_part(split, f"eng.{corpus}", (text, gold), partial(_two_files, text, gold)))
    inside = [f"{place}/{part}".strip("/") for place in places for part in ("STS/STSBenchmark", "STSBenchmark", "")]
    for split in ("test", "dev"):
        if path := _find(data, inside, f"sts-{split}.csv"):
            found.append(_sts_part(f"sts-b-{split}", "eng", (path,), partial(_stsb, path)))
    inside = [f"{place}/{part}".strip("/") for place in places for part in ("SICK", "")]
    for split, name in (("test", "test_annotated"), ("dev", "trial")):
        if path := _find(data, inside, f"SICK_{name}.txt"):
            found.append(_sts_part(f"sick-r-{split}", "eng", (path,), partial(_sick, path)))
    return parts_of(found)


def _stsb(path: Path) -> Iterator[Row]:
    """STS benchmark: genre, file, year, id, score, sentence 1, sentence 2, then possibly sources."""
    return _judged((place, row[5], row[6], row[4]) for place, row in _cells(path, 7, at_least=True))


def _sick(path: Path) -> Iterator[Row]:
    """SICK of SemEval 2014: a header, and CR LF at the ends of lines."""
    table = _headed(path, ("sentence_A", "sentence_B", "relatedness_score"), carriage_returns=True)
    return _judged(((place, one, other, gold) for place, (one, other, gold) in table), scale=_SICK_SCALE)


def _sts_export(names: tuple[str, ...], scale: tuple[float, float] = _STS_SCALE) -> Find:
    """MTEB's copy of an English set."""

    def find(data: Path) -> Parts:
        paths = export(data, names, split="test")
        return parts_of([_sts_part("test", "eng", paths, partial(_exported, paths, scale=scale))] if paths else [])

    return find


def _exported(paths: Sequence[Path], *, gold: str = "score", **options: Any) -> Iterator[Row]:
    return _judged(_sentences(paths, gold), **options)


def _sentences(paths: Sequence[Path], gold: str = "score") -> Iterator[_Judged]:
    for place, record in records(paths, ("sentence1", "sentence2", gold)):
        yield place, record["sentence1"], record["sentence2"], record[gold]


# Track, its languages in the file's name, whether the English sentence comes first against that name.
_TRACKS = (
    ("1", "ar-ar", False),
    ("2", "ar-en", True),
    ("3", "es-es", False),
    ("4a", "es-en", False),
    ("4b", "es-en", True),
    ("5", "en-en", False),
    ("6", "tr-en", True),
)
_STS17 = _words("ar-ar en-ar es-es es-en en-en en-tr en-de fr-en it-en nl-en ko-ko")
_STS22 = _words("en de es pl tr ar ru zh fr de-en es-en it pl-en zh-en es-it de-fr de-pl fr-pl")
_STSB = _words("de en es fr it ja nl pl pt ru zh")


def _subset(languages: str) -> tuple[str, bool]:
    """The name of a subset in language codes, English last, and whether the columns of the file are swapped.

    Track 2 (`ar-en`) and MTEB's `en-ar` are both `ara-eng`.
    """
    codes = [canonical(code) for code in languages.split("-")]
    swap = codes[0] == "eng" != codes[-1]
    return "-".join(reversed(codes) if swap else codes), swap


def sts17_tracks(data: Path) -> Parts:
    """SemEval 2017 by track. English comes first in tracks 2, 4b and 6; half of track 6 has no gold score."""
    found: list[Part] = []
    for track, languages, english_first in _TRACKS:
        stem = f"track{track}.{languages}.txt"
        places = ("sts17-official/", "", "sts17/", "Sts2017/", "data/Sts2017/")
        text = _find(data, [f"{place}STS2017.eval.v1.1" for place in places], f"STS.input.{stem}")
        if text is not None:
            # Next to the sentences, or in a parallel folder of gold scores.
            gold = _find(text.parent, ("", "../STS2017.gs"), f"STS.gs.{stem}") or text.parent / f"STS.gs.{stem}"
            subset = f"{_subset(languages)[0]}{'-4b' if track == '4b' else ''}"
            load = partial(_two_files, text, gold, swap=english_first, unlabelled_tail=track == "6")
            found.append(_sts_part("test", subset, (text, gold), load))
    return parts_of(found)


def _sts_exports(names: tuple[str, ...], languages: Sequence[str], load: Callable[..., Iterator[Row]]) -> Find:
    """MTEB's copy of a set in several languages."""

    def find(data: Path) -> Parts:
        copies = {code: export(data, names, split="test", subset=code) for code in languages}
        everything = [path for paths in copies.values() for path in paths]
        found: list[Part] = []
        for code, paths in copies.items():
            subset, swap = _subset(code)
            rows = partial(load, paths, everything, swap=swap)
            found += [_sts_part("test", subset, paths, rows)] if paths else []
        return parts_of(found)

    return find


def _sts17_export(paths: Sequence[Path], _all: Sequence[Path], *, swap: bool) -> Iterator[Row]:
    return _exported(paths, swap=swap)


_STS22_SCALE = (1.0, 4.0)


def _sts22_v2(paths: Sequence[Path], _all: Sequence[Path], *, swap: bool) -> Iterator[Row]:
    """Revision 2, from which pairs with an empty text are gone."""
    advice = "this is revision 1 of the set: evaluate it as sts22/v1, or get revision 2 (STS22.v2)"
    return _exported(paths, scale=_STS22_SCALE, swap=swap, advice=advice)


def _sts22_v1(paths: Sequence[Path], everything: Sequence[Path], *, swap: bool) -> Iterator[Row]:
    """Revision 1, which is recognised by its empty texts; they are kept."""
    texts = (text for _, one, other, _ in _sentences(everything) for text in (one, other))
    if not any(isinstance(text, str) and not text.strip() for text in texts):
        raise CorpusError(
            "no text of this and the other subsets is empty, so this is not revision 1 of the set; evaluate it as "
            "sts22",
            file=everything[0],
        )
    return _exported(paths, scale=_STS22_SCALE, swap=swap, empty=True)


def stsb_multi(data: Path) -> Parts:
    """The STS benchmark translated: quoted CSV `stsb-<xx>-<split>.csv`, or MTEB's copy."""
    places = ("stsb-multi-mt", "", "stsb-multi-mt/data", "stsb_multi_mt", "stsb_multi_mt/data", "data")
    found = {}
    for split in ("test", "dev"):
        found.update(_first(data, places, partial(_stsb_multi, split=split)) or _stsb_copies(data, split))
    return found


def _stsb_multi(folder: Path, split: str) -> Iterator[Part]:
    files = _matching(folder, "stsb-*", rf"stsb-([A-Za-z_]+)-{split}\.csv")
    found = {canonical(code): path for (code,), path in files.items()}
    return (_sts_part(split, code, (found[code],), partial(_stsb_csv, found[code])) for code in sorted(found))


def _stsb_copies(data: Path, split: str) -> Parts:
    names = ("stsb_multi_mt", "STSBenchmarkMultilingualSTS")
    copies = {canonical(code): export(data, names, split=split, subset=code) for code in _STSB}
    return parts_of(
        _sts_part(split, code, copies[code], partial(_exported, copies[code], gold="similarity_score"))
        for code in sorted(copies)
        if copies[code]
    )


def _stsb_csv(path: Path) -> Iterator[Row]:
    """Sentence 1, sentence 2, score as quoted CSV without a header, CR LF or LF."""
    return _judged(_three(path))


def _three(path: Path) -> Iterator[_Judged]:
    for place, cells in _quoted(path, delimiter=",", carriage_returns=True):
        if len(cells) != 3:
            raise CorpusError(f"{place}: {len(cells)} cells where 3 are expected; correct the line")
        yield place, cells[0], cells[1], cells[2]


_RELATED = _words(
    "ces-sts-czech fas-parsinlu-qqp fin-turku hye-arpa kor-klue-sts mar-mahasts nld-sick-nl por-sick-br ron-ro-sts "
    "swe-turku"
)


def similarity(data: Path) -> Parts:
    """Pairs with a judgement, one file for each language: `<language>-<name>.jsonl` with `texts`, `split` and `score`.

    Without a score, the label is one (of paraphrases), and of `4<i` its number. Where a file has rows of `test`, others
    are left out.
    """
    files = {name[:3]: _find(data, ("similarity", ""), f"{name}.jsonl") for name in _RELATED}
    return parts_of(
        _sts_part("test", code, (path,), partial(_related, path)) for code, path in files.items() if path is not None
    )


def _related(path: Path) -> Iterator[Row]:
    found = list(records([path], ("texts",)))
    split = "test" if any(record.get("split") == "test" for _, record in found) else None
    for place, record in found:
        if split in (None, record.get("split")):
            gold = record.get("score", str(record.get("label")).rstrip("<>is"))
            if not isinstance(record["texts"], list) or len(record["texts"]) != 2:
                raise CorpusError(f"{place}: texts are not two; get the file again")
            yield from _judged([(place, *record["texts"], gold)], scale=_ANY_SCALE)


def own_sts(data: Path) -> Parts:
    """The user's tables with the columns sentence1, sentence2 and score (any finite number).

    They are `sts.tsv`, `sts.<lang>[-<lang>].tsv`, and any `<name>.<lang>[-<lang>].tsv` in a folder `sts`.
    """
    found: dict[str, tuple[Path, bool]] = {}
    for path in [data] if data.is_file() else sorted([*data.glob("sts.*"), *data.glob("sts/*")]):
        name = re.fullmatch(rf"[^.]+(?:\.[^.]+)*?(?:\.(?P<codes>[^.]+))?\.tsv{_PACKED}", path.name)
        if name is None:
            continue
        languages = name["codes"] or "und"
        if languages.count("-") > 1 or not all(map(is_language, languages.split("-"))):
            problem = (
                f"{languages!r} is not a language or a pair of languages; call the file <name>.<lang>.tsv, or "
                "<name>.<lang>-<lang>.tsv for pairs across languages, or sts.tsv"
            )
            raise CorpusError(problem, file=path)
        subset, swap = _subset(languages)
        if subset in found:
            raise CorpusError(f"{subset}: found in both {found[subset][0]} and {path}; keep one of them")
        found[subset] = path, swap
    return parts_of(
        _sts_part("test", subset, (path,), partial(_sts_table, path, swap=swap))
        for subset, (path, swap) in sorted(found.items())
    )


def _sts_table(path: Path, *, swap: bool) -> Iterator[Row]:
    table = _headed(path, ("sentence1", "sentence2", "score"), carriage_returns=False)
    return _judged(((place, one, other, gold) for place, (one, other, gold) in table), scale=_ANY_SCALE, swap=swap)


# Topics and clusters


_SIB_PLACES = ("sib-200/annotated", "sib-200", "sib-200/data/annotated", "", "annotated", "data/annotated")
_SIB_HEADER = ["index_id", "category", "text"]


def sib(data: Path) -> Parts:
    """SIB-200: `<xxx_Xxxx>/train.tsv`, `dev.tsv` and `test.tsv`, cut at tabs with CSV quotes, and a header.

    The `index_id` of a row is that of its sentence in FLORES-200, the same in every language.
    """
    return _first(data, _SIB_PLACES, _sib)


def _sib(folder: Path) -> Iterator[Part]:
    files = _matching(folder, "*_*/*.tsv*", rf"({_FLORES})/(train|dev|test)\.tsv")
    return (Part(split, code, (code,), (path,), partial(_sib_rows, path)) for (code, split), path in files.items())


def _sib_rows(path: Path) -> Iterator[Row]:
    table, seen = _quoted(path, delimiter="\t", carriage_returns=False), set[str]()
    if next(table, ("", []))[1] != _SIB_HEADER:
        problem = f"the header is not {', '.join(_SIB_HEADER)}; get the file again"
        raise CorpusError(problem, file=path, line=1)
    for place, row in table:
        if len(row) != 3 or not row[0].isdecimal() or not all(cell.strip() for cell in row):
            raise CorpusError(f"{place}: is not a row of index_id, category and text; get the file again")
        number = str(int(row[0]))
        if number in seen:
            raise CorpusError(f"{place}: index_id {number} appears twice; get the file again")
        seen.add(number)
        yield Row((row[2],), (place,), row[1], number)


def sib_mteb(data: Path) -> Parts:
    """MTEB's copy of SIB-200, without `index_id`."""
    names, found = ("sib200", "SIB200Classification"), list[Part]()
    for split, stored in _EXPORT_SPLITS:
        for code in subsets(data, names, split=stored, pattern=_FLORES):
            paths = export(data, names, split=stored, subset=code)
            found.append(Part(split, code, (code,), paths, partial(_topics, paths, "category", str)))
    return parts_of(found)


# What a split is called here and in exports.
_EXPORT_SPLITS = (("train", "train"), ("dev", "validation"), ("dev", "dev"), ("test", "test"))


def mtop(data: Path) -> Parts:
    """The domains of MTOP as MTEB has them: 11 numbered labels, six languages."""
    names, found = ("MTOPDomainClassification", "mtop_domain", "mtop"), list[Part]()
    for split, stored in _EXPORT_SPLITS:
        for code in ("de", "en", "es", "fr", "hi", "th"):
            if paths := export(data, names, split=stored, subset=code):
                found.append(Part(split, code, (code,), paths, partial(_topics, paths, "label", int)))
    return parts_of(found)


def _topics(paths: Sequence[Path], field: str, kind: type[str] | type[int]) -> Iterator[Row]:
    for place, record in records(paths, ("text", field)):
        text, label = record["text"], record[field]
        if not isinstance(label, kind) or not isinstance(text, str) or label == "" or not text.strip():
            problem = f"text {text!r} with {field} {label!r} is not a text with a label; correct it"
            raise CorpusError(f"{place}: {problem}")
        yield Row((text,), (place,), label, name=str(record.get("label_text", label)) if kind is int else "")


_MLDOC = {
    **{"deu": "german", "eng": "english", "fra": "french", "ita": "italian"},
    **{"jpn": "japanese", "rus": "russian", "spa": "spanish", "zho": "chinese"},
}


def mldoc(data: Path) -> Parts:
    """MLDoc: `<language>.train.1000`, `.dev` and `.test`, lines `label TAB text`."""
    found = []
    for code, language in _MLDOC.items():
        for split in ("train", "dev", "test"):
            name = f"{language}.{'train.1000' if split == 'train' else split}"
            if path := _find(data, ("mldoc", "", "MLDoc", "data"), name):
                found.append(Part(split, code, (code,), (path,), partial(_mldoc, path)))
    return parts_of(found)


def _mldoc(path: Path) -> Iterator[Row]:
    for place, (label, text) in _cells(path, 2):
        if label not in ("CCAT", "ECAT", "GCAT", "MCAT"):
            raise CorpusError(f"{place}: the label {label!r} is not one of CCAT, ECAT, GCAT, MCAT; correct it")
        _filled(place, the_text=text)
        yield Row((text,), (place,), label)


_EASE = "downstreams/text-clustering/data"
# The name of a short-text set -> the name of its file.
SHORT_TEXTS = {
    **{"agnews": "agnews", "biomedical": "biomedical", "googlenews_s": "s", "googlenews_t": "t"},
    **{"googlenews_ts": "ts", "searchsnippets": "searchsnippets", "stackoverflow": "stackoverflow", "tweet": "tweet"},
}


def mewsc(data: Path) -> Parts:
    """MewsC-16: `<xx>_sentences.txt` and `<xx>_categories.txt`; empty sentences are left out, as its makers do."""
    return _first(data, ("mewsc16", "", "mewsc-16", "data/mewsc16", f"{_EASE}/mewsc16"), _mewsc)


def _mewsc(folder: Path) -> Iterator[Part]:
    files = _matching(folder, "*_sentences.txt*", r"([a-z]{2,3})_sentences\.txt")
    for (code,), path in files.items():
        labels = f"{code}_categories.txt"
        partner = filter(None, [_find(path.parent, ("",), labels)])
        yield Part("test", code, (code,), (path, *partner), partial(_labels_beside, path, labels, skip_empty=True))


def _labels_beside(path: Path, labels: str, *, skip_empty: bool = False) -> Iterator[Row]:
    beside = _partner(path, labels)
    for number, text, label in _zipped(path, _lines(path, blank=skip_empty), beside, _lines(beside)):
        if text.strip():
            yield Row((text.strip(),), (f"{path}:{number}",), label.strip())


def short_texts(data: Path) -> Parts:
    """The eight English short-text sets of EASE: labels before a tab, in a file next to the texts, or in JSON lines.

    Texts lose the blanks at their ends. A folder not named for the sets needs agnews, as `t.txt` alone may be any file.
    """
    for place in ("short-text-clustering", "", "monolingual_benchmark", f"{_EASE}/monolingual_benchmark"):
        files = {name: _find(data, (place,), f"{file}.txt") for name, file in SHORT_TEXTS.items()}
        there = {name: path for name, path in files.items() if path is not None}
        if "agnews" in there or (place and there):
            return parts_of(_short_texts(name, path) for name, path in there.items())
    return {}


def _short_texts(name: str, path: Path) -> Part:
    labels, files = f"{SHORT_TEXTS[name]}_label.txt", [path]
    load: Callable[[], Iterable[Row]] = partial(_labels_before, path)
    if name == "tweet":
        load = partial(_label_records, path, "text", "cluster")
    elif name in ("biomedical", "searchsnippets", "stackoverflow"):
        load = partial(_labels_beside, path, labels)
        files += filter(None, [_find(path.parent, ("",), labels)])
    return Part("test", f"eng-{name}", ("eng",), tuple(files), load)


def _labels_before(path: Path) -> Iterator[Row]:
    """Lines `label TAB text`; the text may contain tabs."""
    for place, (label, *cells) in _cells(path, 2, at_least=True):
        text = "\t".join(cells)
        _filled(place, the_label=label, the_text=text)
        yield Row((text.strip(),), (place,), label.strip())


def _label_records(path: Path, text_field: str, label_field: str) -> Iterator[Row]:
    for place, record in records([path], (text_field, label_field)):
        text, label = record[text_field], record[label_field]
        if not isinstance(text, str) or not text.strip() or not isinstance(label, str | int) or not str(label).strip():
            problem = f"{text_field} {text!r} with {label_field} {label!r} is not a text with a label; correct it"
            raise CorpusError(f"{place}: {problem}")
        yield Row((text.strip(),), (place,), str(label).strip())


def tnews(data: Path) -> Parts:
    """TNEWS: JSON lines `dev.json`; in a folder of another name only together with `labels.json`."""
    places = ("tnews", "tnews_public", "data/tnews", "clue/tnews", "CLUE/tnews")
    path = _find(data, (*places, "") if _find(data, ("",), "labels.json") else places, "dev.json")
    load = partial(_label_records, path, "sentence", "label") if path else None
    return parts_of([Part("test", "zho", ("zho",), (path,), load)] if path and load else [])


def own_clusters(data: Path) -> Parts:
    """The user's tables, `clustering/<name>.<language>.tsv` of label and text; the subset is `<language>-<name>`."""
    folder = data if data.name == "clustering" else data / "clustering"
    files = _matching(folder, "*.tsv*", r"([^.]+)\.([^.]+)\.tsv")
    found = sorted((f"{code}-{name}", code, path) for (name, code), path in files.items())
    return parts_of(
        Part("test", subset, (code,), (path,), partial(_labels_before, path)) for subset, code, path in found
    )


# Pairs with a label, and languages


def xnli(data: Path) -> Parts:
    """XNLI as XTREME stores it: premise, hypothesis and label, or without the label and with a file
    `labels.<split>.txt`.
    """
    found = []
    for split in ("dev", "test"):
        for code in _words("ar bg de el en es fr hi ru sw th tr ur vi zh"):
            places = ("xtreme-xnli", "xnli", "XNLI", "xtreme/xnli", "")
            if path := _find(data, places, f"{split}-{code}.tsv"):
                beside = _find(path.parent, ("",), f"labels.{split}.txt")
                load = partial(_labelled_pairs, path, ("contradiction", "entailment", "neutral"), beside)
                files = tuple(filter(None, (path, beside)))
                labelled = beside is not None or _has_labels(path)
                found.append(Part(split, code, (code, code), files, load, labelled))
    return parts_of(found)


def pawsx(data: Path) -> Parts:
    """PAWS-X in the layout of XTREME, with labels in the third column or in `gold/`, or in that of its makers.

    A file without labels is skipped; labels of one language are never used for another.
    """
    found, stored = [], {"train": "train", "dev": "dev_2k", "test": "test_2k"}
    for split in stored:
        for code in _words("de en es fr ja ko zh"):
            names = f"{split}-{code}.tsv", f"gold/{split}.{code}.tsv", f"{code}/{stored[split]}.tsv"
            places = ("pawsx", "xtreme-pawsx", "x-final", "paws-x", "xtreme/pawsx", "")
            paths = (_find(data, (place,), name) for place in places for name in names)
            if path := next((path for path in paths if path and _has_labels(path)), None):
                load = partial(_labelled_pairs, path, ("0", "1"), None)
                found.append(Part(split, code, (code, code), (path,), load))
    return parts_of(found)


def _has_labels(path: Path) -> bool:
    """Whether the first line has a column for a label. True for an unreadable file, so that reading it raises."""
    try:
        return len(next(read_lines(path))[1].split("\t")) > 2
    except CorpusError:
        return True


def _labelled_pairs(path: Path, classes: Sequence[str], beside: Path | None) -> Iterator[Row]:
    """Two sentences and a label in columns of a file; under PAWS-X's header; with the labels in a separate file; or
    none.

    Without labels anywhere the rows have none.
    """
    width = len(next(read_lines(path))[1].split("\t"))
    table = list(_cells(path, width))
    if width == 2:
        labels: Sequence[str | None] = _lines(beside) if beside else [None] * len(table)
        found = [(p, *cells, label) for _, (p, cells), label in _zipped(path, table, beside or path, labels)]
    elif width == 3:
        found = [(place, *cells) for place, cells in table]
    elif table[0][1] != ["id", "sentence1", "sentence2", "label"]:
        problem = f"expected two sentences and a label, or the header id sentence1 sentence2 label, got {table[0][1]}"
        raise CorpusError(problem, file=path, line=1)
    else:
        found = [(place, *cells[1:]) for place, cells in table[1:]]
    for place, first, second, label in found:
        _filled(place, a_sentence=first, the_other_sentence=second)
        if label is not None and label not in classes:
            raise CorpusError(f"{place}: the label {label!r} is not one of {', '.join(classes)}; correct it")
        yield Row((first, second), (place,), label)


def lingua(data: Path) -> Parts:
    """The test sentences of the language detector Lingua: `sentences/<xx>.txt`."""
    return _first(data, ("lingua-langid/sentences", "language-testdata/sentences"), _lingua)


def _lingua(folder: Path) -> Iterator[Part]:
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.glob("*.txt*"), reverse=True)}
    return (_monolingual("test", code, path) for code, path in sorted(paths.items()))


@dataclass(frozen=True, slots=True)
class Importer:
    """Finds the parts of one set in a folder; `needs` describes the files it looks for and where to get them."""

    find: Find
    needs: str


_HUB = "https://huggingface.co/datasets/mteb/{0} in a folder {0}"
_SENTEVAL = "as in SentEval's data/downstream (https://github.com/facebookresearch/SentEval)"


def _copy(name: str) -> str:
    return _HUB.format(name)


IMPORTERS: Mapping[str, Importer] = {
    "tatoeba-laser": Importer(
        tatoeba,
        "files tatoeba.<xxx>-eng.<xxx> and tatoeba.<xxx>-eng.eng (plain, .gz or .xz), as in data/tatoeba/v1 of "
        f"https://github.com/facebookresearch/LASER, or {_copy('tatoeba-bitext-mining')}",
    ),
    "flores-200": Importer(
        flores,
        "files <split>/<xxx_Xxxx>.<split> of FLORES-200 (https://github.com/facebookresearch/flores) for dev and "
        "devtest, in the folder or in flores200_dataset/",
    ),
    "ntrex-128": Importer(
        ntrex,
        "files newstest2019-src.eng.txt and newstest2019-ref.<code>.txt of NTREX-128 "
        "(https://github.com/MicrosoftTranslator/NTREX), in the folder or in NTREX-128/",
    ),
    "tico-19": Importer(
        tico,
        "files en-<xx>/tico19-test.en and en-<xx>/tico19-test.<xx> of TICO-19 "
        "(https://github.com/Helsinki-NLP/OPUS-MT-testsets), in the folder or in tico-19/ or tico19/testsets/",
    ),
    "multi30k": Importer(multi30k, "files test_2016_flickr.<xx> of Multi30k, in task1/raw/"),
    "bucc2018": Importer(
        bucc,
        "files <xx>-en.<split>.<xx>, .en and .gold of BUCC 2018 (https://comparable.limsi.fr/bucc2018/) or as in the "
        "download of XTREME, which calls the split sample dev and the split training test",
    ),
    "BUCC": Importer(bucc_mteb, "a copy of MTEB's set in a folder BUCC (<xx>-en/test-*.parquet, test/<xx>-en.jsonl)"),
    "BUCC.v2": Importer(bucc_mteb_v2, "a copy of MTEB's set in a folder BUCC.v2 or bucc-bitext-mining"),
    "senteval-en": Importer(
        senteval,
        "folders STS/STS<year>-en-test with STS.input.<corpus>.txt and STS.gs.<corpus>.txt, STS/STSBenchmark with "
        f"sts-test.csv and sts-dev.csv, SICK with SICK_test_annotated.txt and SICK_trial.txt, {_SENTEVAL}",
    ),
    **{
        f"sts{year}-sts": Importer(
            _sts_export((f"sts{year}-sts", f"STS{year}")), f"for spearman/all {_copy(f'sts{year}-sts')}"
        )
        for year in range(12, 17)
    },
    "stsbenchmark-sts": Importer(_sts_export(("stsbenchmark-sts", "STSBenchmark")), _copy("stsbenchmark-sts")),
    "sickr-sts": Importer(_sts_export(("sickr-sts", "SICK-R"), _SICK_SCALE), _copy("sickr-sts")),
    "sts17-official": Importer(sts17_tracks, "folders STS2017.eval.v1.1 and STS2017.gs of SemEval 2017 task 1"),
    "sts17-crosslingual-sts": Importer(
        _sts_exports(("sts17-crosslingual-sts", "STS17", "sts17"), _STS17, _sts17_export),
        _copy("sts17-crosslingual-sts"),
    ),
    "sts22-crosslingual-sts": Importer(
        _sts_exports(("STS22.v2", "sts22-crosslingual-sts"), _STS22, _sts22_v2),
        f"{_copy('sts22-crosslingual-sts')} or STS22.v2 (revision 2)",
    ),
    "STS22": Importer(
        _sts_exports(("STS22", "sts22-crosslingual-sts"), _STS22, _sts22_v1),
        f"{_copy('sts22-crosslingual-sts')} or STS22 (revision 1)",
    ),
    "stsb-multi-mt": Importer(
        stsb_multi,
        "files stsb-<xx>-test.csv and -dev.csv (plain or .xz), as in data of "
        f"https://github.com/PhilipMay/stsb-multi-mt, or {_copy('stsb_multi_mt')}",
    ),
    "sib-200": Importer(
        sib,
        "files <xxx_Xxxx>/train.tsv, dev.tsv and test.tsv (plain, .gz or .xz), as in data/annotated of "
        "https://github.com/dadelani/sib-200",
    ),
    "sib200": Importer(sib_mteb, _copy("sib200")),
    "MTOPDomainClassification": Importer(
        mtop,
        "a folder mtop_domain with <language>/train.jsonl and <language>/test.jsonl (or .jsonl.gz, .parquet), as in "
        "the set mteb/mtop_domain of the Hugging Face hub",
    ),
    "mldoc": Importer(
        mldoc,
        "files english.train.1000, english.dev and <language>.test of MLDoc, made with "
        "https://github.com/facebookresearch/MLDoc from the RCV1 and RCV2 news of NIST",
    ),
    "mewsc16": Importer(
        mewsc,
        "files <xx>_sentences.txt and <xx>_categories.txt (plain, .gz or .xz), as in "
        f"{_EASE}/mewsc16 of https://github.com/studio-ousia/ease",
    ),
    "short-text-clustering": Importer(
        short_texts,
        "files agnews.txt, biomedical.txt, biomedical_label.txt and so on (plain, .gz or .xz), as in "
        f"{_EASE}/monolingual_benchmark of https://github.com/studio-ousia/ease",
    ),
    "tnews": Importer(tnews, "a folder tnews with dev.json (JSON lines: sentence, label), as CLUE has it"),
    "xtreme-xnli": Importer(
        xnli,
        "files dev-<xx>.tsv and test-<xx>.tsv of XNLI in the layout of XTREME (premise, hypothesis, label), or "
        "without the label and with labels.test.txt next to them",
    ),
    "pawsx": Importer(
        pawsx,
        "files train-en.tsv (for paws-x/finetune), dev-en.tsv and test-<xx>.tsv of PAWS-X in the layout of XTREME "
        "with a label in the third column, or gold/test.<xx>.tsv, or x-final/<xx>/dev_2k.tsv and test_2k.tsv as in "
        "https://github.com/google-research-datasets/paws",
    ),
    "lingua-langid": Importer(
        lingua,
        "files lingua-langid/sentences/<xx>.txt, two languages or more, one sentence per line, as in "
        "language-testdata/sentences of https://github.com/pemistahl/lingua",
    ),
    "own/aligned": Importer(
        own_aligned, "a folder xsim/ of line-aligned files <code>.txt or <name>.<code>, one for each language"
    ),
    "own/search": Importer(
        own_search, "files nearest/queries.<code>.txt and nearest/corpus.<code>.txt, one sentence per line"
    ),
    "similarity": Importer(similarity, "files <language>-<name>.jsonl (plain, .gz or .xz), such as kor-klue-sts.jsonl"),
    "qa-retrieval": Importer(
        qa_retrieval, "files <language>.questions.jsonl and <language>.paragraphs.jsonl (plain, .gz or .xz)"
    ),
    "own/questions": Importer(
        own_questions,
        "folders questions/<language> (or <a>-<b>) with corpus.jsonl, queries.jsonl and qrels/test.tsv, as MTEB and "
        "BEIR publish sets of retrieval",
    ),
    "own/sts": Importer(
        own_sts,
        "a table sts.tsv, sts.<lang>[-<lang>].tsv or sts/<name>.<lang>[-<lang>].tsv with the columns sentence1, "
        "sentence2, score",
    ),
    "own/clusters": Importer(
        own_clusters, "files clustering/<name>.<language>.tsv (plain, .gz or .xz) of label TAB text"
    ),
}


def find_parts(name: str, data: Path) -> Parts:
    """The parts of a set below a folder: imported there already, or in one of the layouts that it is published in.

    A folder of the set's name with a manifest of `normal.import_set`, or such a folder itself, comes first. Raises
    `CorpusError` for a copy that is not whole or not one.
    """
    return imported(name, data / name) or imported(name, data) or IMPORTERS[name].find(data)


def _is_begun(target: Path, parts: Parts) -> bool:
    """Whether a folder without a manifest has nothing but parts of this set, as an earlier version left them that wrote
    the manifest last and was killed.
    """
    names = [f"{split}/{subset}.jsonl" for split, subset in parts]
    if target.is_file() or next(foreign_files(target, "|".join(map(re.escape, names))), None):
        return False
    try:  # a file of the user's that is called so has no places in its rows
        return all(next(read_rows(target / name)) for name in names if (target / name).is_file())
    except CorpusError:
        return False


def import_folder(name: str, folder: Path, data: Path) -> tuple[Path, int]:
    """Convert the published files of a set in `folder` to the normal form; returns the new folder and the number of
    rows.

    That is the folder of the set's name below `data`. Raises `CorpusError` for an unknown set, for a folder without
    its files and for files that cannot be used, `OutputError` for an output that contains something else.
    """
    if name not in IMPORTERS:
        raise CorpusError(f"unknown data set {name!r}; {nearest(name, IMPORTERS, most=99)}")
    parts, target = find_parts(name, folder), data / name
    if not parts:
        raise CorpusError(f"does not contain {name}; it needs {IMPORTERS[name].needs}", file=folder)
    check_output(target, inputs=[folder], folder=True)
    with exclusive(target):
        if target.is_dir():
            remove_temporary(target, [MANIFEST])  # of an import that was killed
        if target.exists() and not (target / MANIFEST).is_file() and not _is_begun(target, parts):
            problem = "contains something else than an imported set"
            raise OutputError(f"{target}: {problem}; choose another folder with --data, or empty this one")
        return target, import_set(name, parts, target)
