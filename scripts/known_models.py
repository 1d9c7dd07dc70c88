"""The packaged models on every test set in a folder: the table of known numbers in docs/results.md.

    python scripts/known_models.py DATA OUTPUT [--cache FOLDER] [--tasks tatoeba,sts17] [--models glove-6b-50d]

Each model's results go to a folder of OUTPUT, the table to OUTPUT/table.md. A task that needs the model itself and not
its vectors (fine-tuning) is left out. Vectors are kept in --cache, so a run that was interrupted goes on; a folder with
the scores of some of the tasks gets the others added.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from isoglot.cli.console import Progress, say
from isoglot.cli.options import open_encoder
from isoglot.data.files import atomic_write
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import main_metrics
from isoglot.report.evaluate import described, evaluate
from isoglot.report.scores import Scores, read_results
from isoglot.report.tables import side_by_side, to_markdown

MODELS = {  # name of the row -> name of the model, its settings
    "multilingual-e5-small": ("multilingual-e5-small", {}),
    "multilingual-e5-small+query": ("multilingual-e5-small", {"prompt": "query: "}),
    "use-multilingual-v3": ("use-multilingual-v3", {}),
    "all-MiniLM-L6-v2": ("all-MiniLM-L6-v2", {}),
    "glove-6b-50d": ("glove-6b-50d", {}),
}


def score(name: str, folder: Path, *, data: Path, tasks: Sequence[str], cache: Path | None) -> Scores:
    """Evaluate one subject, task after task; of tasks that an earlier run scored with it, what that run wrote."""
    earlier = read_results(folder) if (folder / "results.json").exists() else Scores(model=name)
    if not _lacking(tasks, earlier):
        return earlier
    known, chosen = MODELS[name]
    model = open_encoder(known, device="auto", **chosen)
    _, settings = described(model)
    if earlier.settings != settings:
        earlier = Scores((), name, settings)
    with Progress("encoding") as progress:
        scores = evaluate(
            model,
            _lacking(tasks, earlier),
            data=data,
            cache=cache,
            skip_missing=True,
            report=lambda line: say(f"{name} {line}"),
            progress=progress,
        )
    found = Scores([*earlier, *scores], name, settings)
    found.save(folder)
    return found


def _lacking(tasks: Sequence[str], results: Scores) -> list[str]:
    scored = {score.task for score in results}
    return [task for task in tasks if task not in scored]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--tasks", default=",".join(name for name in TASKS if not name.endswith("/finetune")))
    parser.add_argument("--models", default=",".join(MODELS))
    words = parser.parse_args()
    found: dict[str, Scores] = {}
    for name in MODELS:
        if name in words.models.split(","):
            folder = words.output / name
            found[name] = score(name, folder, data=words.data, tasks=words.tasks.split(","), cache=words.cache)
    with atomic_write(words.output / "table.md") as file:
        main = main_metrics(score for scores in found.values() for score in scores)
        for task in words.tasks.split(","):
            for metric in main.get(task, ()):
                grid = side_by_side(found, task=task, metric=metric)
                file.write(f"### {grid.title}\n\n{to_markdown(grid)}\n")


if __name__ == "__main__":
    main()
