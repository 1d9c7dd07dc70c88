"""Natural language inference: premises with hypotheses that follow from them, contradict them, or neither.

`read_nli` reads one language, `read_xnli` the rows of XNLI, which are the same in up to fifteen languages (Conneau et
al. 2018). Both make triplets or labelled pairs of rows of premise, hypothesis and label, in these layouts:

SentEval   a folder with line-aligned files s1.<split>, s2.<split> and labels.<split>
tables     TSV (quoted CSV if so named) with the names of one of `LAYOUTS` among those of its columns; or without
           names, premise, hypothesis and label, as XTREME has XNLI
JSON lines the same names
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from isoglot.core.errors import CorpusError, quote
from isoglot.data.files import locate, read_lines, suffix_of, without_compression
from isoglot.data.formats import read_records, read_table, table_cells
from isoglot.data.groups import Group
from isoglot.data.languages import UNKNOWN, canonical, canonical_list, is_language
from isoglot.data.readers.aligned import SKIPPING

# Columns of premise, hypothesis and label, in lower case.
LAYOUTS = (
    ("sentence1", "sentence2", "gold_label"),  # SNLI and MultiNLI as released, and MultiNLI of GLUE
    ("sentence1", "sentence2", "label"),  # AllNLI
    ("premise", "hypothesis", "label"),  # Hugging Face
    ("premise", "hypo", "label"),  # XNLI-MT-1.0
    ("sentence_a", "sentence_b", "entailment_judgment"),  # SICK
    ("s1", "s2", "label"),
)
TRIPLETS = (
    ("sent0", "sent1", "hard_neg"),  # SimCSE
    ("premise", "entailment", "contradiction"),
    ("anchor", "positive", "negative"),
)
LABELS = {
    **{"entailment": 0, "neutral": 1, "contradiction": 2, "contradictory": 2},  # the last: XNLI-MT-1.0
    **{"0": 0, "1": 1, "2": 2},  # Hugging Face
    **{"-": None, "-1": None, "": None},  # no majority among the annotators
}
_LABEL = {*filter(None, LABELS), *(layout[2] for layout in LAYOUTS)}  # where a contradiction may stand
Mode = Literal["triplets", "groups", "pairs"]
Key = Literal["premise", "none"]


def read_nli(
    path: str | Path,
    *,
    language: str = UNKNOWN,
    labelled: bool = False,
    mode: Literal["pairs", "triplets"] = "pairs",
    split: str = "train",
    key: Key = "premise",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """A pair (premise, entailment) a row, keyed by the premise, with the contradiction as hard negative.

    Quoted CSV when the name ends in `.csv`, before any compression; else unquoted TSV. Columns in that order, under
    one of the usual headers (`sent0,sent1,hard_neg`; `premise,entailment,contradiction`; `anchor,positive,negative`)
    or none; the contradiction may be blank or missing. With `key = "none"`, rows of one premise are each other's
    negatives, as in SimCSE's code. Raises `CorpusError` for another number of columns, and for a blank premise or
    entailment.

    With `labelled`: a pair (premise, hypothesis) a row, without a key, with the number `label`; the module documents
    the layouts. Of rows with a `split` (AllNLI), only that split is read; of a folder, its files. Undecided rows are
    counted in `counts["undecided"]`. With `mode = "triplets"` these become a pair (premise, entailment) for each
    entailment, keyed as above, with the last contradiction of the premise as hard negative; entailments of a premise
    without a contradiction are left out and counted in `counts["without contradiction"]`. The file is then read twice,
    and one contradiction per premise is in memory. A file without a row to read is an error.
    """
    code = canonical(language, file=path)
    if mode == "triplets" and not labelled:
        raise CorpusError('mode = "triplets" makes triplets of labelled pairs; set labelled = true too', file=path)
    if labelled:
        rows = partial(_read_rows, [Path(path)], split, None)
        draw = _Draw((code,), key == "premise", Counter() if counts is None else counts)
        yield from _draw_groups(draw, rows, mode, negatives=mode == "triplets", file=path)
        return
    empty = True
    for place, (line, cells) in enumerate(table_cells(path)):
        if place == 0 and any(tuple(map(str.strip, map(str.lower, cells))) in (names, names[:2]) for names in TRIPLETS):
            continue
        empty = False
        if place == 0 and {cell.strip().lower() for cell in cells[2:3]} & _LABEL:
            raise CorpusError("has labels in the third column; set labelled = true", file=path, line=line)
        if not 2 <= len(cells) <= 3:
            problem = f"{len(cells)} columns where premise, entailment and contradiction are expected"
            raise CorpusError(problem, file=path, line=line)
        _require_text(cells, ("premise", "entailment"), "remove the row", path, line)
        hard = tuple(cell for cell in cells[2:] if cell.strip())
        yield Group((cells[0], cells[1]), (code, code), cells[0] if key == "premise" else "", hard, (code,) * len(hard))
    if empty:
        raise CorpusError("contains a header and no text below it", file=path)


def read_xnli(
    path: str | Path,
    *,
    split: str = "train",
    pool: str | Iterable[str] | None = None,
    mode: Mode = "triplets",
    draw: Literal["paper", "repo"] = "paper",
    sentences: Literal["premise", "both"] = "premise",
    hard_negatives: bool = False,
    key: Key = "premise",
    seed: int = 0,
    skip_empty: bool = False,
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """Groups from a folder of line-aligned files `<split>-<xx>.tsv` or `<set>.<split>.<xx>.tsv`, plain or compressed.

    mode      `triplets` premise and entailed hypothesis, with a contradiction of the premise as hard negative (mSimCSE)
              `groups`   one sentence in all languages of the pool (MPCL)
              `pairs`    premise and hypothesis in languages drawn independently, with the number `label`:
                         0 entailment, 1 neutral, 2 contradiction
    pool      languages to draw from; None: all that have a file
    draw      of triplets. `paper`: the languages of the three are drawn independently, each uniformly, one triplet for
              each entailment; one whose premise has no contradiction is left out and counted. `repo`, as mSimCSE's
              merge_multi_lingual.py has it: a triplet for each entailment and each language of the premise, the other
              two drawn; where the premise has no contradiction, that of a random premise (counted); commas become
              spaces and double quotes are removed
    sentences of groups: the `premise` of each row, or `both` it and the hypothesis, each a group of its own
    hard_negatives  of groups: a contradiction of the premise, in a language drawn from the pool, if there is one
    key       `premise`: groups with one English sentence (premise or, in `both`, hypothesis) are never each other's
              negatives; `none`: they are, as in the code of mSimCSE
    seed      random seed

    If a premise has several contradictions, the last one is used. Without an English file, the first language by its
    code takes its place. A row that is blank in some language is an error, or with `skip_empty` is skipped and counted;
    so is, in any case, a row without a decided label.
    For triplets and hard negatives, one contradiction per premise, in every language of the pool, is kept in memory as
    UTF-8, and the files are read twice.

    Files of two columns take the label of their row from `labels.<split>.txt` in the folder, as XTREME's test files.
    A model trained on test rows can't report the tasks `xnli` and `language-id`.

    Raises `CorpusError` for a missing folder or language, files of unequal length, and a row that does not have three
    columns, has an unknown label, or a label that differs between languages.
    """
    root = Path(path)
    languages, files = _find_files(root, split, pool)
    labels = locate(root, f"labels.{split}.txt")
    counts = Counter() if counts is None else counts
    drawn = _Draw(languages, key == "premise", counts, seed, draw == "repo", sentences == "both")
    clean = mode == "triplets" and draw == "repo"
    rows = partial(_read_rows, files, split, labels, clean=clean, skip_empty=skip_empty)
    negatives = mode == "triplets" or (mode == "groups" and hard_negatives)
    yield from _draw_groups(drawn, rows, mode, negatives=negatives, file=path)


class _Row(NamedTuple):
    """A row in the languages of the pool; the last premise and hypothesis are those that identify it."""

    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    label: int


def _draw_groups(
    draw: _Draw, read: Callable[[Counter[str]], Iterator[_Row]], mode: Mode, *, negatives: bool, file: str | Path
) -> Iterator[Group]:
    """The groups of rows, which are read twice if they have hard negatives."""
    if negatives:
        rows = (row for row in read(Counter()) if row.label == 2)
        contradictions = {row.premises[-1]: "\0".join(row.hypotheses).encode() for row in rows}
        if not contradictions:
            raise CorpusError("no contradiction to use as hard negative; pass a file with contradictions", file=file)
        draw = replace(draw, contradictions=contradictions, others=[*contradictions.values()])
    make = {"pairs": draw.pairs, "groups": draw.groups, "triplets": draw.triplets}[mode]
    row = None
    for row in read(draw.counts):
        yield from make(row)
    if row is None:
        raise CorpusError("contains no row of this split with a label", file=file)


@dataclass(frozen=True, slots=True)
class _Draw:
    """Makes groups of a row, as `read_xnli` describes, in languages drawn from the pool.

    They are sampled by a hash of the seed and of what identifies the row, so they do not depend on the other rows or
    their order. `contradictions` has the last one of each premise, its languages joined by a character that no text
    contains.
    """

    pool: tuple[str, ...]
    keyed: bool
    counts: Counter[str]
    seed: int = 0
    every_premise: bool = False
    both: bool = False
    contradictions: Mapping[str, bytes] = field(default_factory=dict)
    others: Sequence[bytes] = ()

    def pairs(self, row: _Row) -> Iterator[Group]:
        first, second = (self._draw(side, row.premises[-1], row.hypotheses[-1]) for side in ("premise", "hypothesis"))
        texts, langs = (row.premises[first], row.hypotheses[second]), (self.pool[first], self.pool[second])
        yield Group(texts, langs, extras={"label": row.label})

    def groups(self, row: _Row) -> Iterator[Group]:
        third, size = self._draw("contradiction", row.premises[-1], row.hypotheses[-1]), len(self.pool)
        hard = [text.decode().split("\0")[third] for text in [self.contradictions.get(row.premises[-1])] if text]
        key = row.premises[-1] if self.keyed else ""
        yield Group(row.premises[:size], self.pool, key, tuple(hard), (self.pool[third],) * len(hard))
        if self.both:
            yield Group(row.hypotheses[:size], self.pool, row.hypotheses[-1] if self.keyed else "")

    def triplets(self, row: _Row) -> Iterator[Group]:
        content = ("premise", row.premises[-1], row.hypotheses[-1])
        contradiction = self.contradictions.get(row.premises[-1])
        if row.label == 0 and contradiction is None:
            self.counts["with a random contradiction" if self.every_premise else "without contradiction"] += 1
            contradiction = self.others[self._hash(*content) % len(self.others)] if self.every_premise else None
        if row.label != 0 or contradiction is None:
            return
        for first in range(len(self.pool)) if self.every_premise else [self._draw(*content)]:
            what = (*content[1:], self.pool[first]) if self.every_premise else content[1:]
            second, third = (self._draw(part, *what) for part in ("entailment", "contradiction"))
            texts, langs = (row.premises[first], row.hypotheses[second]), (self.pool[first], self.pool[second])
            hard, key = contradiction.decode().split("\0")[third], row.premises[-1] if self.keyed else ""
            yield Group(texts, langs, key, (hard,), (self.pool[third],))

    def _draw(self, *what: str) -> int:
        """A language's place in the pool."""
        return self._hash(*what) % len(self.pool)

    def _hash(self, *what: str) -> int:
        return int.from_bytes(blake2b("\0".join((str(self.seed), *what)).encode(), digest_size=8).digest(), "little")


