"""One small valid call of every verb, in a folder with all that they read: toy models, text, tables, results."""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from conftest import SENTENCES, build_tokenizer, build_transformer

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "wikipedia"))

from wiki_world import world as wikipedia_world

from isoglot.cli import main as command_line
from isoglot.data.files import digest, read_lines
from isoglot.data.sets import find
from isoglot.encoders import StaticEncoder
from isoglot.model import packaged
from isoglot.model.packaged import Package, Source
from isoglot.training import settings

WORDS = ["cat", "dog", "horse", "bird", "fish", "runs", "eats", "sleeps", "sings", "here", "there", "now"]
ROWS = [f"{a} {b} {c}" for a in WORDS[:5] for b in WORDS[5:9] for c in WORDS[9:12]]

TRAIN = """
name = "tiny"
steps = 2
checkpoint_every = 1
[encoder]
kind = "static"
vocabulary = 400
dim = 8
[[streams]]
sources = [{reader = "tsv", path = "pairs.tsv", weight = 1.0}]
batching = {size = 16, pool = 2}
objectives = [{name = "info_nce", direction = "two-way", temperature = 0.1}]
[optimizer]
lr = 0.05
clip = 1.0
[evaluation]
data = "scored"
every = 1
"""


@dataclass(frozen=True)
class Verb:
    """A valid call: its words, what it reads, and which of its words is what it writes."""

    words: str
    reads: tuple[str, ...] = ()
    output: str = ""


VERBS = {
    "mine": Verb("mine --output found.tsv model a.deu b.eng", ("model", "a.deu", "b.eng"), "found.tsv"),
    "mine --vectors": Verb(
        "mine --output found.tmx --vectors a.npy --vectors b.npy --gold gold.tsv a.deu b.eng",
        ("a.npy", "b.npy", "gold.tsv"),
        "found.tmx",
    ),
    "align": Verb("align --output found.jsonl model a.deu b.eng", ("model", "a.deu", "b.eng"), "found.jsonl"),
    "negatives": Verb("negatives -o hard.jsonl model pairs.tsv", ("model", "pairs.tsv"), "hard.jsonl"),
    "entities": Verb("entities entity --vectors entity.txt", ("entity", "entity.txt")),
    "encode": Verb("encode -o vectors.npy transformer a.deu", ("transformer", "a.deu"), "vectors.npy"),
    "encode static": Verb("encode -o vectors.npy model a.deu", ("model", "a.deu"), "vectors.npy"),
    "encode whitened": Verb("encode -o vectors.npy white a.deu", ("white",), "vectors.npy"),
    "encode flow": Verb("encode -o vectors.npy flow a.deu", ("flow",), "vectors.npy"),
    "index": Verb("index -o new model deu=a.deu b.eng sentences.jsonl", ("model", "sentences.jsonl", "b.eng"), "new"),
    "index, added to": Verb("index -o index model pairs.tsv", ("index", "pairs.tsv"), "index"),
    "search": Verb("search index cat", ("index",)),
    "export": Verb("export -o index.parquet index", ("index",), "index.parquet"),
    "serve": Verb("serve --port 0 index", ("index",)),
    "plot": Verb("plot --layout pca -o map.html model a.deu b.eng", ("model", "a.deu"), "map.html"),
    "plot of a table": Verb(
        "plot --layout pca -o map.svg --labels gold.tsv model rows.jsonl", ("rows.jsonl", "gold.tsv"), "map.svg"
    ),
    "fit": Verb("fit -o fitted whitening model a.deu", ("model", "a.deu"), "fitted"),
    "fit flow": Verb("fit -o fitted flow model a.deu", ("a.deu",), "fitted"),
    "average": Verb("average model model -o averaged", ("model",), "averaged"),
    "convert": Verb("convert transformer --weights int8 -o small", ("transformer",), "small"),
    "filter": Verb("filter -o kept.jsonl --model model pairs.tsv", ("model", "pairs.tsv"), "kept.jsonl"),
    "sweep": Verb(
        "sweep recipe.toml --over optimizer.lr=0.01,0.02 --seeds 1 --data . -o swept", ("recipe.toml",), "swept"
    ),
    "data report": Verb("data report recipe.toml", ("recipe.toml", "pairs.tsv")),
    "trim": Verb("trim -o small transformer a.deu memory.tmx", ("transformer", "memory.tmx"), "small"),
    "wikipedia": Verb(
        "wikipedia --wikidata wiki/wikidata.json --min-links 3 -o made wiki/en.xml", ("wiki",), "made"
    ),
    "wikipedia from tables": Verb(
        "wikipedia --titles wiki/titles.tsv --types wiki/types.tsv -o made wiki/ja.xml",
        ("wiki/titles.tsv", "wiki/types.tsv"),
        "made",
    ),
    "train": Verb("train -o run recipe.toml", ("recipe.toml", "pairs.tsv", "scored"), "run"),
    "freeze": Verb("freeze trained -o frozen.zip", ("trained",), "frozen.zip"),
    "train, resumed": Verb("train -o trained recipe.toml", ("trained",), "trained"),
    "evaluate": Verb(
        "evaluate --tasks tatoeba,retrieval,sts --cache kept --data scored -o scores model",
        ("scored", "kept"),
        "scores",
    ),
    "evaluate --vectors": Verb(
        "evaluate --tasks tatoeba --data scored --vectors texts.npy --texts texts.jsonl -o scores",
        ("texts.npy", "texts.jsonl"),
        "scores",
    ),
    "compare": Verb("compare --resamples 20 -o compared one two", ("one", "two"), "compared"),
    "report": Verb("report -o page.html one two", ("one", "two"), "page.html"),
    "tasks": Verb("tasks --data scored", ("scored",)),
    "demo": Verb("demo -o demo", (), "demo"),
    "recipe list": Verb("recipe list"),
    "recipe show": Verb("recipe show recipe.toml", ("recipe.toml",)),
    "recipe check": Verb("recipe check recipe.toml", ("recipe.toml", "pairs.tsv")),
    "data list": Verb("data list --data sets", ("sets",)),
    "data get": Verb("data get --timeout 1 --attempts 1 --data got sts17-crosslingual-sts", ("mirror",), "got"),
    "data import": Verb("data import tatoeba-laser scored --data normal", ("scored",), "normal"),
    "data check": Verb("data check --data sets", ("sets",)),
    "models list": Verb("models list", ("cache",)),
    "models get": Verb("models get toy", ("cache",)),
}  # fmt: skip


