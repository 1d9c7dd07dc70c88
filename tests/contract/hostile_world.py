"""One small valid call of every verb, in a folder with all that they read: toy models, text, tables, results.

The fixture `standing` makes calls in that folder, as the console script does.
"""

import hashlib
import io
import json
import lzma
import os
import shutil
import signal
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import numpy as np
import pytest
import typer
from web import Web, hub_pages, serving
from wiki_world import world as wikipedia_world

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.cli import main as command_line
from isoglot.data.files import digest, read_lines
from isoglot.encoders import StaticEncoder
from isoglot.model import packaged
from isoglot.model.packaged import Package, Source
from isoglot.training import settings

WORDS = ["cat", "dog", "horse", "bird", "fish", "runs", "eats", "sleeps", "sings", "here", "there", "now"]
ROWS = [f"{a} {b} {c}" for a in WORDS[:5] for b in WORDS[5:9] for c in WORDS[9:12]]

SECONDS = 20  # a call that takes longer hangs

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
    "mine --vectors": Verb("mine --output found.tmx --vectors a.npy --vectors b.npy --gold gold.tsv a.deu b.eng",
        ("a.npy", "b.npy", "gold.tsv"), "found.tmx"),
    "align": Verb("align --output found.jsonl model a.deu b.eng", ("model", "a.deu", "b.eng"), "found.jsonl"),
    "negatives": Verb("negatives -o hard.jsonl model pairs.tsv", ("model", "pairs.tsv"), "hard.jsonl"),
    "entities": Verb("entities entity --vectors entity.txt", ("entity", "entity.txt")),
    "entities by a model": Verb("entities entity --model model", ("entity", "model")),
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
    "wikipedia": Verb("wikipedia --wikidata wiki/wikidata.json --min-links 3 -o made wiki/en.xml", ("wiki",), "made"),
    "wikipedia from tables": Verb("wikipedia --titles wiki/titles.tsv --types wiki/types.tsv -o made wiki/ja.xml",
        ("wiki/titles.tsv", "wiki/types.tsv"), "made"),
    "train": Verb("train -o run recipe.toml", ("recipe.toml", "pairs.tsv", "scored"), "run"),
    "freeze": Verb("freeze trained -o frozen.zip", ("trained",), "frozen.zip"),
    "train, resumed": Verb("train -o trained recipe.toml", ("trained",), "trained"),
    "evaluate": Verb("evaluate --tasks tatoeba,retrieval,sts --cache kept --data scored -o scores model",
        ("scored", "kept"), "scores"),
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


@cache
def commands(group: click.Command | None = None, before: str = "") -> dict[str, click.Command]:
    """Every verb of the command line, as it is typed."""
    verbs: dict[str, click.Command] = {}
    for name, command in (group or typer.main.get_command(command_line.app)).commands.items():
        verbs |= commands(command, f"{before}{name} ") if hasattr(command, "commands") else {f"{before}{name}": command}
    return verbs


def verb_of(words: str) -> str:
    """The verb that a call begins with."""
    return next(name for name in sorted(commands(), key=len, reverse=True) if f"{words} ".startswith(f"{name} "))


def having(option: str) -> dict[str, Verb]:
    """Of each verb with an option the first call."""
    verbs = {name for name, command in commands().items() if any(option in one.opts for one in command.params)}
    return {verb_of(verb.words): verb for verb in reversed(VERBS.values()) if verb_of(verb.words) in verbs}


def lines(path: Path, rows) -> None:
    """A text file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def toy_models(monkeypatch) -> None:
    """One packaged model, made in a moment of a file that is always installed."""
    file = "__init__.py"
    known = {file: digest(Path(typer.__file__).with_name(file))}

    def convert(_how, _files, folder):
        StaticEncoder.create(build_tokenizer(), 8, seed=1).save(folder)

    source = Source((Package("typer", "typer", known),), "a toy", 8, "none", "copy")
    monkeypatch.setattr(packaged, "_convert", convert)
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
    folder.mkdir()
    for number, (address, page) in enumerate(hub_pages("sts17-crosslingual-sts").items()):
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


@dataclass
class Done:
    """How a call ended."""

    code: int
    out: bytes
    err: str
    files: dict[str, str]


class Standing:
    """The folder in which calls are made, made anew before each."""

    def __init__(self, folder: Path, web: Web) -> None:
        self.here, self.kept, self.web = folder / "deep" / "down" / "here", folder / "kept", web
        self.here.mkdir(parents=True, exist_ok=True)
        os.chdir(self.here)

    def renew(self) -> None:
        os.chdir("/")
        for folder, _, _ in os.walk(self.here):
            Path(folder).chmod(0o755)
        shutil.rmtree(self.here)
        shutil.copytree(self.kept, self.here, symlinks=True)
        os.chdir(self.here)

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.here)): f"-> {path.readlink()}"
            if path.is_symlink()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.here.rglob("*"))
            if path.is_symlink() or path.is_file()
        }

    def call(self, words, stdin: bytes = b"") -> Done:
        """Run the command line as its console script does."""
        if words[:2] == ["data", "get"]:
            pages = Path("mirror").glob("*.address")
            self.web.pages = {
                page.read_text(): body.read_bytes() for page in pages if (body := page.with_suffix(".page")).is_file()
            }
            words = [*words[:2], "--base-url", self.web.address, *words[2:]]
        streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors=errors)
                   for content, errors in ((stdin, "strict"), (b"", "strict"), (b"", "backslashreplace"))]  # fmt: skip
        before = sys.argv, sys.stdin, sys.stdout, sys.stderr
        sys.argv, (sys.stdin, sys.stdout, sys.stderr) = ["isoglot", *words], streams
        code: object = 0
        try:
            prints = (lambda: b"http" in streams[1].buffer.getvalue()) if "serve" in words else None
            with limited(SECONDS, prints), warnings.catch_warnings():
                command_line.main()
        except SystemExit as end:
            code = end.code
        finally:
            sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams[1:]:
            stream.flush()
        assert isinstance(code, int)
        return Done(code, streams[1].buffer.getvalue(), streams[2].buffer.getvalue().decode(), self.files())


@contextmanager
def limited(seconds: float, serves=None):
    """End what takes longer with an error, and a server with Ctrl-C, some time after `serves` says that it is one."""
    ends, is_ready = time.monotonic() + seconds, False

    def ring(*_: object) -> None:
        nonlocal is_ready
        if is_ready:
            signal.raise_signal(signal.SIGINT)
        elif serves is None or time.monotonic() > ends:
            pytest.fail(f"takes more than {seconds} s")
        is_ready = serves is not None and serves()

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds if serves is None else 0.2, 1 if serves is None else 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@contextmanager
def surroundings(folder: Path):
    """A folder for calls, with toy models, a small demo and a small web around it."""
    before = Path.cwd()
    with pytest.MonkeyPatch.context() as monkeypatch, serving(Web({})) as web:
        monkeypatch.setenv("ISOGLOT_CACHE", str(folder / "deep" / "down" / "here" / "cache"))
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setenv("COLUMNS", "100")
        toy_models(monkeypatch)
        small_demo(monkeypatch, folder / "bundled")
        yield Standing(folder, web)
        os.chdir(before)


@cache
def make_once(base: Path) -> Path:
    """The folder of all modules of a session, whose world is made once."""
    folder = base / "hostile"
    with surroundings(folder) as standing:
        make_world(standing.here, standing.call)
        shutil.copytree(standing.here, standing.kept, symlinks=True)
    return folder


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    with surroundings(make_once(tmp_path_factory.getbasetemp())) as found:
        yield found