def _find_files(root: Path, split: str, pool: str | Iterable[str] | None) -> tuple[tuple[str, ...], list[Path]]:
    """The languages of the pool, sorted, their files, and last the file whose text identifies a row."""
    if not root.is_dir():
        raise CorpusError("not a folder; pass the folder with one file per language", file=root)
    name = re.compile(rf"(?:.*\.)?{re.escape(split)}[-.]([A-Za-z]{{2,3}})\.tsv")
    file_of: dict[str, Path] = {}
    for file in sorted(root.rglob("*.tsv*")):
        if not (match := name.fullmatch(without_compression(file.name))) or not is_language(match[1]):
            continue
        if (code := canonical(match[1])) in file_of:
            raise CorpusError(f"and {file_of[code].name} are both {code}; remove one of them", file=file)
        file_of[code] = file
    wanted = tuple(sorted(set(file_of if pool is None else canonical_list(pool, file=root))))
    if lacking := [code for code in wanted if code not in file_of] or ([] if wanted else ["any language"]):
        others = f"; there are: {', '.join(file_of)}" if file_of else ""
        raise CorpusError(f"no file {split}-<xx>.tsv or *.{split}.<xx>.tsv of {lacking[0]}{others}", file=root)
    return wanted, [file_of[code] for code in (*wanted, "eng" if "eng" in file_of else min(file_of))]


