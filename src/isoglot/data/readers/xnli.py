"""XNLI: the same premises and hypotheses, row by row, in up to fifteen languages (Conneau et al. 2018).

The languages of a row are sampled by a hash of the option `seed` and the row's own English text, so they do not depend
on the other rows or their order. Two layouts are supported: the machine-translated training set XNLI-MT-1.0
(`multinli.train.<xx>.tsv`) and XTREME's (`dev-<xx>.tsv`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from isoglot.data.groups import Group
from isoglot.data.readers.xnli_rows import Row, find_files, labels_of, read_rows
from isoglot.errors import CorpusError

Mode = Literal["triplets", "groups", "pairs"]
Draw = Literal["paper", "repo"]
_Opposite = dict[str, bytes]  # from an English premise to a contradiction of it in all languages
_CHOICES = {
    "mode": ("triplets", "groups", "pairs"),
    "draw": ("paper", "repo"),
    "sentences": ("premise", "both"),
    "key": ("premise", "none"),
}


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
    code takes its place. A row that is blank in some language is an error, or with `skip_empty` is skipped and counted.
    For triplets and hard negatives, one contradiction per premise, in every language of the pool, is kept in memory as
    UTF-8, and the files are read twice.

    Files of two columns take the label of their row from `labels.<split>.txt` in the folder, as XTREME's test files.
    A model trained on test rows can't report the tasks `xnli` and `language-id`.

    Raises `CorpusError` for a missing folder or language, an unknown choice, files of unequal length, and a row that
    does not have three columns, has an unknown label, or a label that differs between languages.
    """
    for name, value in (("mode", mode), ("draw", draw), ("sentences", sentences), ("key", key)):
        if value not in _CHOICES[name]:
            raise CorpusError(f"{name} must be one of {', '.join(_CHOICES[name])}, not {value!r}", file=path)
    counted = Counter[str]() if counts is None else counts
    languages, files = find_files(Path(path), split, pool)
    drawn = _Drawn(languages, seed, keyed=key == "premise")
    clean = mode == "triplets" and draw == "repo"

    def rows(counts: Counter[str]) -> Iterator[Row]:
        labels = labels_of(Path(path), split)
        return read_rows(files, len(languages), labels=labels, clean=clean, skip_empty=skip_empty, counts=counts)

    wanted = mode == "triplets" or (mode == "groups" and hard_negatives)
    opposite = _contradictions(rows(Counter())) if wanted else {}
    if wanted and not opposite:
        raise CorpusError("no contradiction to use as hard negative; pass a file with contradictions", file=path)
    if mode == "pairs":
        yield from map(drawn.pair, rows(counted))
    elif mode == "groups":
        yield from drawn.groups(rows(counted), opposite, hypotheses=sentences == "both")
    elif draw == "paper":
        yield from drawn.triplets(rows(counted), opposite, counted)
    else:
        yield from drawn.every_premise(rows(counted), opposite, counted)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Groups made of rows, in languages drawn from the pool."""

    pool: tuple[str, ...]
    seed: int
    keyed: bool

    def triplets(self, rows: Iterable[Row], opposite: _Opposite, counts: Counter[str]) -> Iterator[Group]:
        """One triplet for each entailment, in three independent languages; none without a contradiction."""
        for row in rows:
            if row.label == 0 and row.premise in opposite:
                place = self._language("premise", row.premise, row.hypothesis)
                yield self._triplet(row, place, opposite[row.premise])
            elif row.label == 0:
                counts["without contradiction"] += 1

    def every_premise(self, rows: Iterable[Row], opposite: _Opposite, counts: Counter[str]) -> Iterator[Group]:
        """For each entailment one triplet for each language of the premise."""
        any_of = list(opposite.values())
        for row in rows:
            if row.label != 0:
                continue
            contradiction = opposite.get(row.premise)
            if contradiction is None:
                counts["with a random contradiction"] += 1
                contradiction = any_of[self._chance("premise", row.premise, row.hypothesis) % len(any_of)]
            for place in range(len(self.pool)):
                yield self._triplet(row, place, contradiction, self.pool[place])

    def _triplet(self, row: Row, premise: int, contradiction: bytes, *more: str) -> Group:
        content = (row.premise, row.hypothesis, *more)
        second, third = self._language("entailment", *content), self._language("contradiction", *content)
        texts, langs = (row.premises[premise], row.hypotheses[second]), (self.pool[premise], self.pool[second])
        return Group(texts, langs, self._key(row.premise), (_text(contradiction, third),), (self.pool[third],))

    def groups(self, rows: Iterable[Row], opposite: _Opposite, *, hypotheses: bool) -> Iterator[Group]:
        """Each premise in every language, and each hypothesis if requested."""
        for row in rows:
            hard: tuple[str, ...] = ()
            langs: tuple[str, ...] = ()
            if row.premise in opposite:
                place = self._language("contradiction", row.premise, row.hypothesis)
                hard, langs = (_text(opposite[row.premise], place),), (self.pool[place],)
            yield Group(row.premises, self.pool, self._key(row.premise), hard, langs)
            if hypotheses:
                yield Group(row.hypotheses, self.pool, self._key(row.hypothesis))

    def pair(self, row: Row) -> Group:
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


def _contradictions(rows: Iterable[Row]) -> _Opposite:
    """For each English premise the last contradiction, its languages joined by tabs, which no TSV cell contains."""
    return {row.premise: "\t".join(row.hypotheses).encode() for row in rows if row.label == 2}


def _text(joined: bytes, number: int) -> str:
    return joined.decode().split("\t")[number]
