"""The models of comparison.toml on its tasks, with error bars: docs/comparison.md.

    python scripts/comparison.py DATA OUTPUT [--cache FOLDER] [--models isoglot-small] [--page docs/comparison.md]

Every model and task has a folder of its own in OUTPUT. One that is there is read and not run again, unless the model
or its data have changed, so an interrupted run continues and a new model costs its own tasks alone. --cache keeps
vectors, too.
--tasks runs other tasks ("all": all but fine-tuning) on all of the models and writes their main metrics to
OUTPUT/tasks.md. Models that are not installed are left out and named. One of them is made by model2vec, whose
requirements exclude current versions of transformers: pip install --no-deps model2vec skeletoken
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import isoglot
from isoglot.core.errors import EncoderError, nearest
from isoglot.core.score import main_metrics
from isoglot.core.toml import tomllib
from isoglot.data.files import atomic_write
from isoglot.encoders.loading import expand
from isoglot.evaluation import TASKS
from isoglot.evaluation.compare import Comparison, Row, compare
from isoglot.evaluation.evaluate import describe, evaluate
from isoglot.evaluation.run import data_digest, texts_of
from isoglot.evaluation.scores import Scores, read_results
from isoglot.evaluation.sets import among
from isoglot.evaluation.suites import Column
from isoglot.model import Model, packaged
from isoglot.report.tables import NOTHING, Grid, side_by_side, spell, to_markdown

Settings = Mapping[str, Any]
DESIGN = Path(__file__).with_suffix(".toml")
SPEED_LANGUAGES = [
    *("ara", "ben", "cmn", "deu", "fin", "fra", "heb", "hin"),
    *("jpn", "kat", "kor", "rus", "swh", "tam", "tha", "tur"),
]
ROUNDS, LEAST = 5, 1.0  # rounds of the speed test; seconds of a model in each
INTRODUCTION = """# Comparison

Our models beside others on public test sets, in percent. ± is half of a 95 % interval of a bootstrap over the test
items; ▲ and ▼ mark what is significantly better and worse than {base} (two-sided paired permutation test, p ≤ 0.05,
not corrected for the number of cells); see [compare.md](compare.md). Intervals do not cover another training. Of
errors, lower is better. Tatoeba is the mean of both directions, NTREX the share of sentences whose
translation is not the nearest by ratio margin (xSIM). Settings of our models were chosen on dev data: packaged Tatoeba
pairs, the first half of NTREX's documents, STS-B dev, questions in four other languages. Everything here is test data;
NTREX-test is the other half of the documents. Precision is the default: 8 bits for our transformers, for others
bfloat16 where the hardware has it. A dash is a task that was not run.

```sh
python scripts/comparison.py DATA OUTPUT --cache OUTPUT/vectors --page docs/comparison.md
```
"""
METRICS = """\
STS17 and STS-B are Spearman correlations (times 100), SIB-200 is the accuracy of classification and MewsC-16 that of
clustering, questions are nDCG@10 of paragraphs with the prompts of each model, Swahili among English paragraphs; all
are means over languages or language pairs. Tatoeba-14, -36 and -112 are mean accuracies of retrieval over the 14
languages of XNLI other than English, the 36 of Tatoeba in XTREME, and all 112 of LASER's test set
([retrieval.md](tasks/retrieval.md)).
"""


def open_encoder(model: Settings, output: Path) -> Model:
    """The encoder of an entry of `models`. Raises EncoderError if it, or model2vec, is not installed."""
    name = model.get("model", model["name"])
    if source := model.get("distil"):
        name = output / "made" / model["name"]
        if not name.exists():
            distil(source, name)
    return isoglot.load(name, **({"prompt": model["prompt"]} if "prompt" in model else {}))


def distil(source: str, folder: Path) -> None:
    """A static model by model2vec's defaults: every token through the encoder, PCA to 256, weights by rank (SIF)."""
    try:
        from model2vec.distill import distill_from_model  # type: ignore[import-not-found,unused-ignore]
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise EncoderError(f"{error}: pip install --no-deps model2vec skeletoken") from error
    place = expand(source)
    model = distill_from_model(AutoModel.from_pretrained(place), AutoTokenizer.from_pretrained(place), device="cpu")
    partial = folder.with_name(f".{folder.name}")
    model.save_pretrained(partial)
    partial.rename(folder)