def _read_rows(
    files: Sequence[Path],
    split: str,
    labels: Path | None,
    counts: Counter[str],
    *,
    clean: bool = False,
    skip_empty: bool = False,
) -> Iterator[_Row]:
    """The rows of line-aligned files, of which the text of the last identifies a row.

    `labels` has a label a line, for files of two columns. `clean` replaces commas by spaces and removes double quotes,
    as mSimCSE's code does. Rows without a decided label, and blank ones with `skip_empty`, are counted.
    """
    advice = "remove the row" if len(files) == 1 else f"remove the row in all languages{SKIPPING}"
    for lines in _align(files, [_parse_labels(file, split, labels) for file in files]):
        number, _, _, label = lines[-1]
        for (line, premise, hypothesis, other), file in zip(lines, files, strict=True):
            if other != label:
                problem = f"the label differs from that of {files[-1].name}:{number}; the files are not aligned"
                raise CorpusError(problem, file=file, line=line)
            if label is not None and not skip_empty:
                _require_text((premise, hypothesis), ("premise", "hypothesis"), advice, file, line)
        if label is None:
            counts["undecided"] += 1
            continue
        sides = [tuple(line[1] for line in lines), tuple(line[2] for line in lines)]
        if not all(text.strip() for texts in sides for text in texts):
            counts["empty"] += 1
            continue
        if clean:
            sides = [tuple(text.replace(",", " ").replace('"', "") for text in texts) for texts in sides]
        yield _Row(sides[0], sides[1], label)


