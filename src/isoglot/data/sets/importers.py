"""Importers convert the published layouts of test sets to the normal form (`normal.py`); most are rows of a table.

An importer takes a folder and returns the parts of its set found there. It looks at file names only; a part is read on
request. `IMPORTERS` maps the names of the catalogue to importers; those of the user's own files are named `own/...`.
A set is a row of it: its layouts, each a `Layout` (names of published files, and their `Columns`), a `Copy` (the same
of a repository of MTEB) or, where the parts depend on more than names, a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from isoglot.core.errors import CorpusError, OutputError, nearest
from isoglot.data.files import COMPRESSED, check_output, exclusive, read_lines, remove_temporary
from isoglot.data.languages import canonical, is_language
from isoglot.data.readers.aligned import split_name
from isoglot.data.sets.columns import ANY_SCALE, Columns
from isoglot.data.sets.exports import export, records, subsets
from isoglot.data.sets.normal import MANIFEST, Part, Parts, Row, import_set, load_parts, parts_of

Find = Callable[[Path], Iterator[Parts]]  # the parts in each place, of which the first that has a split counts

_PACKED = r"(?:\.(?:gz|xz|bz2))?"
_FLORES = r"[a-z]{3}_[A-Z][a-z]{3}"


def _find(data: Path, places: Iterable[str], name: str) -> Path | None:
    """The file (or folder) `name`, plain or compressed, in the first of the places below `data` that has it."""
    paths = (data / place / f"{name}{ending}" for place in places for ending in ("", *COMPRESSED))
    return next((path for path in paths if path.exists()), None)


def _partner(path: Path, name: str) -> Path:
    if (partner := _find(path.parent, ("",), name)) is None:
        raise CorpusError(f"has no partner {name}; add that file", file=path)
    return partner


def _matching(folder: Path, pattern: str) -> Iterator[tuple[dict[str, str], Path]]:
    """The files of a folder whose path in it matches, with the groups of the pattern; the plain one of two copies.

    Between its slashes a pattern begins with letters that stand for themselves, so that not every folder is read.
    """
    glob = re.sub(r"([\w-]*)[^/]+", r"\1*", pattern)
    files: dict[tuple[str | None, ...], tuple[dict[str, str], Path]] = {}
    for path in sorted(folder.glob(glob), reverse=True):  # the plain name sorts first
        if match := re.fullmatch(pattern + _PACKED, path.relative_to(folder).as_posix()):
            files[match.groups()] = match.groupdict(), path
    yield from files.values()


def _part(
    split: str, subset: str, files: Sequence[Path], rows: Callable[[], Iterable[Row]], of: Columns, code: str = ""
) -> Part:
    """A part; the languages of pairs are in the name of the subset."""
    codes = subset.partition(".")[0].split("-")
    languages = (code,) if " " not in of.texts else (codes[0], codes[1] if len(codes) > 1 else codes[0])
    return Part(split, subset, languages, tuple(files), rows, labelled=bool(of.label))


def _width(path: Path) -> int:
    """The number of cells of the first line; 3, as with a label, for an unreadable file, so that reading it raises."""
    try:
        return len(next(read_lines(path))[1].split("\t"))
    except CorpusError:
        return 3


_PLAIN = Columns(id="#")  # one sentence per line


def _split_names(splits: str) -> dict[str, str]:
    """What splits are called in files, with what they are called here."""
    return {stored or name: name for name, _, stored in (word.partition("=") for word in splits.split())}


@dataclass(frozen=True, slots=True)
class Layout:
    """Files of a set by their names.

    path     regular expression of paths in a place, with the groups `code`, `split` and `name`
    places   folders in which the set may be, between blanks, `.` for the data folder; a split is taken from the first
             that has any of it, so that no score is over parts of two copies
    columns  of the files, or a function from the path of a file to them
    splits   names of splits, between blanks, in their order; `a=b` where files have another name for it
    names    other groups of paths, with what they are called here
    subset   name of a part, of these groups, or a function from the groups to it
    beside   name of a second file next to each, of these groups
    marker   a file without which the place `.` does not count, as names of the set there may be any files
    code     language of the texts where no group is
    labels   with "some", a file without a column of labels is a part without labels; with "only", it is not a part
    """

    path: str
    places: str = "."
    columns: Columns | Callable[[Path], Columns] = _PLAIN
    _: KW_ONLY
    splits: str = "test"
    names: Mapping[str, str] = field(default_factory=dict)
    subset: str | Callable[[Mapping[str, str]], str] = "{code}"
    beside: str = ""
    marker: str = ""
    code: str = "eng"
    labels: Literal["all", "some", "only"] = "all"

    def __call__(self, data: Path) -> Iterator[Parts]:
        """The parts in each place."""
        order = [*_split_names(self.splits).values()]
        for place in self.places.split():
            if place != "." or not self.marker or _find(data, ".", self.marker):
                parts = self._parts(data / place)
                yield parts_of(sorted(parts, key=lambda part: (order.index(part.split), part.subset)))

    def _parts(self, folder: Path) -> Iterator[Part]:
        for groups, path in _matching(folder, self.path):
            names = {"split": "test", "code": self.code, **groups}
            renamed = {key: self.names.get(name, name).replace("-", "_") for key, name in names.items()}
            subset = self.subset.format(**renamed) if isinstance(self.subset, str) else self.subset(renamed)
            columns = self.columns if isinstance(self.columns, Columns) else self.columns(path)
            second = self.beside.format(**names) if columns.beside else ""
            beside = _find(path.parent, ("",), second) if second else None
            if self.labels != "all" and beside is None and _width(path) < 3:
                if self.labels == "only":
                    continue
                columns, second = replace(columns, label=""), ""
            files = [path, *([beside] if beside else [])]
            split = _split_names(self.splits)[names["split"]]
            yield _part(split, subset, files, partial(_read, columns, path, second), columns, renamed["code"])


def _read(columns: Columns, path: Path, second: str) -> Iterator[Row]:
    return columns.read([path], _partner(path, second) if second else None)


@dataclass(frozen=True, slots=True)
class Copy:
    """A set as a repository of MTEB has it, in the layout of `exports.py`.

    folders  names that the copy may have, between blanks
    subsets  of the set, between blanks, or a regular expression of their names; "": it has none, and is English.
             Subsets of pairs with a score are called by language codes, English last
    splits   as in `Layout`
    check    called with all files of a split before one of them is read
    """

    folders: str
    columns: Columns
    subsets: str = ""
    _: KW_ONLY
    splits: str = "test"
    check: Callable[[Sequence[Path]], None] = lambda _: None

    def __call__(self, data: Path) -> Iterator[Parts]:
        """The parts of the copy."""
        parts: list[Part] = []
        folders = self.folders.split()
        for stored, split in _split_names(self.splits).items():
            names: Sequence[str] = self.subsets.split() or [""]
            if "[" in self.subsets:
                names = subsets(data, folders, split=stored, pattern=self.subsets)
            copies = {name: export(data, folders, split=stored, subset=name) for name in names}
            for name, paths in copies.items():
                subset, swap = _subset(name) if self.columns.scale and name else (name or "eng", False)
                rows = partial(self._read, paths, [path for some in copies.values() for path in some], swap)
                parts += [_part(split, subset, paths, rows, self.columns, subset)] if paths else []
        yield parts_of(parts)

    def _read(self, paths: Sequence[Path], all_paths: Sequence[Path], swap: bool) -> Iterator[Row]:
        self.check(all_paths)
        return self.columns.read(paths, swap=swap)


# Columns that several sets have

_SICK_SCALE = (1.0, 5.0)
_TRANSLATIONS = Columns(
    "sentence1 sentence2", form="records", texts="sentence1 sentence2", id="#", clean=lambda text: text.rstrip("\r\n")
)
_JUDGED = Columns(
    "sentence1 sentence2 score", form="records", texts="sentence1 sentence2", label="score", scale=(0.0, 5.0)
)
_SEMEVAL = replace(_JUDGED, names="sentence1 sentence2", form="tabs", beside="score")
_STS22_PAIRS = replace(_JUDGED, scale=(1.0, 4.0))
_STS22_ADVICE = "this is revision 1 of the set: evaluate it as sts22/v1, or get revision 2 (STS22.v2)"
_OWN_STS = replace(_JUDGED, form="tabs", header=True, scale=ANY_SCALE)
_LABEL_FIRST = Columns("label text", label="label", surplus="joined", clean=str.strip)
_LABEL_BESIDE = Columns(beside="label", label="label", clean=str.strip)
_LABEL_RECORDS = Columns("text cluster", form="records", label="cluster", kind=str | int, clean=str.strip)
_RELEVANCE = Columns(
    "query-id corpus-id score", form="records", texts="query-id corpus-id", label="score", scale=ANY_SCALE
)


def _pairs_with(*classes: str) -> Callable[[Path], Columns]:
    """Two sentences and a label in columns of a file, or under PAWS-X's header, or with the labels in a second file."""

    def columns(path: Path) -> Columns:
        width, texts = _width(path), "sentence1 sentence2"
        names, beside = (texts, "label") if width == 2 else (f"{texts} label", "")
        return Columns(names, header=width > 3, texts=texts, label="label", beside=beside, classes=classes)

    return columns


