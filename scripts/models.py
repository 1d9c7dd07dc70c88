"""The three models of the package, from the data sets to folders with cards and checksums.

    python scripts/models.py DATA OUTPUT [--only isoglot-static] [--steps 3] [--results COMPARISON] [--publish]

Runs commands of isoglot in OUTPUT; each is printed and goes into the model's card. What is there already is not made
again, so the same command continues after an interruption. OUTPUT/isoglot-static, -base and -small are the models.

Trained weights of transformers are averaged with those that training began from. The share is the one with the best
mean of four dev scores (OUTPUT/dev.json): Tatoeba on the packaged dev pairs, xSIM on the first half of NTREX's
documents, STS-B dev, and questions in four languages that are dev; isoglot-base may have none that is lower than its
backbone's. No test set is read. With --results, a later call writes the test scores of scripts/comparison.py into the
cards; with --publish the models are copied into the package, their cards into docs/models.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import onnx

import isoglot
from isoglot.data.files import BUNDLED, atomic_write
from isoglot.encoders.onnx_export import write_onnx
from isoglot.evaluation.scores import read_results
from isoglot.model import card, layout
from isoglot.model.shared import FILE as SHARED
from isoglot.model.shared import Shared, complete
from isoglot.training import recipe as recipes

STATIC, BASE, SMALL = "isoglot-static", "isoglot-base", "isoglot-small"
BACKBONE = "multilingual-e5-small"
PACKAGE = Path(__file__).parents[1]
SHARES = (0.2, 0.25, 0.35, 0.5, 0.75, 1.0)  # of the trained weights in the average
TOLERANCE = 0.002  # by which no dev score of isoglot-base may be below that of its backbone
STATIC_SHARE = 0.5  # of the second part of isoglot-static: a larger one finds fewer everyday sentences (docs/log.md)
STATIC_TOKENS = 384  # of a text count in isoglot-static: dev questions find more than with 256 or 128, no more with 512
# Values that share a scale; pieces with 4 bits a value, others have 2.7.
WORDS: dict[str, Any] = {"block": 64, "frequent": 92_000}
TOKENIZER = ["tokenizer.json.xz", "tokenizer.model"]  # what isoglot-small has from isoglot-base, beside the words
FIRST_SHARE = 0.7  # of the first part of isoglot-base, where its second begins
DEV_LANGUAGES = ["deu", "zho", "fin", "swa", "tam", "kat", "hin", "yor", "eng"]
LICENCES = {
    "opus-tatoeba": "CC BY 2.0 FR", "tatoeba-pairs": "CC BY 2.0 FR", "aosp-strings": "Apache-2.0",
    "cldr-annotations": "Unicode-3.0", "gatitos": "CC BY 4.0", "mozilla-www": "MPL-2.0", "wiki-apps-osm": "Apache-2.0",
    "bible": "public domain, CC BY, CC BY-SA, by translation", "xcopa": "CC BY 4.0", "tatoeba": "CC BY 2.0 FR",
    "storybooks": "CC BY 4.0, each story", "hornmt": "CC BY 4.0", "ud-pud": "CC BY-SA 3.0",
    "indian-parallel": "CC BY-SA 3.0", "korean-bitext": "CC BY-SA 3.0",
    "tico-19-more and AfriQA": "CC0; CC BY 4.0", "wikipedia": "CC BY-SA, the articles",
    "bible and storybooks, joined": "as bible and storybooks", "questions": "CC BY 2.0 FR; CC BY 4.0",
    "wikipedia, a sentence and the others": "CC BY-SA, the articles",
}  # fmt: skip
MODELS = {  # what each is, and what it is bad at
    STATIC: (
        "Static multilingual encoder: the mean of token vectors, thousands of sentences per second on one core.",
        [
            "Word order: it is ignored.",
            "Formal text: most of the training text is everyday sentences and strings of programs.",
            "Languages with little training text: see the table.",
            "The packaged dev and test pairs of Tatoeba are part of its training text; evaluate it on other sets.",
        ],
    ),
    BASE: (
        f"All of {BACKBONE}, trained on translations and its own vectors of long text; a smaller vocabulary.",
        [
            "Languages that its backbone was not trained on and that have few sentences in the table.",
            "Cosines lie between .7 and 1, as those of its backbone: compare them with each other only.",
        ],
    ),
    SMALL: (
        f"Six layers of {BASE} over its word table, distilled from the twelve state by state.",
        [
            f"Questions to paragraphs and similarity of sentences: below {BASE} at both.",
            "Languages with few training sentences (see the table), and news in them above all.",
            "Cosines lie between .7 and 1, as those of its teacher: compare them with each other only.",
        ],
    ),
}


class Build:
    """The commands of one call, run in `output`; `log` are those of one model."""

    def __init__(self, data: Path, output: Path, steps: int) -> None:
        self.data, self.output, self.steps = data, output, steps
        self.log: list[str] = []

    def isoglot(self, *words: str, makes: str) -> None:
        """Run a command, unless what it makes is there: every command moves its result there when it is complete."""
        self.log.append(shlex.join(["isoglot", *words]))
        if not (self.output / makes).exists():
            print(self.log[-1], file=sys.stderr, flush=True)
            environment = os.environ | {"ISOGLOT_DATA": str(self.data)}
            command = [sys.executable, "-m", "isoglot", *words]
            subprocess.run(command, cwd=self.output, env=environment, check=True)

    def train(self, run: str, *, recipe: str = "") -> None:
        """Train models/RUN, or a file, into the folder RUN, from its newest checkpoint if it was interrupted."""
        trial = ["--set", f"steps={self.steps}"] if self.steps else []
        self.isoglot("train", recipe or f"models/{run}", "--output", run, *trial, makes=f"{run}/model")

    def average(self, run: str, start: str, folder: str, *, tolerance: float = 1.0) -> float:
        """Average RUN/model with `start` into a folder, by the share of its weights that is best on dev data.

        Shares that have a dev score more than `tolerance` (a fraction) worse than that of `start` are left out.
        """
        means = {}
        for share in SHARES:
            name = f"{run}-{share}"
            self.mix(run, start, share, name)
            self.log.pop()
            scores = self.dev(name)
            if tolerance == 1 or all(scores[key] >= score - tolerance for key, score in self.dev(start).items()):
                means[share] = fmean(scores.values())
        share = max(means, key=means.__getitem__)
        self.mix(run, start, share, folder)
        return share

    def mix(self, run: str, start: str, share: float, folder: str) -> None:
        """`share` of the weights of RUN/model and the rest of those of `start`, in a folder."""
        weights = f"{share},{round(1 - share, 2)}"
        self.isoglot("average", f"{run}/model", start, "--weights", weights, "--output", folder, makes=folder)

    def dev(self, name: str) -> dict[str, float]:
        """Four dev scores of a model, errors as 1 - error; they are kept in dev.json."""
        path = self.output / "dev.json"
        scores = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if name not in scores:
            folder = self.output / name
            encoder = isoglot.load(folder if folder.exists() else name)
            evaluate = partial(isoglot.evaluate, encoder, precision="auto")
            results = [
                evaluate([task], data=data, languages=languages)[task, subset, metric]
                for task, data, languages, subset, metric in (
                    ("tatoeba", BUNDLED / "dev", (), "mean", "accuracy/mean"),
                    ("xsim/ntrex-dev", self.data, DEV_LANGUAGES, "xx-eng", "error/ratio"),
                    ("sts-b-multi/dev", self.data, ["eng", "zho", "deu"], "mean", "spearman"),
                    ("retrieval/questions-dev", self.data, (), "mean", "ndcg@10"),
                )
            ]
            scores[name] = {
                f"{result.task} {result.metric}": 1 - result.value if result.lower_is_better else result.value
                for result in results
            }
            with atomic_write(path) as file:
                file.write(json.dumps(scores, indent=1) + "\n")
        print(f"{name}: {scores[name]}", file=sys.stderr, flush=True)
        return dict(scores[name])

    def static(self) -> None:
        """isoglot-static: trained alone, then taught by isoglot-base before packing; averaged, packed to 4 bits."""
        self.base()
        self.train("static")
        self.dev("static/model")
        texts = ("static_texts.py", "DATA", ".", "base-trimmed", "static/model")
        self.script(*texts, makes="static-first")
        self.write_recipe("static-taught")
        self.train("static-taught", recipe="static-taught.toml")
        self.mix("static-taught", "static-first", STATIC_SHARE, "static-averaged")
        self.save(f"isoglot.load('static-averaged', max_length={STATIC_TOKENS})", "static-long")
        self.dev("static-long")
        self.isoglot("convert", "static-long", "--output", STATIC, "--weights", "int4", makes=STATIC)

    def base(self) -> None:
        """isoglot-base: trained, averaged with the weights that it began from, its vocabulary trimmed."""
        self.script("base_texts.py", "DATA", ".", makes="base-cloze.jsonl")
        for recipe in ("base", "base-long"):
            self.write_recipe(recipe)
        self.train("base", recipe="base.toml")
        self.mix("base", BACKBONE, FIRST_SHARE, "base-first")
        self.train("base-long", recipe="base-long.toml")
        self.average("base-long", BACKBONE, "base-averaged", tolerance=TOLERANCE)
        vocabulary = ("base_vocabulary.py", "base-averaged", "DATA", "base-trimmed", "--report", "base-pieces.tsv")
        self.script(*vocabulary, makes="base-trimmed")
        self.pack("base-trimmed", BASE, BASE)

    def write_recipe(self, name: str) -> None:
        """Write a packaged recipe into OUTPUT, where the files are that it names."""
        self.log.append(f"isoglot recipe show models/{name} > {name}.toml")
        with atomic_write(self.output / f"{name}.toml") as file:
            file.write(recipes.text(f"models/{name}"))

    def pack(self, model: str, folder: str, name: str) -> None:
        """A model as ONNX, called `name` in the package, its layers in 8 bits and its words in 4 or 2.7."""
        settings = ", ".join(f"{key}={value!r}" for key, value in WORDS.items())
        self.log.append(
            f"python -c \"from isoglot.encoders import load, onnx_export; onnx_export.write_onnx(load('{model}'), "
            f"'{folder}', name='{name}', {settings}, compress=True)\""
        )
        if not (self.output / folder).exists():
            encoder = isoglot.load(self.output / model).trainable()
            write_onnx(encoder, self.output / folder, name=name, compress=True, **WORDS)

    def share(self, folder: str, part: str, whole: str) -> None:
        """A model without what it has in common with isoglot-base, and the whole that both make."""
        self.log.append(f"# the word table and the tokenizer of {BASE} instead of its own, which are the same")
        if not (self.output / whole).exists():
            shared = divide(self.output / folder, self.output / part)
            with layout.replacing(self.output / whole) as new:
                complete(self.output / part, self.output / BASE, shared, new)

    def script(self, name: str, *words: str, makes: str) -> None:
        """Run a script beside this one in OUTPUT, unless what it makes is there; DATA is the folder of the sets."""
        self.log.append(shlex.join(["python", f"scripts/{name}", *words]))
        if not (self.output / makes).exists():
            given = [str(self.data) if word == "DATA" else word for word in words]
            subprocess.run([sys.executable, str(PACKAGE / "scripts" / name), *given], cwd=self.output, check=True)

    def small(self) -> None:
        """isoglot-small: six layers of isoglot-base that were taught its states, over the same word table."""
        self.base()
        trial = ["--steps", str(self.steps)] if self.steps else []
        self.script("small_states.py", "DATA", ".", BASE, BASE, "small-states", *trial, makes="small-states")
        self.pack("small-states", "small-packed", SMALL)
        self.share("small-packed", "small-part", SMALL)

    def save(self, expression: str, folder: str) -> None:
        """Save the model that a Python expression makes."""
        command = f"import isoglot; {expression}.save('{folder}')"
        self.log.append(f'python -c "{command}"')
        if not (self.output / folder).exists():
            subprocess.run([sys.executable, "-c", command], cwd=self.output, check=True)

    def describe(self, name: str, results: Path | None) -> None:
        """Write the card: summary, data, licences, commands, and test scores where they are known."""
        summary, weaknesses = MODELS[name]
        licence = "Apache-2.0" if name == STATIC else "MIT, as multilingual-e5-small"
        facts: dict[str, Any] = {"name": name, "summary": summary, "licence": licence, "weaknesses": weaknesses}
        facts |= {"commands": self.log, "data": LICENCES, "base": "" if name == STATIC else BACKBONE}
        if results is not None:
            scores = [s for path in sorted((results / name).rglob("results.json")) for s in read_results(path.parent)]
            tatoeba = [s for s in scores if (s.task, s.metric) == ("tatoeba", "accuracy/mean") and not s.over]
            facts["languages"] = {score.subset.removesuffix("-eng"): 100 * score.value for score in tatoeba}
            facts["measure"] = "tatoeba accuracy, mean of both directions (%)"
            averages = [s for s in scores if s.main and s.over and (s.subset == "xx-eng" or "xx-" not in s.subset)]
            facts["scores"] = [
                {"task": f"{s.task} {s.subset}", "metric": s.metric, "value": s.value, "n": s.n} for s in averages
            ]
        card.describe(self.output / name, **facts)


def divide(folder: Path, part: Path) -> Shared:
    """Copy a model without its tokenizer and word table, and with a note of what it lacks, which is given back."""
    shutil.copytree(folder, part, dirs_exist_ok=True)
    model = onnx.load_model(part / layout.GRAPH)
    words = [each for each in model.graph.initializer if "word_embeddings" in each.name]
    for each in words:
        model.graph.initializer.remove(each)
    (part / layout.GRAPH).write_bytes(model.SerializeToString(deterministic=True))
    for name in TOKENIZER:
        (part / name).unlink()
    lacking = Shared(model=BASE, files=TOKENIZER, initializers=[each.name for each in words])
    layout.write_json(part / SHARED, lacking.model_dump())
    return lacking


def publish(folder: Path) -> None:
    """Copy a model into the package, isoglot-small without what isoglot-base has, and its card into the docs."""
    with layout.replacing(PACKAGE / "src" / "isoglot" / "models" / folder.name) as new:
        shutil.copytree(folder.parent / "small-part" if folder.name == SMALL else folder, new, dirs_exist_ok=True)
        for name in (card.README, card.FILE):
            shutil.copy(folder / name, new / name)
    pages = PACKAGE / "docs" / "models"
    pages.mkdir(exist_ok=True)
    shutil.copy(folder / card.README, pages / f"{folder.name}.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", default=",".join(MODELS), help=f"some of {', '.join(MODELS)}; all need {BASE}")
    parser.add_argument("--steps", type=int, default=0, help="steps of every run, for a trial")
    parser.add_argument("--results", type=Path, help="folder of scripts/comparison.py, whose scores go into the cards")
    parser.add_argument("--publish", action="store_true", help="copy the models into the package, the cards into docs")
    words = parser.parse_args()
    words.output.mkdir(parents=True, exist_ok=True)
    build = Build(words.data.resolve(), words.output.resolve(), words.steps)
    for name in words.only.split(","):
        build.log = []
        {STATIC: build.static, BASE: build.base, SMALL: build.small}[name]()
        build.describe(name, words.results)
        if words.publish:
            publish(words.output / name)
        print(words.output / name)


if __name__ == "__main__":
    main()