def _parse_labels(path: Path, split: str, labels: Path | None) -> Iterator[tuple[int, str, str, int | None]]:
    """Line, premise, hypothesis and label of each row: 0 entailment, 1 neutral, 2 contradiction, None undecided."""
    for line, premise, hypothesis, name in _read_cells(path, split, labels):
        if (label := name.strip().lower()) not in LABELS:
            problem = f"the label {name!r} is not one of {', '.join(filter(None, LABELS))}; correct it"
            raise CorpusError(problem, file=path, line=line)
        yield line, premise, hypothesis, LABELS[label]


def _read_cells(path: Path, split: str, labels: Path | None) -> Iterator[tuple[int, str, str, str]]:
    if path.is_dir():
        files = [locate(path, name) or path / name for name in (f"s1.{split}", f"s2.{split}", f"labels.{split}")]
        for (line, premise), (_, hypothesis), (_, label) in _align(files, map(read_lines, files)):
            yield line, premise, hypothesis, label
    elif suffix_of(path) in (".jsonl", ".json"):
        for line, item in read_records(path):
            if item.get("split", split) != split:
                continue
            values = [item[name] for name in _find_columns([*item], path, line)]
            if any(isinstance(value, dict | list) for value in values):
                raise CorpusError("contains a JSON dict or list for a sentence or a label", file=path, line=line)
            premise, hypothesis, label = ("" if value is None else str(value) for value in values)
            yield line, premise, hypothesis, label
    else:
        yield from _read_table(path, split, labels)


def _read_table(path: Path, split: str, labels: Path | None) -> Iterator[tuple[int, str, str, str]]:
    def infer(first: list[str]) -> Sequence[str] | None:
        if len(first) == 3 and first[2].strip().lower() in LABELS:
            return LAYOUTS[2]
        return LAYOUTS[2][: 2 if labels else 3] if len(first) == 2 else None

    names, rows = read_table(path, implied=infer)
    if labels and len(names) == 2:
        for (line, cells), (_, label) in _align([path, labels], [rows, read_lines(labels)]):
            yield line, cells[0], cells[1], label
        return
    places = [names.index(name) for name in _find_columns(names, path, 1)]
    splits = names.index("split") if "split" in names else None
    for line, cells in rows:
        if splits is None or cells[splits] == split:
            premise, hypothesis, label = (cells[place] for place in places)
            yield line, premise, hypothesis, label


def _align(files: Sequence[Path], streams: Iterable[Iterator[Any]]) -> Iterator[Any]:
    for row in zip_longest(*streams):
        if None in row:
            problem = "has fewer rows than the files with which it must be aligned"
            raise CorpusError(problem, file=files[row.index(None)])
        yield row


def _find_columns(names: Sequence[str], path: Path, line: int) -> list[str]:
    """The names of the columns of premise, hypothesis and label."""
    folded = {name.lower(): name for name in names}
    for layout in LAYOUTS:
        if all(name in folded for name in layout):
            return [folded[name] for name in layout]
    layouts = "; ".join(map(", ".join, LAYOUTS))
    problem = f"has the columns {quote(', '.join(names))}, and not those of premise, hypothesis and label ({layouts})"
    raise CorpusError(problem, file=path, line=line)


def _require_text(cells: Sequence[str], names: Sequence[str], advice: str, path: str | Path, line: int) -> None:
    for name, cell in zip(names, cells, strict=False):
        if not cell.strip():
            raise CorpusError(f"the {name} is empty; {advice}", file=path, line=line)