# Comparable corpora: a split of a pair is three parts, `zh-en.zh`, `zh-en.en` and `zh-en.gold`; a row of gold has the
# identifiers of a pair as its texts.

_BUCC_PAIRS = ("de-en", "fr-en", "ru-en", "zh-en")
_BUCC_SIDE = Columns("identifier sentence", texts="sentence", id="identifier")
_BUCC_GOLD = Columns("source target", texts="source target")


def _bucc(data: Path) -> Iterator[Parts]:
    """BUCC 2018 and what XTREME made of it: `<xx>-en.<split>.<xx>`, `.en` (identifier, sentence) and `.gold`.

    Text without gold cannot be scored and is not listed.
    """
    name = r"(?P<pair>(?P<code>[^-.]+)-en)\.(?P<split>sample|dev|training|test)\.gold"
    for place in ("bucc2018", "xtreme-bucc2018", "", "bucc", "data/bucc2018", "download/bucc2018"):
        parts: list[Part] = []
        for groups, path in (one for folder in ("", "[^.]+-en/") for one in _matching(data / place, folder + name)):
            split, pair = groups["split"], groups["pair"]
            for side in (groups["code"], "en"):
                partner = f"{pair}.{split}.{side}"
                files = tuple(filter(None, [_find(path.parent, ("",), partner)]))
                rows = partial(lambda gold, name: _BUCC_SIDE.read([_partner(gold, name)]), path, partner)
                parts.append(Part(split, f"{pair}.{side}", (side,), files, rows, labelled=False))
            parts.append(Part(split, f"{pair}.gold", (), (path,), partial(_BUCC_GOLD.read, [path]), labelled=False))
        yield parts_of(sorted(parts, key=lambda part: part.subset))