def score(
    name: str, encoder: Model, task: str, folder: Path, *, languages: Sequence[str], data: Path, cache: Path | None
) -> Scores:
    """The main scores of a task; those in `folder` if they are of this encoder and these data."""
    _, settings = describe(encoder)
    precision = encoder.settle("auto")
    digest = data_digest(TASKS[task], data, languages=languages)
    inputs = {"encoder": settings["encoder"], "languages": " ".join(languages), "precision": precision, "data": digest}
    if (folder / "results.json").exists():
        earlier = read_results(folder)
        # Results of earlier versions have no digest of their data.
        if inputs == {key: earlier.settings.get(key, digest if key == "data" else "") for key in inputs}:
            return earlier
    start = perf_counter()
    scores = evaluate(
        encoder, [task], languages=languages, data=data, cache=cache, precision=precision, skip_missing=True
    )
    settings |= inputs | {"seconds": round(perf_counter() - start, 1)}
    main_scores = Scores([replace(one, details=()) for one in scores if one.main], name, settings)
    if main_scores:
        main_scores.save(folder)
    return main_scores


def speeds(encoders: Mapping[str, Model], data: Path, path: Path) -> dict[str, list[float]]:
    """Texts a second of every model in each round, in which the models take turns; measured again for a new model."""
    models = {name: describe(encoder)[1]["encoder"] for name, encoder in encoders.items()}
    if path.exists() and (record := json.loads(path.read_text(encoding="utf-8")))["models"] == models:
        return dict(record["rates"])
    texts = texts_of(["tatoeba"], data=data, languages=SPEED_LANGUAGES, on_missing=lambda _: None)
    texts = texts[:: max(1, len(texts) // 600)]
    rates: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(ROUNDS):
        for name, encoder in encoders.items():
            start, count = perf_counter(), 0
            while perf_counter() - start < LEAST:
                encoder.encode(texts, show_progress_bar=False)
                count += len(texts)
            rates[name].append(count / (perf_counter() - start))
    with atomic_write(path) as file:
        file.write(json.dumps({"models": models, "rates": rates}, indent=1) + "\n")
    return rates


def size(model: Settings, output: Path) -> float:
    """Megabytes of a model's folder, and of its package's files where the weights stay in them."""
    name = model.get("model", model["name"])
    place = output / "made" / name if "distil" in model else Path(name) if Path(name).is_dir() else packaged.get(name)
    files = [file for file in place.rglob("*") if file.is_file()]
    if name in packaged.SOURCES and not any(file.suffix == ".safetensors" for file in files):
        for package in packaged.SOURCES[name].packages:
            folder = Path(str(metadata.distribution(package.name).locate_file(package.folder)))
            files += [file for file in folder.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def make_level_columns(levels: Settings, trained: Mapping[str, int], results: Scores) -> list[Column]:
    """A column for each task and level of resources, over the languages with so many training sentences."""
    bounds = [0, *levels["bounds"], None]
    level_columns = []
    for column in levels["columns"]:
        over: dict[int, list[str]] = {}
        for subset in (s.subset for s in results if s.task == column["task"] and not s.over):
            code, _, target = subset.partition("-")
            if target in ("en", "eng"):
                count = sum(number for language, number in trained.items() if among(code, [language]))
                place = sum(bound is not None and count >= bound for bound in bounds) - 1
                over.setdefault(place, []).append(subset)
        for place, subsets in sorted(over.items()):
            low, high = bounds[place], bounds[place + 1]
            amount = "none" if high == 1 else f"{low:,} or more" if high is None else f"below {high:,}"
            label = f"{column['name']}: {amount} ({len(subsets)} languages)"
            level_columns.append(Column(label, tuple((column["task"], subset, column["metric"]) for subset in subsets)))
    return level_columns


def cell(row: Row | None, place: int) -> str:
    """Value ± half of its interval, marked where it differs significantly from the base's."""
    if row is None:
        return NOTHING
    value, text = row.values[place], spell(row.values[place].mean, row.unit)
    if value.interval is not None:
        text += f" ± {spell((value.interval[1] - value.interval[0]) / 2, row.unit)}"
    difference = row.differences[place - 1] if place else None
    mark = "" if difference is None or not difference.significant else " ▲" if difference.better else " ▼"
    return text + mark


def table(title: str, columns: Sequence[Column], compared: Mapping[str, Comparison], base: str, note: str = "") -> str:
    """Models as rows, columns as columns, below a note."""
    rows = []
    for name, comparison in compared.items():
        rows_by_label = {row.subset: row for row in comparison.tables[0].rows}
        rows.append((name, *(cell(rows_by_label.get(column.label), int(name != base)) for column in columns)))
    above = f"{note}\n" if note else ""
    return f"## {title}\n\n{above}{to_markdown(Grid(title, ('model', *(c.label for c in columns)), tuple(rows)))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cache", type=Path, help="Folder in which vectors are cached.")
    parser.add_argument(
        "--models", default="", help="Models to compare, in addition to the base; default: all installed ones."
    )
    parser.add_argument("--tasks", default="", help='only these tasks, also others than the columns\'; "all"')
    parser.add_argument("--page", type=Path, help="Output page; default: OUTPUT/comparison.md.")
    parser.add_argument("--design", type=Path, default=DESIGN, help="TOML file of models and columns.")
    options = parser.parse_args()
    run(options, tomllib.loads(options.design.read_text(encoding="utf-8")))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run(options: argparse.Namespace, design: Settings, report: Callable[[str], None] = say) -> None:
    """Evaluate all models, task after task, and write the page."""
    base, every_model = design["base"], [model["name"] for model in design["models"]]
    requested = options.models.split(",") if options.models else every_model
    if unknown := [name for name in requested if name not in every_model]:
        raise EncoderError(f"--models: {unknown[0]!r} is not in the design; {nearest(unknown[0], every_model)}")
    languages = {column["task"]: column.get("languages", "").split() for column in design["columns"]}
    every_task = [name for name in TASKS if not name.endswith("/finetune")]
    tasks = every_task if options.tasks == "all" else options.tasks.split(",") if options.tasks else list(languages)
    results: dict[str, Scores] = {}
    encoders: dict[str, Model] = {}
    absent: list[str] = []
    for model in design["models"]:
        name = model["name"]
        if name not in (*requested, base):
            continue
        try:
            encoder = encoders[name] = open_encoder(model, options.output)
        except EncoderError as error:
            absent.append(name)
            report(f"{name}: skipped: {error}")
            continue
        results[name] = Scores((), name, {"dims": encoder.dim})
        for task in tasks if options.tasks else [task for task in tasks if task in model.get("tasks", tasks)]:
            codes, folder = languages.get(task, ()), options.output / name / task
            scores = score(name, encoder, task, folder, languages=codes, data=options.data, cache=options.cache)
            report(f"{name} {task}: {scores.settings['seconds']} s")
            results[name] += list(scores)
            results[name].settings[task] = scores.settings["seconds"]
    if options.tasks:
        main = main_metrics(one for scores in results.values() for one in scores)
        grids = [side_by_side(results, task=task, metric=metric) for task in tasks for metric in main.get(task, ())]
        with atomic_write(options.output / "tasks.md") as file:
            file.write("\n".join(f"### {grid.title}\n\n{to_markdown(grid)}" for grid in grids))
        return
    page = make_page(design, options, results, encoders, absent)
    with atomic_write(options.page or options.output / "comparison.md") as file:
        file.write(page)


def make_page(
    design: Settings,
    options: argparse.Namespace,
    results: Mapping[str, Scores],
    encoders: Mapping[str, Model],
    absent: Sequence[str],
) -> str:
    """The page."""
    base, models = design["base"], {model["name"]: model for model in design["models"]}
    columns = [Column(c["name"], ((c["task"], c["subset"], c["metric"]),)) for c in design["columns"]]
    card = encoders[design["levels"]["model"]].card if design["levels"]["model"] in encoders else None
    trained: dict[str, int] = {}
    for source in card.data if card is not None else ():
        for code, count in source.sentences.items() if source.name not in design["levels"]["words"] else ():
            trained[code] = trained.get(code, 0) + count
    levels = make_level_columns(design["levels"], trained, results[base]) if trained else []
    compared = {}
    for name, scores in results.items():
        systems = [results[base]] if name == base else [results[base], scores]
        compared[name] = compare(*systems, names=[base, name][: len(systems)], columns=[*columns, *levels])
        compared[name].save(options.output / name)
    rates = speeds(encoders, options.data, options.output / "speed.json")
    rows = []
    for name, encoder in encoders.items():
        ratio = median(rate / base_rate for rate, base_rate in zip(rates[name], rates[base], strict=True))
        speed = f"{median(rates[name]):,.0f}", f"{ratio:.{1 if ratio < 10 else 0}f}"
        rows.append(
            (name, models[name]["what"], str(encoder.dim), f"{size(models[name], options.output):,.1f}", *speed)
        )
    header = ("model", "", "dimensions", "MB on disk", "texts per second", f"times {base}")
    parts = [INTRODUCTION.format(base=base)]
    parts += [f"Not installed, skipped: {', '.join(absent)}.\n"] if absent else []
    others = [name for name in models if name not in (*results, *absent)]
    parts += [f"Not run for this page: {', '.join(others)}.\n"] if others else []
    parts.append(f"## Models\n\n{to_markdown(Grid('Models', header, tuple(rows)))}")
    parts.append(
        f"Speed: sentences of Tatoeba in {len(SPEED_LANGUAGES)} languages, models in turns, medians of {ROUNDS} rounds "
        "in one process; the ratios are of equal rounds. A model that is an adapter needs its backbone besides.\n"
    )
    parts.append(table("Scores", columns, compared, base, METRICS))
    if samples := [f"{c['name']}: {c['languages']}" for c in design["columns"] if c.get("languages")]:
        parts.append(f"Samples of the languages, since all would take hours: {'; '.join(samples)}.\n")
    if levels:
        parts.append(table("Retrieval by resources of the language", levels, compared, base))
        parts.append(
            f"Levels: sentences of the language in the training data of {design['levels']['model']}, without the word "
            f"lists {', '.join(design['levels']['words'])}. isoglot-base and isoglot-small have "
            "text of the same languages; the other models were trained on other data.\n"
        )
    names = dict.fromkeys(name for row in design["quoted"].values() for name in row if name != "from")
    quoted = tuple(
        (name, *(str(row.get(label, NOTHING)) for label in names), row["from"])
        for name, row in design["quoted"].items()
    )
    parts.append(f"## Quoted\n\n{to_markdown(Grid('Quoted', ('model', *names, 'from'), quoted))}")
    parts.append("Figures of the papers, not run here, some under other protocols ([published.md](published.md)).\n")
    costs = [(task, *(str(s.settings.get(task, NOTHING)) for s in results.values())) for task in design_tasks(design)]
    parts.append(f"## Cost\n\n{to_markdown(Grid('Cost', ('seconds', *results), tuple(costs)))}")
    parts.append(
        "Clock seconds of each evaluation, whatever else the machine did; texts that an earlier task has encoded are "
        "not encoded again. Compare models by the speeds above.\n"
    )
    return "\n".join(parts)


def design_tasks(design: Settings) -> list[str]:
    return list(dict.fromkeys(column["task"] for column in design["columns"]))


if __name__ == "__main__":
    main()
