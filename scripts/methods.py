"""Each method against its control: the recipes of methods.toml, trained with several seeds and tested, as one table.

    python scripts/methods.py DATA OUTPUT [--only mpcl,soft] [--seeds 1,2,3] [--steps 2] [--languages deu] [--keep]

A run is a folder OUTPUT/<comparison>/<row>/seed-<n>. One that is finished is read, not made again; one that was killed
goes on. When its results are written, its model and checkpoints are removed, unless --keep. The tables, mean and sample
standard deviation over the seeds, are printed and written to OUTPUT/table.md.

EASE reads OUTPUT/wikipedia, which `isoglot wikipedia` makes; the negatives of mUSE are mined into OUTPUT/negatives.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoglot import __version__
from isoglot import recipe as recipes
from isoglot.data.files import atomic_write
from isoglot.data.readers.jsonl import write_jsonl
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve
from isoglot.errors import EvaluationError, IsoglotError
from isoglot.evaluation.base import Score
from isoglot.mining.negatives import add_hard_negatives, read_pairs
from isoglot.report.evaluate import evaluate
from isoglot.report.scores import Scores, read_results, write_results
from isoglot.report.tables import Grid, shown, to_markdown
from isoglot.settings import Recipe
from isoglot.training.loop import run as train
from isoglot.training.progress import Display, clock
from isoglot.training.recipes import make_encoder, plan_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the data are and the runs go, and what is made of each recipe. `steps`: instead of its own, for a look."""

    data: Path
    output: Path
    seeds: tuple[int, ...]
    steps: int
    languages: tuple[str, ...]
    keep: bool


def read_recipe(row: dict[str, Any], asked: Asked) -> Recipe:
    """The recipe of a row, its own paths looked for in DATA and OUTPUT."""
    recipe = recipes.load(row["recipe"], row.get("set", []))
    stages = recipe.stages
    if asked.steps:
        stages = tuple(stage.model_copy(update={"steps": asked.steps, "epochs": None}) for stage in stages)
    return recipe.model_copy(update={"data": asked.data, "folder": asked.output, "stages": stages})


def missing_files(recipe: Recipe) -> Iterator[str]:
    """Paths of a recipe that stand for nothing."""
    for source in (s for stage in recipe.stages for stream in stage.streams for s in stream.sources):
        path = recipe.resolve(source.path)
        if not any(path.parent.glob(f"{path.name}*")):  # the files of some readers have this as their beginning
            yield str(path)


def prepare(comparison: dict[str, Any], asked: Asked) -> None:
    """Mine the hard negatives that its recipes read, negatives/<pair>.jsonl, where they are not there yet."""
    if (wanted := comparison.get("negatives")) is None:
        return
    places = [place.replace("data:", f"{asked.data}/") for place in wanted["leakage"]]
    lacking = dict.fromkeys(path for row in comparison["rows"] for path in missing_files(read_recipe(row, asked)))
    for path in map(Path, lacking):
        if path.parent == asked.output / "negatives":
            say(f"mining hard negatives of {path.stem}")
            pairs = asked.data / wanted["pairs"] / path.stem
            groups = read_pairs(pairs, languages=path.stem.split("-"), leakage=list(map(Path, places)))
            write_jsonl(path, add_hard_negatives(wanted["model"], groups, count=3))


def run(name: str, row: dict[str, Any], columns: Sequence[dict[str, Any]], seed: int, asked: Asked) -> Scores:
    """Train one row with one seed and test it, or read what an earlier call wrote. Raises EvaluationError if stale."""
    recipe = read_recipe(row, asked)
    folder = asked.output / name / re.sub(r"[^\w.]+", "-", row["name"]).strip("-") / f"seed-{seed}"
    said = {"name", "description", "folder", "data"}  # changes nothing of a run
    wanted = [recipe.model_dump_json(exclude=said), repr(columns), repr(asked.languages)]
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    if (folder / "results.json").exists():
        known = read_results(folder)
        if known.settings.get("made of") != digest:
            raise EvaluationError(f"{folder}: is of another recipe or other tasks; remove it, or name another OUTPUT")
        return known
    begun = (folder / "run.json").exists()
    with Display() as display:
        display.report(f"{name}, {row['name']}, seed {seed}")
        encoder: str | Encoder
        if row.get("untrained"):
            encoder, seconds = make_encoder(recipe, display.report, seed=seed).exports()[0].eval(), 0.0
        else:
            plan = plan_of(recipe, seed=seed)
            outcome = train(plan, folder, device=resolve(), report=display.report, update=display.update)
            encoder, seconds = str(outcome.model), outcome.seconds
        scores = test(encoder, columns, asked)
    settings = {"recipe": row["recipe"], "seed": seed, "version": __version__, "made of": digest}
    results = Scores(scores, row["name"], settings | {"seconds": None if begun else round(seconds)})
    write_results(folder, results)
    return results


