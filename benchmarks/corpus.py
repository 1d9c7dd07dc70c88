"""Prepare the corpora of a recipe with this checkout and with an earlier one, in turns, and compare.

    git worktree add ../before 3e4d702
    python benchmarks/corpus.py --before ../before/src --data FOLDER

Both sides run `isoglot train RECIPE --set steps=1` in a process of its own with an empty cache: everything is read,
a tokenizer is trained if the recipe says so, repeated groups and leaks are removed, pairs are joined, and the text is
tokenised into tables; the step and the model that is saved are the same for both. FOLDER contains the data sets of
`isoglot data`. Printed for each run: seconds by the clock, processor seconds, and peak memory; at the end the ratio of
the medians over rounds. The tables of both sides must be of nearly the same size; they are not equal, since the
tokenizers are not: this version draws a million sentences for its training.

The recipe is that of isoglot-static, but for a setting that earlier versions do not have and that makes no difference
for its data: what to do with unknown languages.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).parent.parent / "src"
RECIPE = SOURCE / "isoglot" / "recipes" / "models" / "static.toml"


def prepare(source: Path, recipe: Path, data: Path, work: Path) -> dict[str, float]:
    """Run one side in an empty folder: seconds, processor seconds, megabytes at most, and the bytes of its tables."""
    environment = os.environ | {"PYTHONPATH": str(source.resolve()), "ISOGLOT_DATA": str(data.resolve())}
    environment |= {"ISOGLOT_CACHE": str(work / "cache")}
    words = [sys.executable, "-m", "isoglot", "train", str(recipe), "--set", "steps=1", "--output", str(work / "run")]
    began = time.monotonic()
    child = subprocess.Popen(words, cwd=work, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    if status:
        raise SystemExit(f"{source}: the run failed")
    size = sum(file.stat().st_size for file in work.rglob("cache/tables/**/*") if file.is_file())
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1024, "tables": size}


def main() -> None:
    """Print every run, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="folder src of the earlier checkout")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    sides = {"before": options.before, "now": SOURCE}
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side, source in sides.items():
            with tempfile.TemporaryDirectory() as work:
                recipe = Path(work) / "recipe.toml"
                recipe.write_text(re.sub("on_unknown_language.*\n", "", RECIPE.read_text("utf-8")), encoding="utf-8")
                found = prepare(source, recipe, options.data, Path(work))
            runs[side].append(found)
            print(
                f"{side}: {found['wall']:.0f} s, {found['cpu']:.0f} processor seconds, peak {found['peak']:.0f} MB, "
                f"tables of {found['tables'] / 1e6:.0f} MB",
                flush=True,
            )
    sizes = [found["tables"] for side in runs.values() for found in side]
    if max(sizes) > 1.01 * min(sizes):
        raise SystemExit("the tables differ in size by more than 1 %, so the sides did not do the same work")
    for kind in ("wall", "cpu"):
        before, now = (median(found[kind] for found in runs[side]) for side in sides)
        print(f"{kind}: {before / now:.2f} times as fast")


if __name__ == "__main__":
    main()