def _bucc_copy(folders: Sequence[str], read: Callable[[Sequence[Path], int], Iterator[Row]]) -> Find:
    """MTEB's copies of BUCC, in which the parts of a pair are columns of the same files."""

    def find(data: Path) -> Iterator[Parts]:
        copies = {pair: export(data, folders, split="test", subset=pair) for pair in _BUCC_PAIRS}
        yield parts_of(
            Part("test", f"{pair}.{kind}", (kind,), paths, partial(read, paths, number), labelled=False)
            for pair, paths in copies.items()
            if paths
            for number, kind in enumerate((*pair.split("-"), "gold"))
        )

    return find


def _bucc_record(paths: Sequence[Path], column: int) -> Iterator[Row]:
    """The first copy: one record with all sentences of both sides, and gold as pairs of numbers from 1."""
    fields = ("sentence1", "sentence2", "gold")
    copies = [record for _, record in records(paths, fields)]
    if len(copies) != 1 or not all(isinstance(copies[0][name], list) for name in fields):
        raise CorpusError(f"is not a single record of three lists, {', '.join(fields)}", file=paths[0])
    lists = [copies[0][name] for name in fields]
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


def _bucc_pairs(paths: Sequence[Path], column: int) -> Iterator[Row]:
    """The second copy: the gold pairs alone, one per record."""
    for row in replace(_TRANSLATIONS, clean=str).read(paths):
        yield Row((row.texts[column],), row.places, id=row.id) if column < 2 else Row((row.id, row.id), row.places)


# Questions and paragraphs: a subset is three parts, `fra.questions`, `fra.paragraphs` and `fra.gold`, whose rows have
# the identifiers of a question and of a paragraph as texts and the paragraph's relevance as label.

_QA_DEV = ("fra", "ind", "mar", "por")
_SCORED = ("test", "dev")  # splits of the relevance, the first by preference


def _qa_retrieval(data: Path) -> Iterator[Parts]:
    """`<language>.questions.jsonl` and `.paragraphs.jsonl`, or `<a>-<b>` with paragraphs in another language.

    The split goes by language: four are `dev`, all others `test`.
    """
    for place in ("qa-retrieval", ""):
        parts: list[Part] = []
        for groups, path in sorted(_matching(data / place, r"(?P<code>[^.]+)\.questions\.jsonl"), key=itemgetter(1)):
            code = groups["code"]
            paragraphs = _partner(path, f"{code}.paragraphs.jsonl")
            gold = partial(_gold_lists, path)
            parts += _list_questions("dev" if code in _QA_DEV else "test", code, ([path], [paragraphs], [path]), gold)
        yield parts_of(parts)


def _own_questions(data: Path) -> Iterator[Parts]:
    """The user's sets in the layout of MTEB and BEIR, in `questions/<language>/` or `questions/<a>-<b>/`.

    That is `corpus`, `queries` and `qrels` as JSON lines or Parquet, alone, in shards or in a folder of that name; or
    the relevance as a table with a header, `qrels.tsv`, `qrels/test.tsv` or `qrels/dev.tsv`. Of several splits of the
    relevance `test` is read, else `dev`.
    """
    parts: list[Part] = []
    for folder in sorted(filter(Path.is_dir, (data / "questions").glob("*"))):
        subset = "-".join(canonical(code, file=folder) for code in folder.name.split("-"))
        corpus, queries, qrels = (_beir(folder, name) for name in ("corpus", "queries", "qrels"))
        parts += _list_questions("test", subset, (queries, corpus, qrels), partial(_qrels, qrels))
    yield parts_of(parts)


def _beir(folder: Path, name: str) -> list[Path]:
    tables = [_find(folder, ("", name), f"{stem}.tsv") for stem in (name, *_SCORED)] if name == "qrels" else []
    if table := next(filter(None, tables), None):
        return [table]
    paths = [path for pattern in (f"{name}.*", f"{name}-*", f"{name}/*") for path in sorted(folder.glob(pattern))]
    if not (shards := [path for path in paths if re.fullmatch(rf".*\.(?:jsonl{_PACKED}|parquet)", path.name)]):
        raise CorpusError(f"has no {name}.jsonl (or .parquet); add that file", file=folder)
    splits = ([path for path in shards if re.match(rf"(?:qrels[-.])?{split}\b", path.name)] for split in _SCORED)
    return next(filter(None, splits), shards) if name == "qrels" else shards


