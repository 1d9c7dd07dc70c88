"""XNLI: the same premises and hypotheses, row by row, in up to fifteen languages (Conneau et al. 2018).

The languages of a row are sampled by a hash of the option `seed` and the row's own English text, so they do not depend
on the other rows or their order. Two layouts are supported: the machine-translated training set XNLI-MT-1.0
(`multinli.train.<xx>.tsv`) and XTREME's (`dev-<xx>.tsv`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from isoglot.core.errors import CorpusError
from isoglot.data.files import stored
from isoglot.data.groups import Group
from isoglot.data.languages import canonical, canonical_list, is_language
from isoglot.data.readers.labelled import labelled_rows

Mode = Literal["triplets", "groups", "pairs"]
Draw = Literal["paper", "repo"]


def read_xnli(
    path: str | Path,
    *,
    split: str = "train",
    pool: str | Iterable[str] | None = None,
    mode: Mode = "triplets",
    draw: Draw = "paper",
    sentences: Literal["premise", "both"] = "premise",
    hard_negatives: bool = False,
    key: Literal["premise", "none"] = "premise",
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
    counted = Counter[str]() if counts is None else counts
    languages, files = _find_files(Path(path), split, pool)
    clean = mode == "triplets" and draw == "repo"
    rows = partial(_read_rows, files, stored(Path(path), f"labels.{split}.txt"), clean=clean, skip_empty=skip_empty)
    opposite: dict[str, bytes] = {}
    if mode == "triplets" or (mode == "groups" and hard_negatives):
        # The last contradiction of each premise, its languages joined by tabs, which no TSV cell contains.
        opposite = {row.premise: "\t".join(row.hypotheses).encode() for row in rows(Counter()) if row.label == 2}
        if not opposite:
            raise CorpusError("no contradiction to use as hard negative; pass a file with contradictions", file=path)
    drawn = _Drawn(languages, seed, opposite, list(opposite.values()), counted, keyed=key == "premise")
    for row in rows(counted):
        if mode == "pairs":
            yield drawn.pair(row)
        elif mode == "groups":
            yield from drawn.groups(row, hypotheses=sentences == "both")
        elif row.label == 0:
            yield from drawn.triplets(row, every_premise=draw == "repo")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row in all languages of the pool, with its English premise and hypothesis."""

    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    label: int
    premise: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Groups made of rows, in languages drawn from the pool, with contradictions of their English premises."""

    pool: tuple[str, ...]
    seed: int
    opposite: Mapping[str, bytes]
    contradictions: Sequence[bytes]
    counts: Counter[str]
    keyed: bool

    def triplets(self, row: _Row, *, every_premise: bool) -> Iterator[Group]:
        """A triplet of an entailment in three independent languages, or one for each language of the premise.

        Without a contradiction of the premise, there is none, or one with that of another premise.
        """
        contradiction = self.opposite.get(row.premise)
        if contradiction is None:
            self.counts["with a random contradiction" if every_premise else "without contradiction"] += 1
            if not every_premise:
                return
            chance = self._chance("premise", row.premise, row.hypothesis)
            contradiction = self.contradictions[chance % len(self.contradictions)]
        first = self._language("premise", row.premise, row.hypothesis)
        for place in range(len(self.pool)) if every_premise else (first,):
            content = (row.premise, row.hypothesis, *((self.pool[place],) if every_premise else ()))
            second, third = (self._language(part, *content) for part in ("entailment", "contradiction"))
            texts, langs = (row.premises[place], row.hypotheses[second]), (self.pool[place], self.pool[second])
            hard = contradiction.decode().split("\t")[third]
            yield Group(texts, langs, self._key(row.premise), (hard,), (self.pool[third],))

    def groups(self, row: _Row, *, hypotheses: bool) -> Iterator[Group]:
        """The premise in every language, and the hypothesis if requested."""
        hard: tuple[str, ...] = ()
        langs: tuple[str, ...] = ()
        if row.premise in self.opposite:
            place = self._language("contradiction", row.premise, row.hypothesis)
            hard, langs = (self.opposite[row.premise].decode().split("\t")[place],), (self.pool[place],)
        yield Group(row.premises, self.pool, self._key(row.premise), hard, langs)
        if hypotheses:
            yield Group(row.hypotheses, self.pool, self._key(row.hypothesis))

    def pair(self, row: _Row) -> Group:
        """The premise and the hypothesis with their label."""
        first, second = (self._language(side, row.premise, row.hypothesis) for side in ("premise", "hypothesis"))
        texts, langs = (row.premises[first], row.hypotheses[second]), (self.pool[first], self.pool[second])
        return Group(texts, langs, extras={"label": row.label})

    def _language(self, *what: str) -> int:
        """A language's place in the pool, uniform over `what`."""
        return self._chance(*what) % len(self.pool)

    def _chance(self, *what: str) -> int:
        return int.from_bytes(blake2b("\0".join((str(self.seed), *what)).encode(), digest_size=8).digest(), "little")

    def _key(self, text: str) -> str:
        return text if self.keyed else ""


