"""`isoglot.mine`: finds pairs in one or two sides of sentences, with a model or with vectors.

Lists are mined in memory. For files, a work folder keeps sentences, vectors and neighbours: the same call resumes from
it after a kill, and it is removed when the pairs are written.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, overload

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import Minimum, PositiveInt, check_arguments, check_fields
from isoglot.core.errors import EncoderError, shown
from isoglot.data.files import atomic_write, check_outputs, digest, exclusive, work_folder
from isoglot.data.splitting import splitter
from isoglot.data.vectors import as_array, open_table, require_finite
from isoglot.mining import formats
from isoglot.mining.formats import MinedPair, PairList
from isoglot.mining.sentences import (
    Side,
    Source,
    all_of,
    different_text,
    gather,
    identified_as,
    in_script_of,
    is_file,
    side_argument,
    similar_lengths,
)
from isoglot.model import Model, encode, load
from isoglot.model.resumable import encode_file
from isoglot.scale import Cluster, Shards, encode_shards, neighbours_shards, open_shards
from isoglot.scale.encoding import NOTE
from isoglot.search import (
    DIRECTIONS,
    MARGINS,
    Checkpoint,
    Estimate,
    Neighbours,
    Pairs,
    Quality,
    approximate,
    choose,
    estimate,
    neighbours,
    others,
    recall,
    tune,
)
from isoglot.search.faiss_index import PROBES
from isoglot.search.pairs import check_choice

Progress = Callable[[int, int | None], None]
Report = Callable[[str], None]

NAMES = ("sources", "targets")
_SIDES = ("source", "target")  # names of files in the work folder
_BLOCK = 8192  # rows of vectors copied at a time
_PIECES = ".pieces"  # suffix of the folder of a side's vectors that workers made
_KNOWN = (  # paths in the work folder
    r"neighbours\.bin|(source|target)\.(txt|npy|npy\.journal|given\.npy)"
    rf"|(source|target)\.[0-9a-f]{{12}}\{_PIECES}/({re.escape(NOTE)}|(source|target)\.txt-\d+\.npy(\.partial(\.journal)?)?)"
)


@dataclass(frozen=True, eq=False)  # `==` of arrays is not a bool
class MinedPairs(PairList[MinedPair]):
    """Mined pairs, best first: `len`, iteration and indexing give `MinedPair`s.

    rows       row numbers and scores as arrays
    threshold  lowest score kept; None: all pairs were kept
    quality    with gold pairs, the precision, recall and F1 at this threshold
    estimated  with an estimated threshold, the expected precision and recall
    languages  of the two sides, if known
    """

    rows: Pairs
    sides: tuple[Side, Side]
    threshold: float | None = None
    quality: Quality | None = None
    estimated: Estimate | None = None
    languages: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> MinedPair: ...
    @overload
    def __getitem__(self, at: slice) -> list[MinedPair]: ...
    def __getitem__(self, at: int | slice) -> MinedPair | list[MinedPair]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        row = int(self.rows.source[at]), int(self.rows.target[at]), float(self.rows.score[at])
        return next(formats.rows([row], *self.sides))

    def __iter__(self) -> Iterator[MinedPair]:
        columns = (self.rows.source.tolist(), self.rows.target.tolist(), self.rows.score.tolist())
        return formats.rows(zip(*columns, strict=True), *self.sides)

    def __repr__(self) -> str:
        lines = [f"{pair.score:.3f}\t{pair.source}\t{pair.target}" for pair in self[:10]]
        more = [f"… {len(self) - 10:,} more"] if len(self) > 10 else []
        cut = "" if self.threshold is None else f" with a score of at least {self.threshold:.6f}"
        return "\n".join([f"{len(self):,} pairs{cut}", *lines, *more])

    @check_arguments()
    def above(self, threshold: float) -> MinedPairs:
        """The pairs whose score is at least the threshold."""
        return MinedPairs(self.rows.above(threshold), self.sides, threshold, languages=self.languages)

    def _inputs(self) -> list[str]:
        """The files that were mined."""
        return [side.name for side in self.sides if side.first]


@check_fields
@dataclass(frozen=True, slots=True)
class Filters:
    """Which sentences and pairs take no part in mining.

    keep_duplicates  keep all of identical sentences, instead of the first. They compete for the same translation
    drop_identical   drop pairs of identical sentences
    length_ratio     maximum byte-length ratio of a pair, longer/shorter
    check_language   skip sentences in another language than that of the side: "script" compares scripts, a function
                     from text to language code identifies it
    """

    keep_duplicates: bool = False
    drop_identical: bool = False
    length_ratio: Annotated[float, Minimum(1)] | None = None
    check_language: Literal["script"] | Callable[[str], str] | None = None


@check_fields
@dataclass(frozen=True, slots=True)
class Computation:
    """How vectors are computed and compared.

    prompt   prefix of every text, instead of the model's own prompt
    pooling  pooling (mean, cls, ...), instead of the model's own. For a model that is loaded by name
    dtype    type of the vectors: float32 or float16
    budget   maximum working memory of the comparison: bytes, or such as 2GB
    index    approximate search with FAISS: ivf, ivf-pq, hnsw, or an index_factory string; None: exact
    probes   number of IVF cells to probe; requires `index`
    cluster  encode and compare in pieces; for a model's name and files, or for vectors. Comparing uses no accelerators
    """

    prompt: str | None = None
    pooling: str | None = None
    dtype: str = "float32"
    budget: int | str = "256MB"
    index: str | None = None
    probes: PositiveInt = PROBES
    cluster: Cluster | None = None


@check_fields
@dataclass(frozen=True, slots=True)
class Output:
    """The file that pairs are written to, and the folder from which the same call resumes.

    path       file; None: only the work folder is written
    format     output format: tsv, jsonl, tmx, parquet or moses; None: from the suffix
    write_ids  write ids, or line numbers, with the pairs; None: if ids were read
    work       folder for intermediate files, kept: another threshold, margin or format then encodes nothing again;
               None: OUTPUT.work, removed at the end. For mining of files
    every      seconds between checkpoints of the comparison
    """

    path: str | Path | None = None
    format: str | None = None
    write_ids: bool | None = None
    work: str | Path | None = None
    every: Annotated[float, Minimum(0)] = 60.0


@check_arguments()
def mine(
    model: Model | str | Path | None,
    sources: Source,
    targets: Source | None = None,
    *,
    k: PositiveInt = 4,
    margin: str = "ratio",
    direction: str = "max",
    threshold: float | Literal["estimate", "all"] | None = None,
    gold: str | Path | Iterable[tuple[str | int, str | int]] | None = None,
    languages: str | Sequence[str] | None = None,
    ids: bool | Sequence[Sequence[str]] = False,
    split: bool = False,
    columns: Mapping[str, str] | None = None,
    vectors: Sequence[NDArray[Any] | str | Path] | NDArray[Any] | str | Path | None = None,
    device: str = "auto",
    filters: Filters | None = None,
    computation: Computation | None = None,
    output: str | Path | Output | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
) -> MinedPairs:
    """Find the pairs that translate each other on two sides, or the paraphrases on one.

    model        a model or a model's name; None with `vectors`
    sources      sentences, or a file: one sentence per line, a table, or a document (.docx, .html, .md, .srt). Lists
                 are mined in memory, files in bounded memory
    targets      the other side; None: pairs within the sources
    k            number of neighbours per sentence
    margin       margin of a pair: "ratio", "distance" or "absolute"
    direction    selection of pairs: "max" (each sentence in one pair), "intersection", "forward" or "backward"
    threshold    minimum score: a number; "estimate": one that is estimated from the scores; "all": keep all pairs;
                 None: of two sides the estimated one if it is reliable, else all
    gold         known pairs to tune the threshold on: a file of tab-separated ids or line numbers, or pairs of ids,
                 line numbers (files) or indices (lists)
    languages    languages of the two sides; None: from the file names. Codes, such as "deu,eng"
    ids          True: the lines of the files are id, tab, sentence; for lists: a list of ids for each side
    split        split every line or paragraph into sentences; ids are then numbers of sentences
    columns      of files that are tables: names of columns, with what they are, such as {"english": "text"}; None: the
                 column `text`, or the only one
    vectors      instead of a model: a table (N, D), or a .npy file, for each side
    device       for a model that is loaded by name
    filters      which sentences and pairs take no part: see `isoglot.mining.Filters`
    computation  how vectors are computed and compared, for instance approximately or on a cluster: see
                 `isoglot.mining.Computation`
    output       write the pairs to this file too, and resume from its work folder: a name, or `isoglot.mining.Output`
    progress     called with (done, total) of the current step, in sentences (with a cluster, encoding is in pieces)
    report       called with one-line messages about the steps

    Raises `TypeError` and `ValueError` for wrong arguments, and `IsoglotError`s for files, models and vectors.
    """
    given = [_side_argument(model, name, value) for name, value in zip(NAMES, (sources, targets), strict=True)
             if name == "sources" or value is not None]  # fmt: skip
    tables = _vectors_argument(model, vectors, len(given))
    names = [str(one) if isinstance(one, Path) else name for one, name in zip(given, NAMES, strict=False)]
    files = [one for one in given if isinstance(one, Path)]
    say: Report = report or (lambda _message: None)
    filters, computation = filters or Filters(), computation or Computation()
    destination = output if isinstance(output, Output) else Output(output)
    _check_selection(margin, direction, threshold, gold)
    given_ids = _ids_argument(ids, given)
    if split and any(given_ids):
        raise ValueError("split and ids exclude each other; ids of sentences are not those of what is split")
    memory = size_of(computation.budget)
    _check_cluster(computation, device, model, tables, files=len(files) == len(given))
    if destination.work is not None and len(files) < len(given):
        raise TypeError("work resumes mining of files; lists are mined in memory: leave it out, or pass files")
    path = None if destination.path is None else Path(destination.path)
    check_choice("format", destination.format or "tsv", formats.FORMATS)
    pair = formats.languages_argument(languages, len(given))
    pair = pair or formats.languages_of(path, names if len(files) == len(given) else [])
    with_ids = any(given_ids) if destination.write_ids is None else destination.write_ids
    with ExitStack() as stack:
        inputs: list[Any] = [model if isinstance(model, str | Path) else None, *files]
        inputs += [one for one in (*tables, gold) if is_file(one)]
        if path is not None:
            form = formats.format_argument(path, destination.format, pair)
            written = formats.written(path, form, pair, with_ids)
            check_outputs(*written, inputs=inputs)
            inputs += written
            stack.enter_context(exclusive(path))
        folder = _work(stack, files, destination, inputs)
        sides = [
            gather(
                one, folder / f"{_SIDES[at]}.txt" if folder and isinstance(one, Path) else None, name=name,
                ids=given_ids[at], columns=columns, split=splitter(pair and pair[at]) if split else None,
                deduplicate=not filters.keep_duplicates,
                keep=_language_filter(filters.check_language, pair, at), report=say,
            )
            for at, (one, name) in enumerate(zip(given, names, strict=True))
        ]  # fmt: skip
        true_pairs = None if gold is None else formats.gold_of(gold, sides[0], sides[-1])
        if tables:
            arrays = _selected(tables, sides, folder)
        elif computation.cluster is not None:
            arrays = _in_pieces(str(model), sides, cast("Path", folder), computation, computation.cluster, progress)
        else:
            arrays = _encoded(model, sides, folder, computation, device, progress, say)
        within = len(sides) == 1
        checkpoint = None
        if folder is not None and (destination.work is not None or path is not None):
            checkpoint = Checkpoint(folder / "neighbours.bin", destination.every, say)
        found = _neighbours(arrays[0], arrays[-1], k, within, memory, computation, checkpoint, progress, say)
        allowed = [different_text(sides[0], sides[-1])] if filters.drop_identical else []
        if filters.length_ratio is not None:
            allowed.append(similar_lengths(sides[0], sides[-1], float(filters.length_ratio)))
        rows = choose(found, margin=margin, direction=direction, allowed=all_of(allowed), within=within)
        mined = _cut(rows, found, (sides[0], sides[-1]), threshold, true_pairs, margin, pair, say)
        if path is not None:
            formats.write(path, form, mined, languages=pair, ids=with_ids)
        return mined


def _side_argument(model: object, name: str, value: Any) -> Path | Sequence[str]:
    example = "for example isoglot.mine(isoglot.load(), sources, targets)"
    if isinstance(model, np.ndarray):
        problem = "expects a model first, not an array; isoglot.search.mine(x, y) pairs vectors"
        raise TypeError(f"mine(model, sources, targets) {problem}")
    if model is not None and not isinstance(model, Model | str | Path):
        kind = type(model).__name__
        raise TypeError(
            f"mine(model, sources, targets) expects a model or a model's name first, not a {kind}; {example}"
        )
    return side_argument(name, value, example)


def _check_selection(margin: str, direction: str, threshold: float | str | None, gold: object) -> None:
    if threshold is not None and gold is not None:
        raise ValueError("threshold and gold exclude each other; pass one of them")
    if isinstance(threshold, str):
        check_choice("threshold", threshold, ("estimate", "all"))
    check_choice("margin", margin, MARGINS)
    check_choice("direction", direction, DIRECTIONS)


def _ids_argument(ids: Any, sides: Sequence[Path | Sequence[str]]) -> list[bool | list[str]]:
    """The `ids` of each side."""
    if isinstance(ids, bool):
        return [ids] * len(sides)
    advice = "pass a list of ids for each side, or True for files whose lines begin with an id"
    given: list[bool | list[str]] = []
    for at, some in enumerate(ids):
        if isinstance(some, str) or not isinstance(some, Iterable):
            raise TypeError(f"ids[{at}] is {shown(some)}; {advice}")
        names = list(some)
        if None in names:
            raise TypeError(f"ids[{at}][{names.index(None)}] is None; {advice}")
        given.append([str(name) for name in names])
    if len(given) != len(sides):
        raise ValueError(f"ids has {len(given)} lists for {len(sides)} sides; {advice}")
    if any(isinstance(side, Path) for side in sides):
        raise TypeError(f"ids are lists, but the sentences are in files; {advice}")
    return given


def _vectors_argument(model: object, vectors: Any, count: int) -> list[NDArray[Any] | str | Path]:
    if vectors is None:
        if model is None:
            raise TypeError("mine needs a model or vectors; pass a model, a model's name, or vectors=(x, y)")
        return []
    if model is not None:
        raise TypeError("mine takes a model or vectors, not both; pass None as the model")
    single = is_file(vectors) or getattr(vectors, "ndim", 0) == 2
    if not single and (isinstance(vectors, Mapping) or not isinstance(vectors, Iterable)):
        raise TypeError(f"vectors is {shown(vectors)}; pass a table (N, D), or a .npy file, for each side")
    tables = [vectors] if single else list(vectors)
    if len(tables) != count:
        raise ValueError(f"{len(tables)} tables of vectors for {count} sides; pass one for each")
    return [_table(one, at) for at, one in enumerate(tables)]


def _table(given: Any, at: int) -> NDArray[Any] | str | Path:
    try:
        return given if is_file(given) or type(given) is np.ndarray else as_array(given)
    except ValueError as error:
        raise ValueError(f"vectors[{at}] can't be read as a table (N, D): {error}") from None


def _check_cluster(
    computation: Computation, device: str, model: object, tables: Sequence[object], *, files: bool
) -> None:
    if computation.cluster is None:
        return
    if device != "auto":
        raise ValueError(f"workers are on an accelerator with gpus, else on the CPU; leave out device={device}")
    if computation.index:
        raise ValueError("a cluster compares exactly; leave out index")
    if not tables and (isinstance(model, Model) or not files):
        raise ValueError("a cluster loads the model on every worker; pass the model's name and files, or vectors")


def _work(stack: ExitStack, files: Sequence[Path], destination: Output, inputs: Sequence[Any]) -> Path | None:
    """The work folder; None for lists alone."""
    if not files:
        return None
    work, output = destination.work, destination.path
    if work is None and output is None:  # maps of its files stay valid after it is removed
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-", ignore_cleanup_errors=True)))
    place = Path(work) if work is not None else Path(f"{output}.work")
    return stack.enter_context(
        work_folder(place, "a work folder of mine", _KNOWN, keep=work is not None, inputs=inputs)
    )


def _language_filter(check: object, pair: tuple[str, str] | None, at: int) -> Callable[[str], bool] | None:
    if check is None:
        return None
    if pair is None:
        raise ValueError("check_language needs the languages of the sides; pass languages, such as 'deu,eng'")
    if check == "script":
        return in_script_of(pair[at])
    if not callable(check):
        raise ValueError(f'check_language is {shown(check)}; pass "script" or a function from text to language code')
    return identified_as(pair[at], check)


def _selected(
    tables: Sequence[NDArray[Any] | str | Path], sides: Sequence[Side], folder: Path | None
) -> list[NDArray[Any] | Shards]:
    """The vectors of the rows of each side, from those of all its sentences; those of a file are copied if rows are
    left out. Raises `EncoderError` for another number of vectors than sentences, `CorpusError` for a row not finite.
    """
    found: list[NDArray[Any] | Shards] = []
    for at, (given, side) in enumerate(zip(tables, sides, strict=True)):
        name = f"vectors[{at}]" if isinstance(given, np.ndarray) else str(given)
        table = given if isinstance(given, np.ndarray) else open_table(given)
        if table.ndim != 2 or table.dtype.kind != "f":
            raise ValueError(f"{name} must be (N, D) floats, got {table.dtype} {table.shape}")
        if len(table) != len(side.rows):
            raise EncoderError(
                f"{name}: {len(table)} rows for the {len(side.rows)} sentences of {side.name}; encode these sentences"
            )
        require_finite(table, name)
        if len(side) < len(table):
            into = folder / f"{_SIDES[at]}.given.npy" if folder and not isinstance(given, np.ndarray) else None
            table = _rows(table, side, into)
        found.append(table)
    return found


def _rows(table: NDArray[Any], side: Side, into: Path | None) -> NDArray[Any]:
    if into is None:
        return np.asarray(table[side.places])
    with atomic_write(into, binary=True) as stream:
        shape = (len(side), table.shape[1])
        header = {"descr": np.lib.format.dtype_to_descr(table.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, len(side), _BLOCK):
            stream.write(np.ascontiguousarray(table[side.places[start : start + _BLOCK]]).data)
    return open_table(into)


def _encoded(
    model: object,
    sides: Sequence[Side],
    folder: Path | None,
    computation: Computation,
    device: str,
    progress: Progress | None,
    say: Report,
) -> list[NDArray[Any] | Shards]:
    prompt, pooling = computation.prompt, computation.pooling
    if isinstance(model, Model):
        if pooling is not None:
            raise ValueError("pooling is set when a model is loaded; pass it to isoglot.load")
        encoder = model
    else:
        encoder, prompt = load(cast("str | Path", model), prompt=prompt, pooling=pooling, device=device), None
    say(encoder.describe())
    settings: dict[str, Any] = {
        "normalize_embeddings": True, "dtype": computation.dtype, "prompt": prompt, "progress": progress
    }  # fmt: skip
    tables: list[NDArray[Any] | Shards] = []
    for at, side in enumerate(sides):
        say(f"encoding {side.name}: {len(side):,} sentences")
        if side.first and folder is not None:
            into = folder / f"{_SIDES[at]}.npy"
            tables.append(encode_file(encoder, side.texts, output=into, keep=True, report=say, **settings))
        else:
            texts = side.texts if isinstance(side.texts, list) else list(side.texts)
            tables.append(encode(encoder, texts, **settings))
    return tables


def _in_pieces(
    model: str,
    sides: Sequence[Side],
    folder: Path,
    computation: Computation,
    cluster: Cluster,
    progress: Progress | None,
) -> list[NDArray[Any] | Shards]:
    """Vectors by workers, in folders whose names depend on everything that the vectors depend on."""
    settings = {"normalize_embeddings": True}
    settings |= {name: getattr(computation, name) for name in ("dtype", "prompt", "pooling")}
    found: list[NDArray[Any] | Shards] = []
    for name in _SIDES[: len(sides)]:
        text = folder / f"{name}.txt"
        mark = hashlib.sha256(f"{digest(text)} {model} {settings} {cluster.gpus > 0}".encode()).hexdigest()[:12]
        into = text.with_suffix(f".{mark}{_PIECES}")
        found.append(encode_shards(model, [text], into, cluster=cluster, settings=settings, progress=progress))
    return found


def _neighbours(
    x: Shards | NDArray[Any],
    y: Shards | NDArray[Any],
    k: int,
    within: bool,
    budget: int,
    computation: Computation,
    checkpoint: Checkpoint | None,
    progress: Progress | None,
    say: Report,
) -> Neighbours:
    """The k neighbours of each row on the other side, or of each row `within` the one table among the others."""
    count = min(len(x), len(y)) - within
    if k > count:
        say(f"k is {k}: only {max(0, count):,} neighbours exist; using all of them")
    say(f"comparing {len(x):,} with {len(y):,} sentences")
    k += within  # a row is its own neighbour

    def in_sentences(done: int, total: int | None) -> None:
        if progress is not None and total:
            progress(done * len(x) // total, len(x))

    settings: dict[str, Any] = {"budget": budget, "checkpoint": checkpoint, "progress": in_sentences}
    if computation.cluster is not None:
        found = neighbours_shards(_mapped(x), _mapped(y), k, cluster=computation.cluster, **settings)
    elif computation.index is not None:
        found = _approximate(x, y, k, computation.index, computation.probes, budget, say)
    else:
        found = neighbours(cast("NDArray[Any]", x), cast("NDArray[Any]", y), k, metric="cosine", **settings)
    return others(found) if within else found


def _mapped(vectors: Shards | NDArray[Any]) -> Shards | NDArray[Any]:
    """A memory map as its file, which the workers read; an array would be sent to each."""
    if isinstance(vectors, np.memmap) and vectors.filename:
        shards = open_shards(Path(vectors.filename))
        if shards.shape == vectors.shape:  # a part of the file only: send the array
            return shards
    return vectors


def _approximate(x: Any, y: Any, k: int, index: str, probes: int, budget: int, say: Report) -> Neighbours:
    began = time.monotonic()
    found = approximate(x, y, k, index=index, probes=probes, budget=budget)
    share = recall(x, y, found, budget=budget)
    say(f"{index}: {time.monotonic() - began:.0f} s, recall {share:.2%} (of the true neighbours of a sample)")
    return found


def _cut(
    rows: Pairs,
    found: Neighbours,
    sides: tuple[Side, Side],
    threshold: float | Literal["estimate", "all"] | None,
    gold: list[tuple[int, int]] | None,
    margin: str,
    languages: tuple[str, str] | None,
    say: Report,
) -> MinedPairs:
    if gold is not None:
        best = tune(rows, [(min(pair), max(pair)) for pair in gold] if sides[0] is sides[1] else gold)
        quality = f"precision {best.precision:.1%}, recall {best.recall:.1%}, F1 {best.f1:.1%}"
        say(f"threshold {best.threshold:.6f}, tuned on these pairs: {quality}")
        return MinedPairs(rows.above(best.threshold), sides, best.threshold, quality=best, languages=languages)
    can_estimate = sides[0] is not sides[1] and len(rows) > 0 and found.forward_scores.shape[1] > 1
    if threshold == "estimate" or (threshold is None and can_estimate):
        guess = estimate(rows, found, margin=margin)
        quality = f"estimated: precision {guess.precision:.0%}, recall {guess.recall:.0%}"
        doubt = "" if guess.reliable else "the scores show no clear threshold, and there may be few true pairs or none"
        if threshold == "estimate" or guess.reliable:
            say(f"threshold {guess.threshold:.6f}, {quality}{doubt and f'; {doubt}: check the pairs'}")
            return MinedPairs(rows.above(guess.threshold), sides, guess.threshold, estimated=guess, languages=languages)
        say(f"all pairs are kept, since {doubt}; pass a threshold to keep fewer")
    limit = threshold if isinstance(threshold, float | int) else None
    return MinedPairs(rows if limit is None else rows.above(limit), sides, limit, languages=languages)


def size_of(size: int | str) -> int:
    """Bytes, from `64MB`, `1.5GB` or a plain number. Raises `ValueError`."""
    number, factor = str(size).strip().upper().removesuffix("B"), 1
    for letter, power in (("K", 10), ("M", 20), ("G", 30)):
        if number.endswith(letter):
            number, factor = number[:-1], 1 << power
    try:
        return int(float(number) * factor)
    except (ValueError, OverflowError):
        raise ValueError(f"{size!r} is not a size; pass, for instance, 512MB or 2GB") from None
