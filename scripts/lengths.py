r"""Dev scores over the steps of sweeps that differ in length: docs/images/lengths.svg.

    python scripts/lengths.py OUTPUT/many-tatoeba-800 OUTPUT/many-tatoeba-3200 --output docs/images/lengths.svg \
        --difference "4, one anchor=2, one anchor" --difference "4, every one an anchor=2, every one an anchor"

On the left, lines join the evaluations of the longest runs, of several folders if these are as long, and markers alone
are the ends of shorter runs, whose schedules end there. On the right are differences between two arms, run by run. Bars
are one sample standard deviation over the seeds. A recipe with several evaluations has their names, one of which is
passed as `--evaluation`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from textwrap import fill

from isoglot.report.charts import COLOURS, MARKERS, WIDTH, canvas, save

Curve = dict[int, list[float]]  # step -> the dev score of each seed, in percent


def read_curves(folder: Path, name: str) -> dict[str, Curve]:
    """The curve of each trained arm of a sweep, by evaluations of this name, in the order of its table."""
    curves: dict[str, Curve] = {}
    for arm in json.loads((folder / "sweep.json").read_text(encoding="utf-8"))["arms"]:
        for run in sorted(folder.glob("*/seed-*")):
            results = json.loads((run / "results.json").read_text(encoding="utf-8"))
            if results["model"] != arm["name"] or not (run / "log.jsonl").exists():
                continue
            for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                if entry["kind"] == "evaluation" and entry.get("name", "") == name:
                    curves.setdefault(arm["name"], {}).setdefault(entry["step"], []).append(100 * entry["score"])
    if not curves:
        raise SystemExit(f"{folder}: no run has an evaluation named {name!r}; pass a name of the recipe's [evaluation]")
    return curves


def draw(folders: list[Path], name: str, differences: list[tuple[str, str]], output: Path) -> None:
    """Both panels, in one file."""
    curves = [read_curves(folder, name) for folder in folders]
    lengths = [max(map(max, one.values())) for one in curves]
    shorter = [one for one, length in zip(curves, lengths, strict=True) if length < max(lengths)]
    longest: dict[str, Curve] = {}
    for one, length in zip(curves, lengths, strict=True):
        longest |= one if length == max(lengths) else {}
    with canvas(2 * WIDTH, 4.2) as figure:
        left, right = figure.subplots(1, 2)
        for place, (arm, curve) in enumerate(longest.items()):
            style = {**look(place), "capsize": 3}
            left.errorbar(*points(curve), label=fill(arm, 26), **style)
            ends = {max(one[arm]): one[arm][max(one[arm])] for one in shorter if arm in one}
            if ends:
                left.errorbar(*points(ends), linestyle="", markerfacecolor="white", markersize=8, **style)
        for place, (arm, control) in enumerate(differences):
            runs = [len(scores) for one in (arm, control) for scores in longest[one].values()]
            if len(set(runs)) > 1:
                raise SystemExit(
                    f"--difference {arm}={control}: {min(runs)} and {max(runs)} runs, which are compared one by one; "
                    "give both the same seeds, in folders that do not share an arm"
                )
            changes = {
                step: [one - other for one, other in zip(scores, longest[control][step], strict=True)]
                for step, scores in longest[arm].items()
            }
            style = {**look(place + len(longest)), "capsize": 3}
            right.errorbar(*points(changes), label=fill(f"{arm} − {control}", 56), **style)
        right.axhline(0, color="#555555", linewidth=0.8)
        for axes, words, columns in ((left, "dev, percent", 2), (right, "difference, points", 1)):
            axes.set_xlabel("steps")
            axes.set_ylabel(words)
            axes.grid(visible=True, linewidth=0.6)
            axes.legend(frameon=False, fontsize=7.5, ncols=columns, loc="upper left", bbox_to_anchor=(0, -0.16))
        figure.tight_layout(pad=0.6)
        save(figure, output)


def look(line: int) -> dict[str, str]:
    """Colour and marker of a line; both repeat, after different numbers of lines."""
    return {"color": COLOURS[line % len(COLOURS)], "marker": MARKERS[line % len(MARKERS)]}


def points(curve: Curve) -> tuple[list[int], list[float], list[float]]:
    """Steps, means and deviations."""
    steps = sorted(curve)
    deviations = [stdev(curve[step]) if len(curve[step]) > 1 else 0.0 for step in steps]
    return steps, [mean(curve[step]) for step in steps], deviations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--evaluation", default="", metavar="NAME", help="name of the evaluation in the recipe")
    parser.add_argument("--difference", action="append", default=[], metavar="ARM=CONTROL")
    words = parser.parse_args()
    pairs = [(arm, control) for arm, _, control in (one.partition("=") for one in words.difference)]
    draw(words.folders, words.evaluation, pairs, words.output)


if __name__ == "__main__":
    main()