def _list_questions(
    split: str, subset: str, files: tuple[Sequence[Path], ...], gold: Callable[[], Iterator[Row]]
) -> Iterator[Part]:
    """The parts of a subset, from the files of its questions, paragraphs and relevance."""
    first, _, last = subset.partition("-")
    for kind, code, paths in zip(("questions", "paragraphs"), (first, last or first), files, strict=False):
        yield Part(split, f"{subset}.{kind}", (code,), tuple(paths), partial(_read_passages, paths), labelled=False)
    yield Part(split, f"{subset}.gold", (), tuple(files[2]), gold)


def _read_passages(paths: Sequence[Path]) -> Iterator[Row]:
    """Texts with `_id` or `id`, an optional title put before the text; identifiers may be numbers, and are unique."""

    def table() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for place, record in records(paths, ("text",)):
            pieces = [piece for piece in (record.get("title"), record["text"]) if piece]
            text = " ".join(pieces) if all(isinstance(piece, str) for piece in pieces) else record["text"]
            yield place, place, {"id": record.get("_id", record.get("id", "")), "text": text}

    return Columns(id="id").rows(table())


def _gold_lists(path: Path) -> Iterator[Row]:
    for place, record in records([path], ("id", "gold")):
        if not isinstance(record["gold"], list):
            raise CorpusError(f"{place}: gold is not a list of identifiers; get the file again")
        for paragraph in record["gold"]:
            yield Row((str(record["id"]), str(paragraph)), (place,), 1.0)


def _qrels(paths: Sequence[Path]) -> Iterator[Row]:
    if ".tsv" in paths[0].suffixes:
        return replace(_RELEVANCE, form="tabs", header=True).read(paths)
    names = ("query-id", "corpus-id")  # which may be numbers
    judgements = records(paths, _RELEVANCE.names.split())
    return _RELEVANCE.rows((at, at, one | {name: str(one[name]) for name in names}) for at, one in judgements)


# Similarity

