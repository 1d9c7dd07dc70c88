"""Whether our mining and xSIM agree with LASER's published scripts, on the same vectors.

    python scripts/against_laser.py LASER_CHECKOUT

xSIM is the task `xsim/own`, from files to errors; mining and F1 are the functions that the tasks of BUCC call. LASER is
not on the Python index, so this is a script and not a test: name a checkout of its repository. Its `xsim.py`,
`mine_bitexts.py` and `bucc.py` run as they are; only the modules that would encode text are replaced by one that reads
vectors. Vectors are drawn: sentences with planted translations, noise, and repeated sentences. Needs faiss.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

import numpy as np

from isoglot.evaluation.tasks.xsim import XSIM, XSim
from isoglot.search import Pairs, mine, tune
from isoglot.search.blocks import Margin

Sides = tuple[list[str], list[str]]
Gold = set[tuple[int, int]]
Errors = dict[tuple[str, str], int]  # how a hit is compared, direction -> count

DIM, SOURCES, TARGETS, PLANTED, COPIES = 64, 1500, 1800, 700, 40
REPEATED = [*range(PLANTED), *range(-COPIES, 0)]  # pairs 600 to 639 occur twice
READS_VECTORS = """
import numpy
def EmbedLoad(name, dim, verbose=False):
    return numpy.fromfile(name, dtype=numpy.float32).reshape(-1, dim)
SentenceEncoder = EncodeLoad = EncodeFile = None
"""


def material(seed: int) -> tuple[list[str], list[str], np.ndarray, np.ndarray, Gold]:
    """Texts and vectors of two sides, some sentences twice, and the planted pairs."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((SOURCES, DIM)).astype(np.float32)
    y = draw.standard_normal((TARGETS, DIM)).astype(np.float32)
    y[:PLANTED] = x[:PLANTED] + 2.2 * draw.standard_normal((PLANTED, DIM)).astype(np.float32)
    texts = [f"source {i}" for i in range(SOURCES)], [f"target {i}" for i in range(TARGETS)]
    for side, vectors in zip(texts, (x, y), strict=True):
        for copy, first in zip(range(len(side) - COPIES, len(side)), range(600, 600 + COPIES), strict=True):
            side[copy], vectors[copy] = side[first], vectors[first]
    return *texts, x, y, {(i, i) for i in range(PLANTED)}


