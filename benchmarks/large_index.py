"""Millions of sentences once through encoding, an index and searches: time, memory and bytes of each step.

    OMP_NUM_THREADS=1 python benchmarks/large_index.py --rows 200000 --folder work
    OMP_NUM_THREADS=1 python benchmarks/large_index.py --sentences FILE --rows 10000000 --folder work

Sentences are the lines of a file, or those of the pairs of this package, none twice. Where they are fewer than
`--rows`, the beginning of one and the end of another, which is not far in the file, make further ones. Every step is a
fresh process. A step that is done is not repeated by the same command, and one that was stopped is resumed, so that its
figures are those of the last part. Processor seconds are what to compare where other work runs on the machine.

`own MB` is the peak of the process without the files that it maps, which the system may drop; `peak MB` is with them.
The recall is that of a thousand lines that are not indexed, against an exact search of the same vectors.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import BUNDLED, read_lines
from isoglot.data.formats import read_texts
from measure import fresh, memory, now
from million import own

Table = NDArray[np.float32]
QUERIES = 1000
NEAR = 1000  # lines from which the end of a made-up sentence is taken
PIECE = 16_384  # sentences that `Index.build` adds at a time
TEXTS, QUERY_TEXTS, VECTORS, INDEX = "sentences.txt", "queries.txt", "vectors.npy", "index"


def packaged() -> Iterator[str]:
    """The sentences of the pairs of this package."""
    for table in sorted((BUNDLED / "pairs").iterdir()):
        for _, line in islice(read_lines(table), 1, None):
            yield from line.split("\t")


def halves(text: str) -> tuple[str, str]:
    """The text before and after the space next to its middle; of one without spaces, its two halves."""
    middle = len(text) // 2
    cut = min(
        (place for place, mark in enumerate(text) if mark == " "), key=lambda at: abs(at - middle), default=middle
    )
    return text[:cut], text[cut:]


def make_sentences(options: argparse.Namespace) -> dict[str, Any]:
    given = packaged() if options.sentences is None else (text for _, text in read_texts(options.sentences))
    lines = [*dict.fromkeys(line for text in given if (line := text.strip()))]
    step = len(lines) // QUERIES
    queries = lines[::step][:QUERIES]
    del lines[: step * QUERIES : step]
    (options.folder / QUERY_TEXTS).write_text("\n".join(queries) + "\n", encoding="utf-8")
    real, drawn, written = min(len(lines), options.rows), random.Random(0), {*map(hash, lines)}
    with (options.folder / TEXTS).open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines[: options.rows])
        while len(written) < options.rows:
            place = drawn.randrange(len(lines))
            other = (place + drawn.randint(-NEAR, NEAR)) % len(lines)
            text = halves(lines[place])[0] + halves(lines[other])[1]
            if hash(text) not in written:
                written.add(hash(text))
                stream.write(text + "\n")
    return {"real": real, "bytes": size_of(options.folder / TEXTS)}


def encode(options: argparse.Namespace) -> dict[str, Any]:
    from isoglot import load

    texts = (text for _, text in read_texts(options.folder / TEXTS))
    load(options.model, device="cpu").encode(texts, output=options.folder / VECTORS, normalize_embeddings=True)
    return {"bytes": size_of(options.folder / VECTORS)}


def add(options: argparse.Namespace) -> dict[str, Any]:
    """Add texts, which are in pieces of one size, and the vectors that were made of them."""
    from isoglot import load
    from isoglot.index import Index

    def encoding(_: Any, pieces: Iterable[list[str]]) -> Iterator[Table]:
        for number, piece in enumerate(pieces):
            vectors = np.load(
                options.folder / VECTORS, mmap_mode="r"
            )  # anew: what was read counts as memory until then
            yield np.array(vectors[number * PIECE :][: len(piece)])

    texts = (text for _, text in read_texts(options.folder / TEXTS))
    with Index.build(
        load(options.model, device="cpu"), texts, folder=options.folder / INDEX, encoding=encoding
    ) as index:
        return {"rows": len(index), "bytes": size_of(options.folder / INDEX)}


def structure(options: argparse.Namespace) -> dict[str, Any]:
    from isoglot.index import Index

    with Index.open(options.folder / INDEX) as index:
        index.restructure(options.kind)
        return {"recall": index.recall, "bytes": size_of(options.folder / INDEX / "faiss")}


def search(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a query for each effort; the scores of the hits are kept for the recall."""
    from isoglot.index import Index

    began, efforts = now(), dict[str, Any]()
    with Index.open(options.folder / INDEX) as index:
        opened, texts = now().since(began), [text for _, text in read_texts(options.folder / QUERY_TEXTS)]
        queries = index.model.encode(texts, normalize_embeddings=True)
        index.search(queries[:1], 10)
        for effort in options.efforts:
            spent, scores = [], []
            for at in range(len(queries)):
                began = now()
                (hits,) = index.search(queries[at : at + 1], 10, effort=effort)
                spent.append(now().since(began))
                scores.append([hit.score for hit in hits])
            times = {name: 1000 * statistics.median(getattr(one, name) for one in spent) for name in ("wall", "cpu")}
            efforts[str(effort)] = {**times, "scores": scores}
    return {"open": opened, "efforts": efforts}