def _find_files(root: Path, split: str, pool: str | Iterable[str] | None) -> tuple[tuple[str, ...], list[Path]]:
    """The languages of the pool, sorted, their files, and last the file whose text identifies a row."""
    if not root.is_dir():
        raise CorpusError("not a folder; pass the folder with one file per language", file=root)
    name = re.compile(rf"(?:.*\.)?{re.escape(split)}[-.]([A-Za-z]{{2,3}})\.tsv(?:\.(?:gz|xz|bz2))?")
    file_of: dict[str, Path] = {}
    for file in sorted(root.rglob("*.tsv*")):
        if not (match := name.fullmatch(file.name)) or not is_language(match[1]):
            continue
        if (code := canonical(match[1])) in file_of:
            raise CorpusError(f"and {file_of[code].name} are both {code}; remove one of them", file=file)
        file_of[code] = file
    wanted = tuple(sorted(set(file_of if pool is None else canonical_list(pool, file=root))))
    if lacking := [code for code in wanted if code not in file_of] or ([] if wanted else ["any language"]):
        known = f"; there are: {', '.join(file_of)}" if file_of else ""
        raise CorpusError(f"no file {split}-<xx>.tsv or *.{split}.<xx>.tsv of {lacking[0]}{known}", file=root)
    return wanted, [file_of[code] for code in (*wanted, "eng" if "eng" in file_of else min(file_of))]


def _read_rows(
    files: Sequence[Path], labels: Path | None, counts: Counter[str], *, clean: bool, skip_empty: bool
) -> Iterator[_Row]:
    """The rows of line-aligned files, of which the text of the last identifies a row, and the others are the pool.

    `labels` has a label a line, for files of two columns. `clean` replaces commas by spaces and removes double quotes,
    as mSimCSE's code does. Blank rows as in `read_xnli`.
    """
    for lines in zip_longest(*(labelled_rows(file, labels=labels) for file in files)):
        if None in lines:
            short = files[lines.index(None)]
            raise CorpusError("has fewer rows than the files of other languages; they must be aligned", file=short)
        number, _, _, label = lines[-1]
        for (line, premise, hypothesis, other), path in zip(lines, files, strict=True):
            if other != label:
                what = f"the label differs from that of {files[-1].name}:{number}; the files are not aligned"
                raise CorpusError(what, file=path, line=line)
            if not skip_empty and not (premise.strip() and hypothesis.strip()):
                what = f"the {'hypothesis' if premise.strip() else 'premise'} is empty"
                what += "; pass skip_empty=true to leave the row out in all languages"
                raise CorpusError(what, file=path, line=line)
        sides = [[line[1] for line in lines], [line[2] for line in lines]]
        if label is None:
            counts["undecided"] += 1
            continue
        if not all(text.strip() for texts in sides for text in texts):
            counts["empty"] += 1
            continue
        if clean:
            sides = [[text.replace(",", " ").replace('"', "") for text in texts] for texts in sides]
        premises, hypotheses = map(tuple, sides)
        yield _Row(premises[:-1], hypotheses[:-1], label, premises[-1], hypotheses[-1])