def commands() -> set[str]:
    """Every verb of the command line, as it is typed."""
    group = typer.main.get_command(command_line.app)
    found = set()
    for name, command in group.commands.items():
        found |= {f"{name} {below}" for below in command.commands} if hasattr(command, "commands") else {name}
    return found


def verb_of(words: str) -> str:
    """The verb that a call begins with."""
    return next(name for name in sorted(commands(), key=len, reverse=True) if f"{words} ".startswith(f"{name} "))


def lines(path: Path, rows) -> None:
    """A text file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def toy_models(monkeypatch) -> None:
    """One packaged model, made in a moment of a file that is always installed."""
    file = "__init__.py"
    known = {file: digest(Path(typer.__file__).with_name(file))}

    def convert(_files, folder):
        StaticEncoder.create(build_tokenizer(), 8, seed=1).save(folder)

    source = Source((Package("typer", "typer", known),), "a toy", 8, "none", convert)
    monkeypatch.setattr(packaged, "SOURCES", {"toy": source})
    monkeypatch.setattr(packaged, "names", lambda: ["toy"])


def small_demo(monkeypatch, folder: Path) -> None:
    """The demo on fifteen lines of each bundled file, two steps a recipe."""
    from isoglot.training import demo

    for part in ("dev", "test", "mine"):
        for path in sorted((settings.BUNDLED / part).glob("*tur-eng*")):
            rows = "".join(f"{text}\n" for _, text in list(read_lines(path))[:15])
            (folder / part).mkdir(parents=True, exist_ok=True)
            (folder / part / path.name).write_bytes(lzma.compress(rows.encode()))
    gold = folder / "mine" / "tur-eng.gold.tsv"
    gold.unlink()
    lines(gold, ["source\ttarget", *(f"{i}\t{i}" for i in range(1, 16))])
    lines(folder / "pairs.tsv", ["eng\tdeu", *(f"{row}\t{row[::-1]}" for row in ROWS)])
    loaded = demo.recipes.load
    recipe = TRAIN.replace('"pairs.tsv"', f'"{folder / "pairs.tsv"}"').replace('"scored"', f'"{folder / "dev"}"')
    lines(folder / "demo.toml", [recipe])

    def load(name, overrides=()):
        return loaded(str(folder / "demo.toml") if name.startswith("demo/") else name, overrides)

    monkeypatch.setattr(demo.recipes, "load", load)
    monkeypatch.setattr(demo, "BUNDLED", folder)


def mirror(folder: Path) -> None:
    """The pages of a hub that has one small set; a file each, and a table of their addresses."""
    one = find("sts17-crosslingual-sts")
    files = {count.files.removesuffix("*"): b"{}\n" * count.lines for count in one.counts}
    listing = [{"type": "file", "path": path, "size": len(text)} for path, text in files.items()]
    where, revision = f"/huggingface.co/datasets/{one.hub.repository}/resolve", one.hub.revision
    tree = f"/huggingface.co/api/datasets/{one.hub.repository}/tree/{revision}?recursive=true"
    pages = {tree: json.dumps(listing).encode()}
    pages |= {f"{where}/{revision}/{path}": text for path, text in files.items()}
    folder.mkdir()
    for number, (address, page) in enumerate(pages.items()):
        (folder / f"{number}.page").write_bytes(page)
        (folder / f"{number}.address").write_text(address)


def make_world(folder: Path, call) -> None:
    """All files that the calls above read; `call` runs the command line in the folder."""
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(folder / "model")
    build_transformer(prompt="query: ").save(folder / "transformer")
    lines(folder / "a.deu", [*SENTENCES, *ROWS[:10]])
    lines(folder / "b.eng", [*ROWS[20:30], *SENTENCES[::-1]])
    lines(folder / "gold.tsv", [f"{i}\t{21 - i}" for i in range(1, 11)])
    for name in ("a", "b"):
        np.save(folder / f"{name}.npy", np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32))
    lines(folder / "pairs.tsv", ["eng\tdeu", *(f"{row}\t{row[::-1]}" for row in ROWS)])
    rows = [{"texts": [row, row[::-1]], "langs": ["eng", "deu"], "key": str(i)} for i, row in enumerate(ROWS[:10])]
    lines(folder / "rows.jsonl", map(json.dumps, rows))
    rows = [{"text": row, "language": "eng", "id": str(i)} for i, row in enumerate(ROWS[:10])]
    lines(folder / "sentences.jsonl", map(json.dumps, rows))
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{row}</seg></tuv><tuv xml:lang="de"><seg>{row[::-1]}</seg></tuv></tu>\n'
        for row in ROWS[:5]
    )
    memory = f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n{units}</body></tmx>'
    lines(folder / "memory.tmx", [memory])
    lines(folder / "recipe.toml", [TRAIN])
    for name, code in (("a", "deu"), ("b", "eng")):
        lines(folder / "scored" / f"tatoeba.deu-eng.{code}", [f"{name} {row}" for row in ROWS[:12]])
    lines(folder / "scored" / "retrieval.tsv", ["deu\teng", *(f"{row}\t{row[::-1]}" for row in ROWS[:12])])
    scored = [f"{row}\t{row[::-1]}\t{i % 6}" for i, row in enumerate(ROWS[:12])]
    lines(folder / "scored" / "sts.tsv", ["sentence1\tsentence2\tscore", *scored])
    texts = [f"{name} {row}" for name in "ab" for row in ROWS[:12]]
    lines(folder / "texts.jsonl", map(json.dumps, texts))
    np.save(folder / "texts.npy", np.random.default_rng(0).standard_normal((24, 8)).astype(np.float32))
    lines(folder / "entity" / "entities.tsv", [f"Q{i}\t{9 - i}\t{label}" for i, label in enumerate(WORDS[:4])])
    lines(folder / "entity.txt", [f"ENTITY/{label}\t{i} 2 3" for i, label in enumerate(WORDS[:4])])
    (folder / "wiki").mkdir()
    wikipedia_world(folder / "wiki")
    lines(folder / "sets" / "mldoc" / "english.dev", ROWS[:3])
    mirror(folder / "mirror")
    for words in (
        "fit -o white whitening transformer a.deu",
        "fit -o flow flow model a.deu",
        "index -o index model deu=a.deu b.eng",
        "train -o trained recipe.toml",
        "evaluate --tasks tatoeba,retrieval,sts --cache kept --data scored -o one model",
        "evaluate --tasks tatoeba,retrieval,sts --data scored -o two transformer",
        "data get --timeout 1 --attempts 1 --data sets sts17-crosslingual-sts",
        "models get toy",
    ):
        done = call(words.split())
        assert done.code == 0, done.err
