"""`isoglot.mine`: finds pairs in one or two sides of sentences, with a model or with vectors.

Lists are mined in memory. For files, a work folder keeps sentences, vectors and neighbours: the same call resumes from
it after a kill, and it is removed when the pairs are written.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from isoglot import search
from isoglot.core.arguments import PositiveInt, Range, as_array, check_arguments, check_fields
from isoglot.core.errors import EncoderError, quote
from isoglot.core.progress import Progress, Report
from isoglot.data.files import digest, work_folder
from isoglot.data.splitting import splitter
from isoglot.data.store import write_rows
from isoglot.data.vectors import open_table, require_finite
from isoglot.mining import formats, sentences
from isoglot.mining.formats import Gold, Languages, MinedPair, PairList
from isoglot.mining.sentences import Side, Source, is_file
from isoglot.model import Model, encode, load
from isoglot.model.finding import find
from isoglot.model.resumable import encode_file
from isoglot.scale import Cluster, encode_shards, neighbours_shards, open_shards
from isoglot.scale.mining import Table
from isoglot.search import Checkpoint, Estimate, Neighbours, Pairs, Quality
from isoglot.search.blocks import Direction, Margin
from isoglot.search.faiss_index import PROBES

NAMES = ("sources", "targets")
_EXAMPLE = "for example isoglot.mine(isoglot.load(), sources, targets)"
_SIDES = ("source", "target")  # names of files in the work folder
_BLOCK = 8192  # rows of vectors copied at a time


@dataclass(frozen=True, eq=False, repr=False)  # `==` of arrays is not a bool
class MinedPairs(PairList[MinedPair]):
    """Mined pairs, best first: `len`, iteration and indexing give `MinedPair`s.

    rows       row numbers of `sides`, without blank and repeated sentences, and scores as arrays; the places in what
               was passed are `source_id` and `target_id` of each pair
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
    languages: Languages = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[MinedPair]:
        columns = (self.rows.source, self.rows.target, self.rows.score)
        return map(self._make_pair, *(column.tolist() for column in columns))

    def _at(self, place: int) -> MinedPair:
        rows = self.rows
        return self._make_pair(int(rows.source[place]), int(rows.target[place]), float(rows.score[place]))

    def _make_pair(self, source: int, target: int, score: float) -> MinedPair:
        x, y = self.sides
        return MinedPair(score, x.texts[source], y.texts[target], x.id_of(source), y.id_of(target))

    def _title(self) -> str:
        cut = "" if self.threshold is None else f" with a score of at least {self.threshold:.6f}"
        return f"{len(self):,} pairs{cut}"

    @check_arguments()
    def above(self, threshold: float) -> MinedPairs:
        """The pairs whose score is at least the threshold."""
        limit = threshold if self.threshold is None else max(threshold, self.threshold)
        return MinedPairs(self.rows.above(threshold), self.sides, limit, languages=self.languages)

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
    length_ratio: Annotated[float, Range(1)] | None = None
    check_language: Literal["script"] | Callable[[str], str] | None = None


@check_fields
@dataclass(frozen=True, slots=True)
class Computation:
    """How vectors are computed and compared.

    prompt   prefix of every text, instead of the model's own prompt
    pooling  pooling, instead of the model's own: `POOLINGS`. For a model that is loaded by name
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
    format     output format: `FORMATS` or moses; None: from the suffix
    write_ids  write ids, or line numbers, with the pairs; None: if ids were read
    work       folder for intermediate files, kept: another threshold, margin or format then encodes nothing again;
               None: OUTPUT.work, removed at the end. For mining of files
    every      seconds between checkpoints of the comparison
    """

    path: str | Path | None = None
    format: str | None = None
    write_ids: bool | None = None
    work: str | Path | None = None
    every: Annotated[float, Range(0)] = 60.0