def exact(options: argparse.Namespace) -> dict[str, Any]:
    """The tenth best score of each query, of all searched at once."""
    from isoglot import load
    from isoglot.index.table import Table as Vectors
    from isoglot.index.table import find_nearest

    texts = [text for _, text in read_texts(options.folder / QUERY_TEXTS)]
    queries = load(options.model, device="cpu").encode(texts, normalize_embeddings=True)
    table = Vectors.open(options.folder / INDEX / VECTORS, options.rows, queries.shape[1])
    best = find_nearest(table, queries, 10)
    return {"tenth": [float((table[rows] @ query).min()) for rows, query in zip(best, queries, strict=True)]}


STEPS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "make": make_sentences, "encode": encode, "add": add, "structure": structure, "search": search, "exact": exact,
}  # fmt: skip


def size_of(path: Path) -> int:
    return sum(each.stat().st_size for each in [path, *path.rglob("*")] if each.is_file())


@contextmanager
def watched(figures: dict[str, Any]) -> Iterator[None]:
    """Seconds and the peaks of memory of the block."""
    stop, held, began = threading.Event(), [own()], now()

    def watch() -> None:
        while not stop.wait(0.5):
            held.append(own())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    spent = now().since(began)
    figures |= {"wall": spent.wall, "cpu": spent.cpu, "own_mb": max(held), "peak_mb": memory(peak=True)}


def tables(steps: dict[str, dict[str, Any]]) -> str:
    """The figures as Markdown."""
    lines = ["| step | processor s | clock, s | own MB | peak MB | MB written |", "|---|" + "---:|" * 5]
    for name, of in steps.items():
        cells = [f"{of[value]:,.0f}" for value in ("cpu", "wall", "own_mb", "peak_mb")]
        lines.append(f"| {name} | {' | '.join(cells)} | {of.get('bytes', 0) / 1e6:,.0f} |")
    lines += ["", "| cells of a query | recall@10, % | processor ms | clock, ms |", "|---:|---:|---:|---:|"]
    for effort, of in steps["search"]["efforts"].items():
        shares = [
            sum(score >= true - 1e-6 for score in scores) / 10
            for scores, true in zip(of["scores"], steps["exact"]["tenth"], strict=True)
        ]
        lines.append(f"| {effort} | {100 * statistics.mean(shares):.1f} | {of['cpu']:.1f} | {of['wall']:.0f} |")
    share, opened = steps["structure"]["recall"], steps["search"]["open"]
    lines += [
        "",
        f"{steps['add']['rows']:,} sentences, {steps['make']['real']:,} of them real; recorded recall {share};",
    ]
    return "\n".join([*lines, f"opened in {opened[1]:.2f} processor seconds."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--sentences", type=Path, help="a file of sentences; default: those of this package")
    parser.add_argument("--kind", default="ivf-pq", help="kind of the index")
    parser.add_argument("--efforts", type=int, nargs="+", default=[32, 64, 128], help="of the searches")
    parser.add_argument("--model", default="isoglot-static")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is made, and left")
    parser.add_argument("--one", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        figures = dict[str, Any]()
        with watched(figures):
            figures |= STEPS[options.one](options)
        (options.folder / f"{options.one}.json").write_text(json.dumps(figures), encoding="utf-8")
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    steps = dict[str, dict[str, Any]]()
    for name in STEPS:
        result = options.folder / f"{name}.json"
        if not result.exists():
            fresh(Path(__file__), ["--one", name, *sys.argv[1:]], result=result, environment={})
        steps[name] = json.loads(result.read_text(encoding="utf-8"))
        sys.stderr.write(f"{name}: {steps[name]['cpu']:,.0f} processor seconds\n")
    print(tables(steps))


if __name__ == "__main__":
    main()
