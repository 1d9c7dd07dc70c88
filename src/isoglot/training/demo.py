"""`isoglot demo`: train, evaluate and mine on the bundled text.

Two encoders are trained from scratch: one on pairs, one on pairs joined into groups. The better one on dev data is
selected. Both are scored on the official test together with the untrained encoder; the selected one mines translations
from two shuffled files. Each step calls the function behind another verb.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch

from isoglot.core.progress import Report
from isoglot.data.files import BUNDLED, atomic_write, check_output, read_lines
from isoglot.encoders.device import resolve
from isoglot.evaluation.base import Score
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.scores import Scores
from isoglot.model import Model, encode, layout, load
from isoglot.report.tables import Grid, side_by_side, to_markdown
from isoglot.search.pairs import mine
from isoglot.search.threshold import quality, tune
from isoglot.training import recipe as recipes
from isoglot.training.plan import make_encoder, make_plan
from isoglot.training.progress import Display
from isoglot.training.train import train_seeds

RECIPES = ("demo/pairs", "demo/groups")
MINED = "tur"  # language mined against English


def run(
    output: Path, *, device: str = "auto", report: Report = print, show: Callable[[Grid], None] | None = None
) -> None:
    """Write the demo into a folder.

    report  called with each message
    show    called with the table of scores; default: reported as Markdown

    It appears when all is done, and replaces an earlier demo. Raises `OutputError` for a folder that contains anything
    else, and while another demo writes there.
    """
    check_output(output, folder=True, whole=True)
    began = time.monotonic()
    with layout.replacing(output, is_model=False) as folder:  # its runs replace their own models, also later
        _run(folder, resolve(device), report, show or (lambda table: report(to_markdown(table))))
    report(summary(output, time.monotonic() - began))


def _run(output: Path, device: torch.device, report: Report, show: Callable[[Grid], None]) -> None:
    report("1. An untrained encoder, for comparison")
    with Display() as display:
        first = make_plan(recipes.load(RECIPES[0]))
        tables = {"untrained": scores_on_test(make_encoder(first, display.report, seed=first.recipe.seed).to(device))}
    models: dict[Path, float] = {}
    for number, name in enumerate(RECIPES, 2):
        recipe = recipes.load(name)
        report(f"{number}. Training by the recipe {name}: {recipe.description}")
        (outcome,) = train_seeds(recipe, output / "runs" / Path(name).name, device=device)
        tables[Path(name).name] = scores_on_test(load(outcome.model, device=device))
        if outcome.best is not None:
            models[outcome.model] = -outcome.best if outcome.lower_is_better else outcome.best
    best_model = max(models, key=models.__getitem__)
    load(best_model).save(output / "model")
    table = side_by_side(tables, task="tatoeba", metric="accuracy/mean")
    report("4. Accuracy on the official Tatoeba test, mean of both directions, in percent")
    show(table)
    all_three = {label: Scores(scores, label) for label, scores in tables.items()}
    label = best_model.parent.name
    all_three[label].save(output, before=[results for name, results in all_three.items() if name != label])
    with atomic_write(output / "report.md") as stream:
        stream.write("# isoglot demo\n\n" + to_markdown(table))
    report(f"   Chosen on the dev pairs: {label}.")
    find_translations(load(output / "model", device=device), output / "mined.tsv", report)


def scores_on_test(encoder: Model) -> list[Score]:
    """Scores on the official test files."""
    return evaluate(encoder, ["tatoeba"], data=BUNDLED / "test")


def find_translations(encoder: Model, path: Path, report: Report) -> None:
    """Mine two shuffled files with a threshold tuned on dev text, report precision and recall, write the pairs."""
    files = [BUNDLED / "mine" / f"{MINED}-eng.{side}.xz" for side in (MINED, "eng")]
    sides = [read_texts(file) for file in files]
    report(
        f"5. Mining translations from two shuffled files: {len(sides[0]):,} lines in {MINED}, {len(sides[1]):,} in eng"
    )
    threshold = dev_threshold(encoder)
    pairs = mine(*(encode(encoder, side) for side in sides)).above(threshold)
    _header, *rows = read_texts(BUNDLED / "mine" / f"{MINED}-eng.gold.tsv")
    gold = {(int(source) - 1, int(target) - 1) for source, target in (row.split("\t") for row in rows)}
    measured = quality(pairs, gold)
    with atomic_write(path) as stream:
        for source, target, score in zip(pairs.source, pairs.target, pairs.score, strict=True):
            stream.write(f"{score:.4f}\t{sides[0][source]}\t{sides[1][target]}\n")
    right = round(measured.precision * len(pairs))
    report(
        f"   {len(pairs)} pairs mined, {right} correct, of {len(gold)} to find: "
        f"precision {measured.precision:.1%}, recall {measured.recall:.1%}, F1 {measured.f1:.1%}"
    )


def dev_threshold(encoder: Model) -> float:
    """The margin with the best F1 on the dev pairs after replacing half of the translations by other sentences."""
    sources, targets = dev_pairs(MINED)
    paths = [path for path in sorted((BUNDLED / "dev").glob("*.eng.xz")) if f".{MINED}-" not in path.name]
    others = [text for path in paths for text in read_texts(path)]
    half = len(sources) // 2
    pairs = mine(encode(encoder, sources), encode(encoder, targets[:half] + others[: 2 * half]))
    return tune(pairs, {(i, i) for i in range(half)}).threshold


def dev_pairs(code: str) -> tuple[list[str], list[str]]:
    """Both sides of a language's dev pairs."""
    first, second = (BUNDLED / "dev" / f"tatoeba.{code}-eng.{side}.xz" for side in (code, "eng"))
    return read_texts(first), read_texts(second)


def read_texts(path: Path) -> list[str]:
    """The lines of a file."""
    return [text for _, text in read_lines(path)]


def summary(output: Path, seconds: float) -> str:
    """The files of the demo and the next commands."""
    return "\n".join(
        (
            f"Done in {seconds:.0f} s.",
            f"  model    {output / 'model'}",
            f"  report   {output / 'page.html'} (open it in a browser), {output / 'results.md'}, "
            f"{output / 'results.json'}",
            f"  mined    {output / 'mined.tsv'} (score, Turkish, English; best first)",
            "Next:",
            f"  isoglot encode {output / 'model'} sentences.txt --output vectors.npy",
            f"  isoglot evaluate {output / 'model'} --data FOLDER --output scores",
            "  isoglot recipe show start/static > mine.toml    # set your own files in it, then",
            "  isoglot train mine.toml --output my-run",
        )
    )