def laser_xsim(laser: Path, x: np.ndarray, y: np.ndarray, margin: str, lines: Path | None = None) -> int:
    """Errors of `xsim.py` from x to y, compared by the lines of a file, or by index."""
    spec = importlib.util.spec_from_file_location("laser_xsim", laser / "source" / "xsim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return int(module.xSIM(x.copy(), y.copy(), margin=margin, eval_text=str(lines) if lines else None)[0])


def xsim_errors(
    laser: Path, folder: Path, texts: Sides, x: np.ndarray, y: np.ndarray, margin: Margin
) -> tuple[Errors, Errors]:
    """Theirs and the task's: both directions, by text over repeated sentences too, and by index without them."""
    theirs: Errors = {}
    vectors = {
        text: row for side, table in zip(texts, (x, y), strict=True) for text, row in zip(side, table, strict=True)
    }
    ours: Errors = {}
    for metric, pairs in (("error", REPEATED), ("error-by-index", range(PLANTED))):
        lines = [folder / metric / "xsim" / f"{code}.txt" for code in ("deu", "eng")]
        lines[0].parent.mkdir(parents=True)
        for path, side in zip(lines, texts, strict=True):
            path.write_text("".join(f"{side[i]}\n" for i in pairs))
        a, b = x[list(pairs)], y[list(pairs)]
        ways = (("deu-eng", a, b, lines[1]), ("eng-deu", b, a, lines[0]))
        for subset, source, target, file in ways:
            theirs[metric, subset] = laser_xsim(laser, source, target, margin, file if metric == "error" else None)
        task = XSim(XSIM["xsim/own"].texts, margins=(margin,))
        for score in task.run(lambda asked: np.stack([vectors[text] for text in asked]), folder / metric):
            if score.metric == f"{metric}/{margin}" and not score.over:
                ours[metric, score.subset] = round(score.value * score.n)
    return theirs, ours


def laser_mine(laser: Path, folder: Path, margin: str) -> list[tuple[float, str, str]]:
    (folder / "embed.py").write_text(READS_VECTORS)
    (folder / "text_processing.py").write_text("Token = BPEfastApply = None\n")
    script, output = laser / "source" / "mine_bitexts.py", folder / f"mined.{margin}"
    words = [sys.executable, script, folder / "text.xx", folder / "text.en", "--src-lang", "xx", "--trg-lang", "en"]
    words += ["--output", output, "--mode", "mine", "--margin", margin, "--unify", "--dim", DIM, "--threshold", -9]
    words += ["--src-embeddings", folder / "x", "--trg-embeddings", folder / "y"]
    environment = os.environ | {"LASER": str(laser), "PYTHONPATH": str(folder)}
    subprocess.run([str(word) for word in words], env=environment, check=True, capture_output=True)
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    return [(float(score), source, target) for score, source, target in rows]


def our_mine(texts: Sides, x: np.ndarray, y: np.ndarray, margin: Margin) -> tuple[Pairs, Sides]:
    sides = list(dict.fromkeys(texts[0])), list(dict.fromkeys(texts[1]))
    rows = [[side.index(text) for text in distinct] for side, distinct in zip(texts, sides, strict=True)]
    pairs = mine(x[rows[0]], y[rows[1]], k=4, margin=margin)
    return pairs, sides


def laser_f1(laser: Path, folder: Path, margin: str) -> float:
    words = [sys.executable, laser / "tasks" / "bucc" / "bucc.py", "--src-lang", "xx", "--trg-lang", "en"]
    words += ["--bucc-texts", folder / "text", "--bucc-ids", folder / "ids", "--gold", folder / "gold"]
    words += ["--candidates", folder / f"mined.{margin}"]
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    found = re.search(r"F1=([\d.]+)", done.stdout)
    assert found, done.stdout
    return float(found[1])


def our_f1(texts: Sides, pairs: Pairs, sides: Sides, gold: Gold) -> float:
    """Sentences that occur twice are dropped after mining; gold keeps its size."""
    once = [{text: side.index(text) for text in side if side.count(text) == 1} for side in texts]
    kept = [
        place
        for place, (i, j) in enumerate(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))
        if sides[0][i] in once[0] and sides[1][j] in once[1]
    ]
    source = np.array([once[0][sides[0][pairs.source[p]]] for p in kept])
    target = np.array([once[1][sides[1][pairs.target[p]]] for p in kept])
    return 100 * tune(Pairs(source, target, pairs.score[kept]), gold).f1


def write(folder: Path, texts: Sides, x: np.ndarray, y: np.ndarray, gold: Gold) -> None:
    for code, side in zip(("xx", "en"), texts, strict=True):
        (folder / f"text.{code}").write_text("".join(f"{text}\n" for text in side))
        (folder / f"ids.{code}").write_text("".join(f"{code}-{i}\n" for i in range(len(side))))
    (folder / "gold").write_text("".join(f"xx-{i}\ten-{j}\n" for i, j in sorted(gold)))
    x.tofile(folder / "x")
    y.tofile(folder / "y")


def compare(laser: Path, folder: Path, seed: int, margin: Margin) -> str:
    """Print one line if all agrees; assertions report differences."""
    source, target, x, y, gold = material(seed)
    write(folder, (source, target), x, y, gold)
    errors = xsim_errors(laser, folder, (source, target), x, y, margin)
    theirs = laser_mine(laser, folder, margin)
    pairs, sides = our_mine((source, target), x, y, margin)
    named = zip(pairs.source.tolist(), pairs.target.tolist(), pairs.score.tolist(), strict=True)
    ours = {(sides[0][i], sides[1][j]): score for i, j, score in named}
    assert {(a, b) for _, a, b in theirs} == set(ours), "the mined pairs differ"
    gap = max(abs(ours[a, b] - score) for score, a, b in theirs)
    f1 = laser_f1(laser, folder, margin), our_f1((source, target), pairs, sides, gold)
    assert errors[0] == errors[1], f"xSIM errors differ: {errors}"
    assert gap < 1e-5, f"scores differ by {gap}"
    assert abs(f1[0] - f1[1]) < 0.006, f"F1 differs: {f1}"  # theirs is printed with two decimals
    return (
        f"seed {seed} {margin:8}: xSIM errors {[*errors[0].values()]} both ways by text and by index, the same; "
        f"{len(ours)} mined pairs the "
        f"same, scores to {gap:.0e}; F1 {f1[0]:.2f} = {f1[1]:.2f}"
    )


def main() -> None:
    laser = Path(sys.argv[1]).resolve()
    for seed in range(3):
        for margin in get_args(Margin):
            with tempfile.TemporaryDirectory() as name:
                print(compare(laser, Path(name), seed, margin))


if __name__ == "__main__":
    main()