@check_arguments()
def mine(
    model: Model | str | Path | None,
    sources: Source,
    targets: Source | None = None,
    *,
    k: PositiveInt = 4,
    margin: Margin = "ratio",
    direction: Direction = "max",
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
    sources      sentences, or a file: one sentence per line, a table, or a document (.docx, .html, .md, .srt, .vtt).
                 Lists are mined in memory, files in bounded memory
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
    device       for a model that is loaded by name, and to compare `vectors`; other vectors are compared where they are
                 computed, except on MPS and a cluster
    filters      which sentences and pairs take no part: see `isoglot.mining.Filters`
    computation  how vectors are computed and compared, for instance approximately or on a cluster: see
                 `isoglot.mining.Computation`
    output       write the pairs to this file too, and resume from its work folder: a name, or `isoglot.mining.Output`
    progress     called with (done, total) of the current step, in sentences (with a cluster, encoding is in pieces)
    report       called with one-line messages about the steps

    Raises `TypeError` and `ValueError` for wrong arguments, and `IsoglotError`s for files, models and vectors.
    """
    _check_model(model)
    sides_given = [sources] if targets is None else [sources, targets]
    texts = [sentences.check_side(name, side, _EXAMPLE) for name, side in zip(NAMES, sides_given, strict=False)]
    tables = _check_vectors(model, vectors, len(texts))
    names = [str(side) if isinstance(side, Path) else name for side, name in zip(texts, NAMES, strict=False)]
    files = [side for side in texts if isinstance(side, Path)]
    say: Report = report or (lambda _message: None)
    filters, computation = filters or Filters(), computation or Computation()
    destination = output if isinstance(output, Output) else Output(output)
    path = None if destination.path is None else Path(destination.path)
    formats.check_format(destination.format or "tsv")
    side_ids = _check_ids(ids, texts)
    has_files, cluster = len(files) == len(texts), computation.cluster is not None
    is_open = not tables and (isinstance(model, Model) or not has_files)
    problems = {
        "threshold and gold exclude each other; pass one of them": threshold is not None and gold is not None,
        "split and ids exclude each other; ids of sentences are not those of what is split": split and any(side_ids),
        f"workers choose the CPU, or an accelerator with gpus; leave out device={device}": cluster and device != "auto",
        "a cluster compares exactly; leave out index": computation.index and cluster,
        "probes needs index; pass both, or leave it out": computation.probes != PROBES and computation.index is None,
        "vectors are compared as they are; leave out prompt, pooling and dtype": tables
        and (computation.prompt, computation.pooling, computation.dtype) != (None, None, "float32"),
        "a cluster loads the model on every worker; pass the model's name and files, or vectors": is_open and cluster,
    }  # fmt: skip
    for problem, is_wrong in problems.items():
        if is_wrong:
            raise ValueError(problem)
    if destination.work is not None and not has_files:
        raise TypeError("work resumes mining of files; lists are mined in memory: leave it out, or pass files")
    memory = parse_size(computation.budget)
    pair = formats.check_languages(languages, len(texts)) or formats.guess_languages(path, names if has_files else [])
    with_ids = any(side_ids) if destination.write_ids is None else destination.write_ids
    with ExitStack() as stack:
        inputs: list[Any] = [model if isinstance(model, str | Path) else None, *files]
        inputs += [one for one in (*tables, gold) if is_file(one)]
        if path is not None:
            opened = formats.open_output(path, destination.format, pair, ids=with_ids, inputs=inputs)
            write, written = stack.enter_context(opened)
            inputs += written
        if isinstance(model, str | Path):
            find(str(model))  # a wrong name is an error before the texts are read and the work folder is made
        folder = _open_work(stack, files, destination, inputs)
        sides = [
            sentences.gather(
                side, folder / f"{_SIDES[at]}.txt" if folder and isinstance(side, Path) else None, name=name,
                ids=side_ids[at], columns=columns, split=splitter(pair and pair[at]) if split else None,
                deduplicate=not filters.keep_duplicates,
                keep=_make_filter(filters.check_language, pair, at), report=say,
            )
            for at, (side, name) in enumerate(zip(texts, names, strict=True))
        ]  # fmt: skip
        true_pairs = None if gold is None else formats.read_gold(gold, sides[0], sides[-1])
        mining = _Mining(sides, folder, computation, pair, progress, say)
        arrays, device = mining.compute_vectors(model, tables, device)
        resumes = folder is not None and (destination.work is not None or path is not None)
        checkpoint = Checkpoint(folder / "neighbours.bin", destination.every, say) if folder and resumes else None
        neighbours = mining.find_neighbours(arrays[0], arrays[-1], k, memory, checkpoint, device)
        allowed = sentences.allow_pairs(sides[0], sides[-1], filters.drop_identical, filters.length_ratio)
        rows = search.choose(neighbours, margin=margin, direction=direction, allowed=allowed, within=mining.within)
        mined = mining.cut(rows, neighbours, threshold, true_pairs, margin)
        if path is not None:
            write(mined)
        return mined


def _check_model(model: object) -> None:
    if not (model is None or isinstance(model, Model | str | Path)):
        advice = "isoglot.search.mine(x, y) pairs vectors" if isinstance(model, np.ndarray) else _EXAMPLE
        wanted = f"a model or a model's name first, not a {type(model).__name__}"
        raise TypeError(f"mine(model, sources, targets) expects {wanted}; {advice}")


def _check_ids(ids: Any, sides: Sequence[Path | Sequence[str]]) -> list[bool | list[str]]:
    """The `ids` of each side."""
    if isinstance(ids, bool):
        return [ids] * len(sides)
    advice = "pass a list of ids for each side, or True for files whose lines begin with an id"
    lists: list[bool | list[str]] = []
    for at, some in enumerate(ids):
        if isinstance(some, str) or not isinstance(some, Iterable):
            raise TypeError(f"ids[{at}] is {quote(some)}; {advice}")
        names = list(some)
        if wrong := [place for place, name in enumerate(names) if isinstance(name, float | bytes | None)]:
            raise TypeError(f"ids[{at}][{wrong[0]}] is {quote(names[wrong[0]])}, not a string; {advice}")
        lists.append([str(name) for name in names])
    if len(lists) != len(sides):
        raise ValueError(f"ids has {len(lists)} lists for {len(sides)} sides; {advice}")
    if any(isinstance(side, Path) for side in sides):
        raise TypeError(f"ids are lists, but the sentences are in files; {advice}")
    return lists


def _check_vectors(model: object, vectors: Any, count: int) -> list[NDArray[Any] | str | Path]:
    if vectors is None:
        if model is None:
            raise TypeError("mine needs a model or vectors; pass a model, a model's name, or vectors=(x, y)")
        return []
    if model is not None:
        raise TypeError("mine takes a model or vectors, not both; pass None as the model")
    single = is_file(vectors) or getattr(vectors, "ndim", 0) == 2
    if not single and (isinstance(vectors, Mapping) or not isinstance(vectors, Iterable)):
        raise TypeError(f"vectors is {quote(vectors)}; pass a table (N, D), or a .npy file, for each side")
    tables = [vectors] if single else list(vectors)
    if len(tables) != count:
        raise ValueError(f"{len(tables)} tables of vectors for {count} sides; pass one for each")
    for at, table in enumerate(tables):
        try:
            tables[at] = table if is_file(table) or type(table) is np.ndarray else as_array(table)
        except ValueError as error:
            raise ValueError(f"vectors[{at}] can't be read as a table (N, D): {error}") from None
    return tables


def _open_work(stack: ExitStack, files: Sequence[Path], destination: Output, inputs: Sequence[Any]) -> Path | None:
    """The work folder; None for lists alone."""
    if not files:
        return None
    if destination.work is None and destination.path is None:  # maps of its files stay valid after it is removed
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-", ignore_cleanup_errors=True)))
    place, keep = Path(destination.work or f"{destination.path}.work"), destination.work is not None
    return stack.enter_context(work_folder(place, "a work folder of mine", keep=keep, inputs=inputs))


def _make_filter(
    check: Literal["script"] | Callable[[str], str] | None, pair: Languages, at: int
) -> Callable[[str], bool] | None:
    if check is None:
        return None
    if pair is None:
        raise ValueError("check_language needs the languages of the sides; pass languages, such as 'deu,eng'")
    return sentences.match_script(pair[at]) if check == "script" else sentences.match_language(pair[at], check)


@dataclass(frozen=True)
class _Mining:
    """What the steps of one call have in common. The folder of lists alone is None."""

    sides: Sequence[Side]
    folder: Path | None
    computation: Computation
    languages: Languages
    progress: Progress | None
    say: Report

    @property
    def within(self) -> bool:
        """Whether pairs are mined within one side."""
        return len(self.sides) == 1

    def compute_vectors(
        self, model: object, tables: Sequence[NDArray[Any] | str | Path], device: str
    ) -> tuple[list[Table], str]:
        """The vectors of each side, and the device that compares them."""
        if tables:
            return self.select_rows(tables), device
        if self.computation.cluster is not None:
            return self.encode_in_pieces(str(model)), device
        return self.encode(model, device)

    def select_rows(self, tables: Sequence[NDArray[Any] | str | Path]) -> list[Table]:
        """The vectors of the rows of each side, from those of all its sentences; those of a file are copied if rows are
        left out. Raises `EncoderError` for another number of vectors than sentences, `CorpusError` for a row not
        finite.
        """
        selected: list[Table] = []
        for at, (source, side) in enumerate(zip(tables, self.sides, strict=True)):
            is_array = isinstance(source, np.ndarray)
            name = f"vectors[{at}]" if is_array else str(source)
            table = source if isinstance(source, np.ndarray) else open_table(source)
            if table.ndim != 2 or table.dtype.kind != "f":
                raise ValueError(f"{name} must be (N, D) floats, got {table.dtype} {table.shape}")
            if len(table) != len(side.rows):
                counts = f"{len(table)} rows for the {len(side.rows)} sentences of {side.name}"
                raise EncoderError(f"{name}: {counts}; encode these sentences")
            require_finite(table, name)
            if len(side) == len(table):
                selected.append(table)
            elif is_array or self.folder is None:
                selected.append(np.asarray(table[side.places]))
            else:
                into = self.folder / f"{_SIDES[at]}.given.npy"
                for start in range(0, len(side), _BLOCK):
                    write_rows(into, start, table[side.places[start : start + _BLOCK]])
                selected.append(open_table(into))
        return selected

    def encode(self, model: object, device: str) -> tuple[list[Table], str]:
        """The vectors of each side, and the device that computed them."""
        prompt, pooling = self.computation.prompt, self.computation.pooling
        if isinstance(model, Model):
            if pooling is not None:
                raise ValueError("pooling is set when a model is loaded; pass it to isoglot.load")
            encoder = model
        else:
            encoder, prompt = load(cast("str | Path", model), prompt=prompt, pooling=pooling, device=device), None
        self.say(encoder.describe())
        settings: dict[str, Any] = {
            "normalize_embeddings": True, "dtype": self.computation.dtype, "prompt": prompt, "progress": self.progress
        }  # fmt: skip
        tables: list[Table] = []
        for at, side in enumerate(self.sides):
            self.say(f"encoding {side.name}: {len(side):,} sentences")
            if side.first and self.folder is not None:
                into = self.folder / f"{_SIDES[at]}.npy"
                tables.append(encode_file(encoder, side.texts, output=into, keep=True, report=self.say, **settings))
            else:
                tables.append(encode(encoder, side.texts, **settings))
        return tables, str(encoder.device)

    def encode_in_pieces(self, model: str) -> list[Table]:
        """Vectors by workers, in folders whose names depend on everything that the vectors depend on."""
        names, cluster = ("dtype", "prompt", "pooling"), cast(Cluster, self.computation.cluster)
        settings = {"normalize_embeddings": True, **{name: getattr(self.computation, name) for name in names}}
        tables: list[Table] = []
        for name in _SIDES[: len(self.sides)]:
            text = cast(Path, self.folder) / f"{name}.txt"
            mark = hashlib.sha256(f"{digest(text)} {model} {settings} {cluster.gpus > 0}".encode()).hexdigest()[:12]
            into = text.with_suffix(f".{mark}.pieces")
            made = encode_shards(model, [text], into, cluster=cluster, settings=settings, progress=self.progress)
            tables.append(made)
        return tables

    def find_neighbours(
        self, x: Table, y: Table, k: int, budget: int, checkpoint: Checkpoint | None, device: str
    ) -> Neighbours:
        """The k neighbours of each row on the other side, or of each row within one table among the others."""
        computation, count = self.computation, min(len(x), len(y)) - self.within
        if k > count:
            self.say(f"k is {k}: only {max(0, count):,} neighbours exist; using all of them")
        self.say(f"comparing {len(x):,} with {len(y):,} sentences")
        k += self.within  # a row is its own neighbour

        def in_sentences(done: int, total: int | None) -> None:
            if self.progress is not None and total:
                self.progress(done * len(x) // total, len(x))

        settings: dict[str, Any] = {"budget": budget, "checkpoint": checkpoint, "progress": in_sentences}
        a, b = cast("NDArray[Any]", x), cast("NDArray[Any]", y)
        if computation.cluster is not None:
            near = neighbours_shards(_map_file(x), _map_file(y), k, cluster=computation.cluster, **settings)
        elif computation.index is not None:
            began = time.monotonic()
            near = search.approximate(a, b, k, index=computation.index, probes=computation.probes, budget=budget)
            share, seconds = search.recall(a, b, near, budget=budget), time.monotonic() - began
            share = (share * k - self.within) / (k - self.within)  # a row finds itself, which is no neighbour
            self.say(f"{computation.index}: {seconds:.0f} s, recall {share:.2%} (of the true neighbours of a sample)")
        else:
            near = search.neighbours(a, b, k, metric="cosine", device=device, **settings)
        return search.others(near) if self.within else near

    def cut(
        self, rows: Pairs, near: Neighbours, threshold: float | str | None, gold: Gold | None, margin: Margin
    ) -> MinedPairs:
        """The pairs above the threshold: the one given, tuned on gold, or estimated."""
        limit = threshold if isinstance(threshold, float | int) else None
        quality = guess = None
        if gold is not None:
            quality = search.tune(rows, [(min(pair), max(pair)) for pair in gold] if self.within else gold)
            limit = quality.threshold
            shares = f"precision {quality.precision:.1%}, recall {quality.recall:.1%}, F1 {quality.f1:.1%}"
            self.say(f"threshold {limit:.6f}, tuned on these pairs: {shares}")
        elif threshold == "estimate" or (
            threshold is None and not self.within and len(rows) > 0 and near.forward_scores.shape[1] > 1
        ):
            guess = search.estimate(rows, near, margin=margin)
            doubt = "the scores show no clear threshold, and there may be few true pairs or none"
            if threshold == "estimate" or guess.reliable:
                limit, shares = guess.threshold, f"precision {guess.precision:.0%}, recall {guess.recall:.0%}"
                check = "" if guess.reliable else f"; {doubt}: check the pairs"
                self.say(f"threshold {limit:.6f}, estimated: {shares}{check}")
            else:
                guess = None
                self.say(f"all pairs are kept, since {doubt}; pass a threshold to keep fewer")
        rows = rows if limit is None else rows.above(limit)
        return MinedPairs(rows, (self.sides[0], self.sides[-1]), limit, quality, guess, self.languages)


def _map_file(vectors: Table) -> Table:
    """A memory map as its file, which the workers read; an array would be sent to each."""
    if isinstance(vectors, np.memmap) and vectors.filename:
        shards = open_shards(Path(vectors.filename))
        if shards.shape == vectors.shape:  # a part of the file only: send the array
            return shards
    return vectors


def parse_size(size: int | str) -> int:
    """Bytes, from `64MB`, `1.5GB` or a plain number. Raises `ValueError`."""
    number, factor = str(size).strip().upper().removesuffix("B"), 1
    for letter, power in (("K", 10), ("M", 20), ("G", 30)):
        if number.endswith(letter):
            number, factor = number[:-1], 1 << power
    try:
        return int(float(number) * factor)
    except (ValueError, OverflowError):
        raise ValueError(f"{size!r} is not a size; pass, for instance, 512MB or 2GB") from None
