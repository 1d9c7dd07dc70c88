"""What a precision costs a model: its scores in float32 and in that precision on the same tasks, in one run.

    python benchmarks/precision.py --data FOLDER                            # multilingual-e5-small, int8
    python benchmarks/precision.py --data FOLDER --model NAME --precision bfloat16 --cache vectors

Tasks are for choices (dev sets) but for Tatoeba, which has no other split. Vectors are cached in a folder.
Prints a table when a task is done: the mean of its main scores, their difference, and the
greatest loss of one of them, in points.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import isoglot
from isoglot.model import Model

TATOEBA = ("ara", "cmn", "deu", "ell", "fin", "fra", "hin", "jpn", "kor", "rus", "spa", "swh", "tel", "tur")
SOME = ("deu", "jpn", "swh", "tur")
TASKS = {
    "tatoeba": TATOEBA, "sts-b/dev": (), "sib-200": SOME, "xsim/ntrex-dev": SOME, "bucc/dev-split": ("zho",),
}  # fmt: skip


def score(model: Model, task: str, precision: str, options: argparse.Namespace, cache: Path) -> dict[str, float]:
    """The main scores of each subset, in points; errors are subtracted from 100."""
    languages = TASKS[task][: options.languages]
    scores = isoglot.evaluate(
        model, task, data=options.data, languages=languages, cache=cache, precision=precision, skip_missing=True
    )
    return {
        f"{one.subset} {one.metric}": 100 * (1 - one.value if one.lower_is_better else one.value)
        for one in scores.main
        if not one.over
    }


def main() -> None:
    """Score both, task by task, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the tasks' files")
    parser.add_argument("--model", default="multilingual-e5-small", help="folder or packaged name")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--tasks", default=",".join(TASKS), help="some of these, separated by commas")
    parser.add_argument("--languages", type=int, default=len(TATOEBA), help="at most so many of each task")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors; default: a temporary one")
    options = parser.parse_args()
    model = isoglot.load(options.model, device="cpu")
    print(f"| {options.model} | scores | float32 | {options.precision} | difference | greatest loss |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="precision-") as folder:
        for task in options.tasks.split(","):
            full, other = (
                score(model, task, precision, options, options.cache or Path(folder))
                for precision in ("float32", options.precision)
            )
            means = [sum(values.values()) / len(values) for values in (full, other)]
            losses = {name: full[name] - other[name] for name in full}
            worst = max(losses, key=lambda name: losses[name])
            cells = [task, str(len(full)), *(f"{mean:.2f}" for mean in means), f"{means[1] - means[0]:+.2f}"]
            print(f"| {' | '.join(cells)} | {losses[worst]:.2f} ({worst}) |", flush=True)


if __name__ == "__main__":
    main()
