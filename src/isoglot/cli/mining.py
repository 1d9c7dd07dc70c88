"""What `isoglot mine` does: two files, or one, and a model or vectors in; a file of pairs out.

Everything on the way lies in a work folder: sentences, vectors, neighbours so far. The same command run again after
the machine was switched off goes on from there, and the folder goes when the pairs are written.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer
from numpy.typing import NDArray

from isoglot.cli.cluster import compare_pieces, encode_pieces
from isoglot.cli.counting import timed
from isoglot.cli.imported import imported
from isoglot.cli.options import note_fewer
from isoglot.cli.product import bfloat16
from isoglot.cli.vectors import encoded, select
from isoglot.cli.working import working
from isoglot.data.files import check_output, digest, exclusive
from isoglot.data.vectors import open_table
from isoglot.encoders import load
from isoglot.errors import RecipeError
from isoglot.scale import Shards
from isoglot.scale.encoding import NOTE
from isoglot.search import (
    DIRECTIONS,
    MARGINS,
    Checkpoint,
    Neighbours,
    Pairs,
    approximate,
    choose,
    choose_within,
    estimate,
    neighbours,
    others,
    recall,
    tune,
)
from isoglot.search.estimate import LEAST_APART
from isoglot.search.filters import all_of, different_text, identified_as, like_lengths, written_in
from isoglot.search.lines import Lines, gather
from isoglot.search.pair_files import NEED_LANGUAGES, WRITERS, format_of, languages_of, read_gold, rows_of

Vectors = NDArray[Any] | Shards
PRECISIONS = ("float32", "bfloat16")
NAMES = ("source", "target")
PIECES = ".pieces"  # ending of the folder of a side's vectors that workers made
KNOWN = (  # paths in the work folder
    r"neighbours\.bin|(source|target)\.(txt|npy|npy\.journal|given\.npy)"
    rf"|(source|target)\.[0-9a-f]{{12}}\{PIECES}/({re.escape(NOTE)}|(source|target)\.txt-\d+\.npy)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mining:
    """What is asked of `mine`; the options of the command by their names."""

    k: int = 4
    margin: str = "ratio"
    direction: str = "max"
    threshold: float | None = None
    gold: Path | None = None
    estimate: bool = False
    format: str | None = None
    languages: Sequence[str] = ()
    ids: bool = False
    write_ids: bool = False
    keep_duplicates: bool = False
    drop_identical: bool = False
    length_ratio: float | None = None
    check_language: str | None = None
    vectors: Sequence[Path] = ()
    dtype: str = "float32"
    prompt: str | None = None
    pooling: str | None = None
    budget: str = "256MB"
    precision: str = "float32"
    index: str | None = None
    probes: int = 32
    work: Path | None = None
    every: float = 60.0
    ray: str = ""
    cores: int = 1


def run(words: Sequence[str], output: Path, asked: Mining) -> None:
    """Mine `words`, a model unless there are vectors and then one file or two, and write the pairs.

    Raises `IsoglotError`s only: `RecipeError` for what is asked, the others for files and models.
    """
    model, files = _subjects(words, asked)
    form = asked.format or format_of(output)
    languages = _languages(output, form, files, asked)
    inputs = [model, *files, asked.gold, *asked.vectors]
    written = _written(output, form, languages, asked)
    for path in written:
        check_output(path, inputs=inputs)
    place = asked.work or output.with_name(f"{output.name}.work")
    with (
        exclusive(output),
        working(place, "a work folder of mine", KNOWN, keep=asked.work is not None, inputs=[*inputs, *written]) as work,
    ):
        try:
            sides = [_gather(path, work / f"{name}.txt", at, languages, asked)
                     for at, (path, name) in enumerate(zip(files, NAMES, strict=False))]  # fmt: skip
            tables = _vectors(model, sides, work, asked)
            pairs = _cut(*_mine(sides, tables, work, asked), sides, asked)
        except ValueError as error:
            raise RecipeError(f"mine: {error}") from error
        rows = rows_of(pairs, sides[0], sides[-1])
        WRITERS[form](output, rows, languages=languages, ids=asked.ids or asked.write_ids)
    say(f"{len(pairs):,} pairs: {output}")


def say(words: str) -> None:
    """A line of words, on stderr."""
    typer.echo(words, err=True)


def _subjects(words: Sequence[str], asked: Mining) -> tuple[str | None, list[Path]]:
    model, files = (None, [*words]) if asked.vectors else (words[0], [*words[1:]])
    if len(files) not in (1, 2) or (asked.vectors and len(asked.vectors) != len(files)):
        raise RecipeError(
            f"mine: a model and one or two files are needed, or as many --vectors as files; given are {len(words)} "
            f"words and {len(asked.vectors)} --vectors"
        )
    if sum([asked.threshold is not None, asked.gold is not None, asked.estimate]) > 1:
        raise RecipeError("mine: --threshold, --gold and --estimate exclude each other; choose one")
    if asked.ray and (asked.index or asked.precision != "float32"):
        raise RecipeError("mine: --ray compares exactly and in float32; leave out --index and --precision")
    if asked.cores != 1 and not asked.ray:
        raise RecipeError("mine: --cores is of --ray; leave it out")
    for name, value, known in (
        ("margin", asked.margin, tuple(MARGINS)),
        ("direction", asked.direction, tuple(DIRECTIONS)),
        ("precision", asked.precision, PRECISIONS),
    ):
        if value not in known:
            raise RecipeError(f"mine: --{name} is {value!r}; use one of {', '.join(known)}")
    return model, [Path(file) for file in files]


def _written(output: Path, form: str, languages: tuple[str, str] | None, asked: Mining) -> list[Path]:
    """The files that the pairs are written to."""
    if form != "moses":
        return [output]
    names = [*(languages or ()), "scores", *(["ids"] if asked.ids or asked.write_ids else [])]
    return [output.with_name(f"{output.name}.{name}") for name in names]


def _languages(output: Path, form: str, files: Sequence[Path], asked: Mining) -> tuple[str, str] | None:
    if form not in WRITERS:
        raise RecipeError(f"mine: the format is {form!r}; use one of {', '.join(WRITERS)}")
    given = [*asked.languages]
    if len(given) not in (0, 1 if len(files) == 1 else 2, 2):
        raise RecipeError(f"mine: --languages names {len(given)} languages for {len(files)} files")
    found = (given[0], given[-1]) if given else languages_of(output, form, files)
    if found is None and (form in NEED_LANGUAGES or asked.check_language):
        raise RecipeError("mine: the names of the files tell no languages; give them, for instance --languages deu,eng")
    if form == "moses" and found is not None and found[0] == found[1]:
        raise RecipeError("mine: two Moses files of one language would have one name; use --format tsv")
    return found


def _gather(path: Path, into: Path, at: int, languages: tuple[str, str] | None, asked: Mining) -> Lines:
    keep = None
    if asked.check_language and languages is not None:
        check, language = asked.check_language, languages[at]
        keep = written_in(language) if check == "script" else identified_as(language, _judge(check))
    lines = gather(path, into, ids=asked.ids, deduplicate=not asked.keep_duplicates, keep=keep)
    out = len(lines.rows) - len(lines)
    say(f"{path}: {len(lines.rows):,} lines, {out:,} of them blank, repeated or refused")
    return lines


def _judge(check: str) -> Callable[[str], str]:
    try:
        return imported(check)
    except ImportError as error:
        raise RecipeError(f"--check-language {check}: {error}; write script, or module:name of a function") from error


def _vectors(model: str | None, sides: Sequence[Lines], work: Path, asked: Mining) -> list[Vectors]:
    if model is None:
        given, into = map(open_table, asked.vectors), [work / f"{name}.given.npy" for name in NAMES]
        return [select(*four) for four in zip(given, sides, asked.vectors, into, strict=False)]
    if asked.ray:
        return [_pieces(model, work / f"{name}.txt", asked) for name in NAMES[: len(sides)]]
    encoder = load(model, prompt=asked.prompt, pooling=asked.pooling)
    tables: list[Vectors] = []
    for side, name in zip(sides, NAMES, strict=False):
        with timed(f"encoding {side.path.name}") as timing:
            tick = partial(timing, total=len(side))
            text = work / f"{name}.txt"
            tables.append(encoded(encoder, text, text.with_suffix(".npy"), dtype=asked.dtype, progress=tick))
    return tables


def _pieces(model: str, text: Path, asked: Mining) -> Shards:
    """Vectors of a side by workers, in a folder of the name of all that they depend on."""
    settings = {"normalize_embeddings": True, "dtype": asked.dtype, "prompt": asked.prompt, "pooling": asked.pooling}
    mark = hashlib.sha256(f"{digest(text)} {model} {settings}".encode()).hexdigest()[:12]
    into = text.with_suffix(f".{mark}{PIECES}")
    return encode_pieces(model, [text], into, ray=asked.ray, cores=asked.cores, settings=settings)


def _mine(sides: Sequence[Lines], tables: Sequence[Vectors], work: Path, asked: Mining) -> tuple[Pairs, Neighbours]:
    """The pairs before any cut, and the neighbours that they come from."""
    within = len(sides) == 1
    x, y, k = tables[0], tables[-1], asked.k + within
    note_fewer("-k", asked.k, min(len(x), len(y)) - within, "neighbours")
    if asked.ray or isinstance(x, Shards) or isinstance(y, Shards):
        found = compare_pieces(x, y, k, ray=asked.ray, cores=asked.cores, budget=size_of(asked.budget))
    else:
        found = _approximate(x, y, k, asked) if asked.index else _exact(x, y, k, work, asked)
    allowed = [different_text(sides[0], sides[-1])] if asked.drop_identical else []
    if asked.length_ratio is not None:
        allowed.append(like_lengths(sides[0], sides[-1], asked.length_ratio))
    found = others(found) if within else found
    way = choose_within if within else choose
    return way(found, margin=asked.margin, direction=asked.direction, allowed=all_of(allowed)), found


def _exact(x: NDArray[Any], y: NDArray[Any], k: int, work: Path, asked: Mining) -> Neighbours:
    product = bfloat16 if asked.precision == "bfloat16" else None
    kept = Checkpoint(work / "neighbours.bin", asked.every, say)
    with timed(f"comparing {len(x):,} with {len(y):,}") as timing:
        return neighbours(
            x, y, k, metric="cosine", budget=size_of(asked.budget), product=product, checkpoint=kept, progress=timing
        )


def _approximate(x: NDArray[Any], y: NDArray[Any], k: int, asked: Mining) -> Neighbours:
    began, budget = time.monotonic(), size_of(asked.budget)
    try:
        found = approximate(x, y, k, index=str(asked.index), probes=asked.probes, budget=budget)
    except ImportError as error:
        raise RecipeError("mine: --index needs FAISS; install it with: pip install faiss-cpu") from error
    share = recall(x, y, found, budget=budget)
    say(f"{asked.index}: {time.monotonic() - began:.0f} s; {share:.2%} of the true neighbours of a sample were found")
    return found


def _cut(pairs: Pairs, found: Neighbours, sides: Sequence[Lines], asked: Mining) -> Pairs:
    if asked.threshold is not None:
        return pairs.above(asked.threshold)
    if asked.gold is not None:
        gold = read_gold(asked.gold, sides[0], sides[-1])
        best = tune(pairs, [(min(pair), max(pair)) for pair in gold] if len(sides) == 1 else gold)
        say(
            f"threshold {best.threshold:.6f}, tuned on these very pairs: precision {best.precision:.1%}, "
            f"recall {best.recall:.1%}, F1 {best.f1:.1%}"
        )
        return pairs.above(best.threshold)
    if not asked.estimate:
        return pairs
    guess = estimate(pairs, found, margin=asked.margin)
    say(f"threshold {guess.threshold:.6f}, estimated: precision {guess.precision:.0%}, recall {guess.recall:.0%}")
    if guess.apart < LEAST_APART:
        say("right and wrong pairs do not stand apart here; there may be none to find, so look at the pairs")
    return pairs.above(guess.threshold)


def size_of(text: str) -> int:
    """Bytes, from `64MB`, `1.5GB` or a plain number. Raises `ValueError`."""
    number, factor = text.strip().upper().removesuffix("B"), 1
    for letter, power in (("K", 10), ("M", 20), ("G", 30)):
        if number.endswith(letter):
            number, factor = number[:-1], 1 << power
    try:
        return int(float(number) * factor)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no size; write, for instance, 512MB or 2GB") from None