def test(model: str | Encoder, columns: Sequence[dict[str, Any]], asked: Asked) -> list[Score]:
    """All scores of the columns' tasks."""
    encoder = load(model) if isinstance(model, str) else model
    tasks = {column["task"]: asked.languages or tuple(column.get("languages", "").split()) for column in columns}
    scores: list[Score] = []
    for task, languages in tasks.items():
        scores += evaluate(encoder, [task], data=asked.data, languages=languages, skip_missing=True, report=say)
    return scores


def table(comparison: dict[str, Any], found: dict[str, list[Scores]]) -> Grid:
    """A row for each method: mean and deviation of every column, and of the seconds of training."""
    columns = comparison["columns"]
    rows = [
        (name, str(len(runs)), *(spread(scores(runs, column)) for column in columns), duration(runs))
        for name, runs in found.items()
    ]
    return Grid(comparison["title"], ("", "runs", *(column["name"] for column in columns), "training"), tuple(rows))


def scores(runs: Sequence[Scores], column: dict[str, Any]) -> list[Score]:
    """The column's score in each run that has it."""
    key = (column["task"], column["subset"], column["metric"])
    return [s for results in runs for s in results if (s.task, s.subset, s.metric) == key]


def spread(found: Sequence[Score]) -> str:
    """Mean ± sample standard deviation in the scores' unit; of one score, its value; a dash without any."""
    if not found:
        return "–"
    values, unit = [score.value for score in found], found[0].unit
    mean = shown(statistics.mean(values), unit)
    return mean if len(values) < 2 else f"{mean} ± {shown(statistics.stdev(values), unit)}"


def duration(runs: Sequence[Scores]) -> str:
    """Mean time of the runs that were not interrupted."""
    known = [float(s) for results in runs if isinstance(s := results.settings.get("seconds"), int | float)]
    return clock(statistics.mean(known)) if known else "–"


def compare(name: str, comparison: dict[str, Any], asked: Asked) -> str:
    """The table in Markdown: every row with every seed, an untrained encoder with the first alone."""
    prepare(comparison, asked)
    lacking = dict.fromkeys(path for row in comparison["rows"] for path in missing_files(read_recipe(row, asked)))
    if lacking:
        say(line := f"{name}: not made, there is no {', '.join(lacking)}")
        return f"## {comparison['title']}\n\n{line}\n"
    found: dict[str, list[Scores]] = {}
    for row in comparison["rows"]:
        for seed in asked.seeds[:1] if row.get("untrained") else asked.seeds:
            found.setdefault(row["name"], []).append(run(name, row, comparison["columns"], seed, asked))
            if not asked.keep:
                tidy(asked.output / name)
    grid = table(comparison, found)
    return f"## {grid.title}\n\n{to_markdown(grid)}"


def tidy(folder: Path) -> None:
    """Remove models and checkpoints of the runs that have results."""
    for left in [path for kind in ("model", "best", "checkpoints") for path in folder.glob(f"*/*/{kind}")]:
        if (left.parent / "results.json").exists():
            shutil.rmtree(left)


def say(words: str) -> None:
    """A line on stderr."""
    print(words, file=sys.stderr, flush=True)


def main() -> None:
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=0, help="steps of every stage, for a first look")
    parser.add_argument("--languages", default="", help="languages of every task, for a first look")
    parser.add_argument("--keep", action="store_true", help="leave models and checkpoints")
    words = parser.parse_args()
    chosen = words.only.split(",")
    if unknown := [name for name in chosen if name not in known]:
        parser.error(f"--only: no comparison is called {', '.join(unknown)}; known: {', '.join(known)}")
    seeds = tuple(int(seed) for seed in words.seeds.split(","))
    languages = tuple(code for code in words.languages.split(",") if code)
    asked = Asked(words.data.resolve(), words.output.resolve(), seeds, words.steps, languages, words.keep)
    try:
        for row in (row for name in chosen for row in known[name]["rows"]):
            read_recipe(row, asked)  # a wrong one is told before the first run
        tables = [compare(name, known[name], asked) for name in chosen]
    except IsoglotError as error:
        sys.exit(f"error: {error}")
    with atomic_write(words.output / "table.md") as file:
        file.write("\n".join(tables))
    print("\n".join(tables))


if __name__ == "__main__":
    main()
