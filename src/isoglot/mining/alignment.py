"""`isoglot.align`: which sentences of two versions of one document translate each other, in order, n to m."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, Range, check_arguments
from isoglot.core.errors import CorpusError
from isoglot.core.machine import check_memory
from isoglot.core.progress import Progress, Report
from isoglot.data.splitting import splitter
from isoglot.mining import formats
from isoglot.mining.formats import Languages, MinedPair, PairList
from isoglot.mining.path import Runs, align_runs
from isoglot.mining.sentences import Source, check_side, read_sentences
from isoglot.model import Model, load

MOST = 4  # sentences in one alignment
SKIP = 0.6  # chosen on texts of `benchmarks/align.py --part dev`
WIDTH = 20
NAMES = ("source", "target")
_EXAMPLE = "for example isoglot.align(english, german)"
_NO_SPACE = re.compile(r"[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]$")  # Chinese and Japanese


class Alignment(MinedPair):
    """A `MinedPair` whose sides are one or several sentences: `source_ids` and `target_ids` are their ids.

    `source` and `target` are the joined sentences. The `score` is 1 for equal vectors, and 0 for sentences as similar
    as any of the two documents.
    """

    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]

    def __new__(
        cls, score: float, source: str, target: str, source_ids: tuple[int, ...] = (), target_ids: tuple[int, ...] = ()
    ) -> Alignment:
        """An alignment; `source_id` and `target_id` are the ids as text, separated by commas."""
        ids = (",".join(map(str, some)) for some in (source_ids, target_ids))
        alignment = cast("Alignment", super().__new__(cls, score, source, target, *ids))
        alignment.source_ids, alignment.target_ids = source_ids, target_ids
        return alignment

    @property
    def kind(self) -> str:
        """Numbers of sentences, such as 1-2."""
        return f"{len(self.source_ids)}-{len(self.target_ids)}"


@dataclass(frozen=True, eq=False, repr=False)
class Alignments(PairList[Alignment]):
    """The alignments in the order of the documents: `len`, iteration and indexing give `Alignment`s.

    items      the alignments
    left_out   ids of the sentences of each side that are in no alignment
    languages  of the two sides, if known
    files      those that were read
    """

    items: list[Alignment]
    left_out: tuple[list[int], list[int]]
    languages: Languages = None
    files: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def _at(self, place: int) -> Alignment:
        return self.items[place]

    def _inputs(self) -> Sequence[str]:
        return self.files

    def _title(self) -> str:
        return f"{len(self):,} alignments"

    @property
    def counts(self) -> Counter[str]:
        """How many alignments there are of each kind, such as 1-2, and sentences that are left out: 1-0 and 0-1."""
        counts = Counter(one.kind for one in self.items)
        return counts + Counter({"1-0": len(self.left_out[0]), "0-1": len(self.left_out[1])})


@check_arguments()
def align(
    source: Source,
    target: Source,
    *,
    model: Model | str | Path | None = None,
    most: Annotated[int, Range(2)] = MOST,
    skip: Annotated[float, Range(0)] = SKIP,
    width: PositiveInt = WIDTH,
    min_score: float | None = None,
    split: bool = False,
    languages: str | Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    device: str = "auto",
    output: str | Path | None = None,
    format: str | None = None,
    write_ids: bool = False,
    progress: Progress | None = None,
    report: Report | None = None,
) -> Alignments:
    """Align the sentences of two versions of one document, in order.

    source      sentences, or a file: one sentence per line, a table, or a document (.docx, .html, .md, .srt, .vtt)
    target      the other version
    model       a model or a model's name; None: the default model
    most        maximum number of sentences in one alignment, both sides together
    skip        cost of leaving out one sentence: 0 leaves out all, 1 only what nothing else is left for
    width       distance in sentences from a first path that is searched; more finds the way around longer omissions
    min_score   minimum score of an alignment, of at most 1
    split       split every line or paragraph into sentences
    languages   languages of the two sides; None: from the file names. Codes, such as "deu,eng"
    columns     of files that are tables: names of columns, with what they are, such as {"english": "text"}; None: the
                column `text`, or the only one
    device      for a model that is loaded by name
    output      write the alignments to this file too
    format      output format: `FORMATS` or moses; None: from the suffix
    write_ids   write the ids of the sentences with the alignments
    progress    called with (done, total) of the current step
    report      called with one-line messages about the steps

    Ids are indices of lists, and line numbers, from 1, of files (numbers of texts of documents, and of rows of tables,
    without the header and blank ones); with `split`, they count sentences. Blank sentences are left out. Raises
    `TypeError` and `ValueError` for wrong arguments, and `IsoglotError`s for files and models.
    """
    documents = [check_side(name, side, _EXAMPLE) for name, side in zip(NAMES, (source, target), strict=True)]
    files = [str(side) for side in documents if isinstance(side, Path)]
    formats.check_format(format or "tsv")
    if skip == np.inf:
        raise ValueError("skip is infinite; pass a number, such as 1")
    guess = formats.guess_languages(Path(output) if output else None, files if len(files) == 2 else [])
    pair = formats.check_languages(languages, 2) or guess
    with ExitStack() as stack:
        if output is not None:
            inputs = [model if isinstance(model, str | Path) else None, *files]
            opened = formats.open_output(Path(output), format, pair, ids=write_ids, inputs=inputs)
            write, _ = stack.enter_context(opened)
        sides = []
        for at, (side, name) in enumerate(zip(documents, NAMES, strict=True)):
            divide = splitter(pair and pair[at]) if split else None
            sides.append(_read_side(side, name, read_sentences(side, columns=columns, split=divide)))
        encoder = model if isinstance(model, Model) else load(model, device=device)
        say = report or (lambda _message: None)
        say(encoder.describe())
        longest = most - 1
        count = sum(len(side.texts) for side in sides) * longest
        check_memory(8 * count * encoder.dim, "cpu", f"vectors of {count:,} runs of sentences")
        x, y = (_encode_runs(encoder, side.texts, longest, progress) for side in sides)
        path, scores = align_runs(x, y, most=most, skip=float(skip), width=width)
        minimum = -np.inf if min_score is None else min_score
        items = [one for one in _read_path(path, scores, *sides) if one.score >= minimum]
        aligned = [{*one.source_ids} for one in items], [{*one.target_ids} for one in items]
        left_out = [sorted({*side.ids}.difference(*ids)) for side, ids in zip(sides, aligned, strict=True)]
        alignments = Alignments(items, (left_out[0], left_out[1]), pair, tuple(files))
        say(f"alignments: {', '.join(f'{count:,} {kind}' for kind, count in sorted(alignments.counts.items()))}")
        if output is not None:
            write(alignments)
        return alignments


class _Side(NamedTuple):
    """The sentences of a side that are not blank, and their ids."""

    texts: list[str]
    ids: list[int]


def _read_side(document: Path | list[str], name: str, texts: Iterable[str]) -> _Side:
    first = int(isinstance(document, Path))
    rows = [(number, text.strip()) for number, text in enumerate(texts, first) if text.strip()]
    if not rows:
        raise CorpusError("contains no sentence to align", file=document if isinstance(document, Path) else name)
    return _Side([text for _, text in rows], [number for number, _ in rows])


def join_sentences(texts: Sequence[str]) -> str:
    """The sentences as one text: with spaces, except after Chinese and Japanese characters."""
    return "".join(text if _NO_SPACE.search(text) else f"{text} " for text in texts).rstrip(" ")


def _encode_runs(model: Model, texts: list[str], longest: int, progress: Progress | None) -> Runs:
    """The runs of up to `longest` sentences; lengths are bytes of UTF-8."""
    runs = [(length - 1, start) for length in range(1, longest + 1) for start in range(len(texts) - length + 1)]
    joined = (join_sentences(texts[start : start + length + 1]) for length, start in runs)
    vectors = np.zeros((longest, len(texts), model.dim), np.float32)
    vectors[tuple(np.array(runs).T)] = model.encode(joined, normalize_embeddings=True, progress=progress)
    return Runs.of(vectors, [len(text.encode()) for text in texts])


def _read_path(path: NDArray[np.int64], scores: NDArray[np.float64], x: _Side, y: _Side) -> Iterator[Alignment]:
    for (i, j), (k, end), score in zip(path[:-1].tolist(), path[1:].tolist(), scores.tolist(), strict=True):
        if k > i and end > j:
            sources, targets = tuple(x.ids[i:k]), tuple(y.ids[j:end])
            yield Alignment(score, join_sentences(x.texts[i:k]), join_sentences(y.texts[j:end]), sources, targets)