_CORPORA = {
    "sts12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "sts13": ("FNWN", "headlines", "OnWN"),
    "sts14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "sts15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "sts16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_SENTEVAL = "senteval-en . downstream data/downstream SentEval/data/downstream"


def _inside(folders: str) -> str:
    """These folders in each place of SentEval."""
    return " ".join(f"{place}/{folder}" for place in _SENTEVAL.split() for folder in folders.split())


def _senteval(data: Path) -> Iterator[Parts]:
    """STS 2012 to 2016 by corpus (`eng.MSRpar`), as in `data/downstream` of SentEval; all corpora of a year."""
    for split, corpora in _CORPORA.items():
        if folder := _find(data, _inside("STS .").split(), f"STS{split[3:]}-en-test"):
            yield parts_of(_semeval(folder, (split, f"eng.{corpus}"), f"{corpus}.txt") for corpus in corpora)


def _semeval(
    folder: Path, name: tuple[str, str], stem: str, columns: Columns = _SEMEVAL, *, swap: bool = False
) -> Part:
    """Pairs between tabs in one file, gold scores on the same lines of another, next to it or in a parallel folder."""
    text, gold = (
        _find(folder, ("", "../STS2017.gs"), f"STS.{kind}.{stem}") or folder / f"STS.{kind}.{stem}"
        for kind in ("input", "gs")
    )
    return _part(*name, (text, gold), partial(columns.read, [text], gold, swap=swap), columns)


# Subsets of copies; those of the last in the order of their codes here.
_STS17 = "ar-ar en-ar es-es es-en en-en en-tr en-de fr-en it-en nl-en ko-ko"
_STS22 = "en de es pl tr ar ru zh fr de-en es-en it pl-en zh-en es-it de-fr de-pl fr-pl"
_STSB = "de en fr it ja nl pl pt ru es zh"
_TRACKS = "1.ar-ar 2.ar-en 3.es-es 4a.es-en 4b.es-en 5.en-en 6.tr-en"  # and their languages in the names of files


def _sts17_tracks(data: Path) -> Iterator[Parts]:
    """SemEval 2017 by track. English comes first in tracks 2, 4b and 6; half of track 6 has no gold score."""
    parts: list[Part] = []
    places = ("sts17-official", ".", "sts17", "Sts2017", "data/Sts2017")
    folders = [f"{place}/STS2017.eval.v1.1" for place in places]
    for track in _TRACKS.split():
        if text := _find(data, folders, f"STS.input.track{track}.txt"):
            subset = f"{_subset(track.partition('.')[2])[0]}{'-4b' if '4b' in track else ''}"
            columns = replace(_SEMEVAL, beside_shorter=track[0] == "6")
            english_first = track.startswith(("2", "4b", "6"))
            parts.append(_semeval(text.parent, ("test", subset), f"track{track}.txt", columns, swap=english_first))
    yield parts_of(parts)


def _subset(languages: str) -> tuple[str, bool]:
    """The name of a subset in language codes, English last, and whether the columns of the file are swapped.

    Track 2 (`ar-en`) and MTEB's `en-ar` are both `ara-eng`.
    """
    codes = [canonical(code) for code in languages.split("-")]
    swap = codes[0] == "eng" != codes[-1]
    return "-".join(reversed(codes) if swap else codes), swap


def _is_first_sts22(paths: Sequence[Path]) -> None:
    """Raise `CorpusError` unless this is revision 1, which is recognised by its empty texts."""
    names = ("sentence1", "sentence2")
    texts = (record[name] for _, record in records(paths, names) for name in names)
    if not any(isinstance(text, str) and not text.strip() for text in texts):
        problem = "no text of this and the other subsets is empty, so this is not revision 1 of the set"
        raise CorpusError(f"{problem}; evaluate it as sts22", file=paths[0])


_RELATED = "ces-sts-czech fas-parsinlu-qqp fin-turku hye-arpa kor-klue-sts mar-mahasts nld-sick-nl"
_RELATED += " por-sick-br ron-ro-sts swe-turku"


def _similarity(data: Path) -> Iterator[Parts]:
    """Pairs with a judgement, one file for each language: `<language>-<name>.jsonl` with `texts`, `split` and `score`.

    Without a score, the label is one (of paraphrases), and of `4<i` its number. Where a file has rows of `test`, others
    are left out.
    """
    files = {name[:3]: _find(data, ("similarity", ""), f"{name}.jsonl") for name in _RELATED.split()}
    yield parts_of(
        _part("test", code, (path,), partial(_read_judgements, path), _OWN_STS) for code, path in files.items() if path
    )


def _read_judgements(path: Path) -> Iterator[Row]:
    def table() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for place, record in table_rows:
            if split in (None, record.get("split")):
                if not isinstance(record["texts"], list) or len(record["texts"]) != 2:
                    raise CorpusError(f"{place}: texts are not two; get the file again")
                gold = record.get("score", str(record.get("label")).rstrip("<>is"))
                yield place, place, dict(zip(_OWN_STS.names.split(), (*record["texts"], gold), strict=True))

    table_rows = list(records([path], ("texts",)))
    split = "test" if any(record.get("split") == "test" for _, record in table_rows) else None
    return _OWN_STS.rows(table())


def _own_sts(data: Path) -> Iterator[Parts]:
    """The user's tables with the columns sentence1, sentence2 and score (any finite number).

    They are `sts.tsv`, `sts.<lang>[-<lang>].tsv`, and any `<name>.<lang>[-<lang>].tsv` in a folder `sts`.
    """
    tables: dict[str, tuple[Path, bool]] = {}
    for path in [data] if data.is_file() else sorted([*data.glob("sts.*"), *data.glob("sts/*")]):
        name = re.fullmatch(rf"[^.]+(?:\.[^.]+)*?(?:\.(?P<codes>[^.]+))?\.tsv{_PACKED}", path.name)
        if name is None:
            continue
        languages = name["codes"] or "und"
        if languages.count("-") > 1 or not all(map(is_language, languages.split("-"))):
            problem = f"{languages!r} is not a language or a pair of languages; call the file <name>.<lang>.tsv"
            raise CorpusError(f"{problem}, <name>.<lang>-<lang>.tsv or sts.tsv", file=path)
        subset, swap = _subset(languages)
        if subset in tables:
            raise CorpusError(f"{subset}: found in both {tables[subset][0]} and {path}; keep one of them")
        tables[subset] = path, swap
    yield parts_of(
        _part("test", subset, (path,), partial(_OWN_STS.read, [path], swap=swap), _OWN_STS)
        for subset, (path, swap) in sorted(tables.items())
    )


def _own_aligned(data: Path) -> Iterator[Parts]:
    """The user's line-aligned files in `xsim/`: `<name>.<code>[.txt]` or `<code>[.txt]`, all of one name."""
    files: dict[str, Path] = {}
    names: dict[str, Path] = {}
    for path in sorted((data / "xsim").glob("*"), reverse=True):
        name, code = split_name(path.name)
        if code is not None:
            files[code.replace("-", "_")] = names[name] = path
    if len(names) > 1:
        one, other, *_ = names.values()
        problem = f"contains more than one set, such as {one.name} and {other.name}; keep the files of one set there"
        raise CorpusError(problem, file=one.parent)
    yield parts_of(
        _part("test", code, (files[code],), partial(_PLAIN.read, [files[code]]), _PLAIN, code) for code in sorted(files)
    )


# Topics and clusters

_MLDOC = {
    **{"german": "deu", "english": "eng", "french": "fra", "italian": "ita"},
    **{"japanese": "jpn", "russian": "rus", "spanish": "spa", "chinese": "zho"},
}
_EASE = "downstreams/text-clustering/data"
# The name of a short-text set -> the name of its file.
SHORT_TEXTS = {
    **{"agnews": "agnews", "biomedical": "biomedical", "googlenews_s": "s", "googlenews_t": "t"},
    **{"googlenews_ts": "ts", "searchsnippets": "searchsnippets", "stackoverflow": "stackoverflow", "tweet": "tweet"},
}


def _short_columns(path: Path) -> Columns:
    """Labels before a tab, in a file next to the texts, or in JSON lines."""
    name = path.name.partition(".")[0]
    beside = name in ("biomedical", "searchsnippets", "stackoverflow")
    return _LABEL_RECORDS if name == "tweet" else _LABEL_BESIDE if beside else _LABEL_FIRST


_CLUSTERS = Layout(r"(?P<name>[^.]+)\.(?P<code>[^.]+)\.tsv", ".", _LABEL_FIRST, subset="{code}-{name}")


# What a split is called here, and in copies.
_COPY_SPLITS = "train dev=validation dev test"
_PAWSX_CODE = "(?P<code>de|en|es|fr|ja|ko|zh)"
_PAWSX = {
    rf"(?P<split>train|dev|test)-{_PAWSX_CODE}\.tsv": "train dev test",
    rf"gold/(?P<split>train|dev|test)\.{_PAWSX_CODE}\.tsv": "train dev test",
    rf"{_PAWSX_CODE}/(?P<split>train|dev_2k|test_2k)\.tsv": "train dev=dev_2k test=test_2k",
}


class Importer:
    """The layouts of one set; `needs` describes the files it looks for and where to get them."""

    def __init__(self, needs: str, *layouts: Find) -> None:
        self.needs, self.layouts = needs, layouts

    def find(self, data: Path) -> Parts:
        """The parts below a folder, each split from the first place that has it."""
        first_parts: Parts = {}
        for parts in (parts for layout in self.layouts for parts in layout(data)):
            splits = {split for split, _ in first_parts}
            first_parts.update((key, part) for key, part in parts.items() if key[0] not in splits)
        return first_parts


def _copy(name: str) -> str:
    return f"https://huggingface.co/datasets/mteb/{name} in a folder {name}"


IMPORTERS: Mapping[str, Importer] = {
    "tatoeba-laser": Importer(
        "files tatoeba.<xxx>-eng.<xxx> and tatoeba.<xxx>-eng.eng (plain, .gz or .xz), as in data/tatoeba/v1 of "
        f"https://github.com/facebookresearch/LASER, or {_copy('tatoeba-bitext-mining')}",
        Layout(r"tatoeba\.(?P<code>[^.]+)-eng\.(?P=code)",
            "tatoeba-laser/v1 tatoeba-laser . v1 tatoeba tatoeba/v1 data/tatoeba/v1",
            Columns(texts="text translation", beside="translation"),
            subset="{code}-eng", beside="tatoeba.{code}-eng.eng"),
        Copy("tatoeba-bitext-mining Tatoeba", _TRANSLATIONS, "[a-z]{3}-eng")),
    "flores-200": Importer(
        "files <split>/<xxx_Xxxx>.<split> of FLORES-200 (https://github.com/facebookresearch/flores) for dev and "
        "devtest, in the folder or in flores200_dataset/",
        Layout(rf"(?P<split>devtest|dev)/(?P<code>{_FLORES})\.(?P=split)",
            "flores-200 . flores200_dataset flores200 flores-200/flores200_dataset", splits="devtest dev")),
    "ntrex-128": Importer(
        "files newstest2019-src.eng.txt and newstest2019-ref.<code>.txt of NTREX-128 "
        "(https://github.com/MicrosoftTranslator/NTREX), in the folder or in NTREX-128/",
        Layout(r"newstest2019-(?:src|ref)\.(?P<code>[^.]+)\.txt",
            "ntrex-128/NTREX-128 . NTREX-128 NTREX/NTREX-128", replace(_PLAIN, carriage_returns=True))),
    "tico-19": Importer(
        "files en-<xx>/tico19-test.en and en-<xx>/tico19-test.<xx> of TICO-19 "
        "(https://github.com/Helsinki-NLP/OPUS-MT-testsets), in the folder or in tico-19/ or tico19/testsets/",
        Layout(  # the English is corrected for some languages: the subset `en.<xx>`
            r"en-(?P<name>[^.]+)/tico19-test\.(?P<code>en|(?P=name))",
            "tico-19 . tico19 tico19/testsets datasets/tico19/testsets",
            subset=lambda groups: f"en.{groups['name']}" if groups["code"] == "en" else groups["code"])),
    "multi30k": Importer(
        "files test_2016_flickr.<xx> of Multi30k, in task1/raw/",
        Layout(r"test_2016_flickr\.(?P<code>[a-z]{2})",
            "multi30k/task1/raw . task1/raw data/task1/raw multi30k/data/task1/raw")),
    "bucc2018": Importer(
        "files <xx>-en.<split>.<xx>, .en and .gold of BUCC 2018 (https://comparable.limsi.fr/bucc2018/) or as in the "
        "download of XTREME, which calls the split sample dev and the split training test",
        _bucc),
    "BUCC": Importer(
        "a copy of MTEB's set in a folder BUCC (<xx>-en/test-*.parquet, test/<xx>-en.jsonl)",
        _bucc_copy(["BUCC"], _bucc_record)),
    "BUCC.v2": Importer(
        "a copy of MTEB's set in a folder BUCC.v2 or bucc-bitext-mining",
        _bucc_copy(["BUCC.v2", "bucc-bitext-mining"], _bucc_pairs)),
    "senteval-en": Importer(
        "folders STS/STS<year>-en-test with STS.input.<corpus>.txt and STS.gs.<corpus>.txt, STS/STSBenchmark with "
        "sts-test.csv and sts-dev.csv, SICK with SICK_test_annotated.txt and SICK_trial.txt, "
        "as in SentEval's data/downstream (https://github.com/facebookresearch/SentEval)",
        _senteval,
        Layout(r"sts-(?P<split>test|dev)\.csv", _inside("STS/STSBenchmark STSBenchmark ."),
            replace(_JUDGED, names="genre file year number score sentence1 sentence2", form="tabs", surplus="ignored"),
            splits="sts-b-test=test sts-b-dev=dev", subset="eng"),
        Layout(r"SICK_(?P<split>test_annotated|trial)\.txt", _inside("SICK ."),
            Columns("sentence_A sentence_B relatedness_score", form="tabs", header=True, carriage_returns=True,
                texts="sentence_A sentence_B", label="relatedness_score", scale=_SICK_SCALE),
            splits="sick-r-test=test_annotated sick-r-dev=trial", subset="eng")),
    **{
        f"{sts}-sts": Importer(f"for spearman/all {_copy(f'{sts}-sts')}", Copy(f"{sts}-sts {sts.upper()}", _JUDGED))
        for sts in _CORPORA
    },
    "stsbenchmark-sts": Importer(_copy("stsbenchmark-sts"), Copy("stsbenchmark-sts STSBenchmark", _JUDGED)),
    "sickr-sts": Importer(_copy("sickr-sts"), Copy("sickr-sts SICK-R", replace(_JUDGED, scale=_SICK_SCALE))),
    "sts17-official": Importer("folders STS2017.eval.v1.1 and STS2017.gs of SemEval 2017 task 1", _sts17_tracks),
    "sts17-crosslingual-sts": Importer(
        _copy("sts17-crosslingual-sts"), Copy("sts17-crosslingual-sts STS17 sts17", _JUDGED, _STS17)),
    "sts22-crosslingual-sts": Importer(  # revision 2, from which pairs with an empty text are gone
        f"{_copy('sts22-crosslingual-sts')} or STS22.v2 (revision 2)",
        Copy("STS22.v2 sts22-crosslingual-sts", replace(_STS22_PAIRS, advice=_STS22_ADVICE), _STS22)),
    "STS22": Importer(
        f"{_copy('sts22-crosslingual-sts')} or STS22 (revision 1)",
        Copy("STS22 sts22-crosslingual-sts", replace(_STS22_PAIRS, blank="kept"), _STS22, check=_is_first_sts22)),
    "stsb-multi-mt": Importer(
        "files stsb-<xx>-test.csv and -dev.csv (plain or .xz), as in data of "
        f"https://github.com/PhilipMay/stsb-multi-mt, or {_copy('stsb_multi_mt')}",
        Layout(r"stsb-(?P<code>[A-Za-z_]+)-(?P<split>test|dev)\.csv",
            "stsb-multi-mt . stsb-multi-mt/data stsb_multi_mt stsb_multi_mt/data data",
            replace(_JUDGED, form="csv", carriage_returns=True),
            splits="test dev", subset=lambda groups: canonical(groups["code"])),
        Copy("stsb_multi_mt STSBenchmarkMultilingualSTS",
            replace(_JUDGED, names="sentence1 sentence2 similarity_score", label="similarity_score"),
            _STSB, splits="test dev")),
    "sib-200": Importer(
        "files <xxx_Xxxx>/train.tsv, dev.tsv and test.tsv (plain, .gz or .xz), as in data/annotated of "
        "https://github.com/dadelani/sib-200",
        Layout(  # the id of a row is that of its sentence in FLORES-200, the same in every language
            rf"(?P<code>{_FLORES})/(?P<split>train|dev|test)\.tsv",
            "sib-200/annotated sib-200 sib-200/data/annotated . annotated data/annotated",
            Columns("index_id category text", form="csv", header=True, label="category", id="index_id"),
            splits="dev test train")),
    "sib200": Importer(
        _copy("sib200"),
        Copy("sib200 SIB200Classification", Columns("text category", form="records", label="category"), _FLORES,
            splits=_COPY_SPLITS)),
    "MTOPDomainClassification": Importer(
        "a folder mtop_domain with <language>/train.jsonl and <language>/test.jsonl (or .jsonl.gz, .parquet), as in "
        "the set mteb/mtop_domain of the Hugging Face hub",
        Copy(  # 11 numbered labels
            "MTOPDomainClassification mtop_domain mtop",
            Columns("text label", form="records", label="label", kind=int), "de en es fr hi th", splits=_COPY_SPLITS)),
    "mldoc": Importer(
        "files english.train.1000, english.dev and <language>.test of MLDoc, made with "
        "https://github.com/facebookresearch/MLDoc from the RCV1 and RCV2 news of NIST",
        Layout(rf"(?P<code>{'|'.join(_MLDOC)})\.(?P<split>train\.1000|dev|test)", "mldoc . MLDoc data",
            Columns("label text", label="label", classes=("CCAT", "ECAT", "GCAT", "MCAT")),
            splits="train=train.1000 dev test", names=_MLDOC)),
    "mewsc16": Importer(
        "files <xx>_sentences.txt and <xx>_categories.txt (plain, .gz or .xz), as in "
        f"{_EASE}/mewsc16 of https://github.com/studio-ousia/ease",
        Layout(  # empty sentences are left out, as its makers do
            r"(?P<code>[a-z]{2,3})_sentences\.txt", f"mewsc16 . mewsc-16 data/mewsc16 {_EASE}/mewsc16",
            replace(_LABEL_BESIDE, blank="skipped"), beside="{code}_categories.txt")),
    "short-text-clustering": Importer(
        "files agnews.txt, biomedical.txt, biomedical_label.txt and so on (plain, .gz or .xz), as in "
        f"{_EASE}/monolingual_benchmark of https://github.com/studio-ousia/ease",
        Layout(rf"(?P<name>{'|'.join(SHORT_TEXTS.values())})\.txt",
            f"short-text-clustering . monolingual_benchmark {_EASE}/monolingual_benchmark", _short_columns,
            names={file: name for name, file in SHORT_TEXTS.items()},
            subset="eng-{name}", beside="{name}_label.txt", marker="agnews.txt")),
    "tnews": Importer(
        "a folder tnews with dev.json (JSON lines: sentence, label), as CLUE has it",
        Layout(r"dev\.json", "tnews tnews_public data/tnews clue/tnews CLUE/tnews .",
            replace(_LABEL_RECORDS, names="sentence label", texts="sentence", label="label"),
            subset="zho", marker="labels.json", code="zho")),
    "xtreme-xnli": Importer(
        "files dev-<xx>.tsv and test-<xx>.tsv of XNLI in the layout of XTREME (premise, hypothesis, label), or "
        "without the label and with labels.test.txt next to them",
        Layout(r"(?P<split>dev|test)-(?P<code>ar|bg|de|el|en|es|fr|hi|ru|sw|th|tr|ur|vi|zh)\.tsv",
            "xtreme-xnli xnli XNLI xtreme/xnli .", _pairs_with("contradiction", "entailment", "neutral"),
            splits="dev test", beside="labels.{split}.txt", labels="some")),
    "pawsx": Importer(
        "files train-en.tsv (for paws-x/finetune), dev-en.tsv and test-<xx>.tsv of PAWS-X in the layout of XTREME "
        "with a label in the third column, or gold/test.<xx>.tsv, or x-final/<xx>/dev_2k.tsv and test_2k.tsv as in "
        "https://github.com/google-research-datasets/paws",
        *(
            Layout(  # labels of one language are never used for another
                path, "pawsx xtreme-pawsx x-final paws-x xtreme/pawsx .", _pairs_with("0", "1"), splits=splits,
                labels="only")
            for path, splits in _PAWSX.items())),
    "lingua-langid": Importer(
        "files lingua-langid/sentences/<xx>.txt, two languages or more, one sentence per line, as in "
        "language-testdata/sentences of https://github.com/pemistahl/lingua",
        Layout(r"(?P<code>[^.]+)\.txt", "lingua-langid/sentences language-testdata/sentences")),
    "own/aligned": Importer(
        "a folder xsim/ of line-aligned files <code>.txt or <name>.<code>, one for each language", _own_aligned),
    "own/search": Importer(
        "files nearest/queries.<code>.txt and nearest/corpus.<code>.txt, one sentence per line",
        Layout(r"(?P<split>corpus|queries)\.(?P<code>[^.]+?)(?:\.txt)?", "nearest", splits="corpus queries")),
    "similarity": Importer(
        "files <language>-<name>.jsonl (plain, .gz or .xz), such as kor-klue-sts.jsonl", _similarity),
    "qa-retrieval": Importer(
        "files <language>.questions.jsonl and <language>.paragraphs.jsonl (plain, .gz or .xz)", _qa_retrieval),
    "own/questions": Importer(
        "folders questions/<language> (or <a>-<b>) with corpus.jsonl, queries.jsonl and qrels/test.tsv, as MTEB and "
        "BEIR publish sets of retrieval",
        _own_questions),
    "own/sts": Importer(
        "a table sts.tsv, sts.<lang>[-<lang>].tsv or sts/<name>.<lang>[-<lang>].tsv with the columns sentence1, "
        "sentence2, score",
        _own_sts),
    "own/clusters": Importer(
        "files clustering/<name>.<language>.tsv (plain, .gz or .xz) of label TAB text",
        lambda data: _CLUSTERS(data if data.name == "clustering" else data / "clustering")),
}  # fmt: skip


def find_parts(name: str, data: Path) -> Parts:
    """The parts of a set below a folder: imported there already, or in one of the layouts that it is published in.

    A folder of the set's name with a manifest of `normal.import_set`, or such a folder itself, comes first. Raises
    `CorpusError` for a copy that is not whole or not one.
    """
    return load_parts(name, data / name) or load_parts(name, data) or IMPORTERS[name].find(data)


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
            remove_temporary(target, re.escape(MANIFEST))  # of an import that was killed
        if target.is_dir() and not (target / MANIFEST).is_file() and any(target.iterdir()):
            problem = "contains something else than an imported set"
            raise OutputError(f"{target}: {problem}; choose another folder with --data, or empty this one")
        return target, import_set(name, parts, target)
