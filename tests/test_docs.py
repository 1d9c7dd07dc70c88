"""The documents keep their word: their Python runs, their recipes are valid, their commands and links exist.

Of each page, the fenced `python` blocks are run in order in one namespace, in a copy of the folder `prepared`, unless
the line above a block is `<!-- not run: reason -->`; if the reason is `lines of FILE`, they must be in that file. A
`toml` block is a recipe or a part of one. In `sh` blocks every line is a command, in `console` blocks those after "$ ".
"""

import ast
import itertools
import re
import shlex
import shutil
from copy import deepcopy
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
import typer

from isoglot.cli.main import app
from isoglot.data import readers
from isoglot.encoders import StaticEncoder
from isoglot.encoders import settings as opened
from isoglot.evaluation import TASKS
from isoglot.model.tokenizer import train_tokenizer
from isoglot.objectives import OBJECTIVES
from isoglot.training import recipe, settings
from isoglot.training.plan import corpus_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<mark><!-- not run: [^\n]+ -->\n+)?```(?P<kind>[a-z]+)\n(?P<text>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#[^)\s]*)?\)")
OPERATORS = "|&;<>"
SLOW = {  # pages whose Python opens a large model, trains, draws or evaluates
    *("README.md", "docs/encode.md", "docs/evaluate.md", "docs/plot.md", "docs/train.md"),
    *("docs/models/isoglot-base.md", "docs/models/isoglot-small.md"),
}

ELSEWHERE = {"docs/integrations.md"}  # its Python needs other packages: tests/test_integrations.py

# What a fragment of a recipe is completed with.
STREAM = {"sources": [{"reader": "tsv", "path": "translations.tsv"}], "objectives": [{"name": "info_nce"}]}
REST = {"name": "page", "epochs": 1, "encoder": {"kind": "static"}, "streams": [STREAM], "optimizer": {"lr": 0.02}}


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


EXCERPTS = [
    pytest.param(match["text"], file[1], id=f"{label(page)}:{file[1]}")
    for page in PAGES
    for match in FENCE.finditer(page.read_text(encoding="utf-8"))
    if (file := re.search(r"not run: lines of (\S+)", match["mark"] or ""))
]


def blocks(page: Path, *kinds: str) -> list[tuple[int, str, str]]:
    """(line before the text, kind, text) of the blocks that are not marked."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in FENCE.finditer(text) if match["kind"] in kinds and not match["mark"]]
    return [(text.count("\n", 0, match.start("text")), match["kind"], match["text"]) for match in found]


def commands(kind: str, text: str) -> list[list[str]]:
    """The simple commands of a shell block, each as its words."""
    found: list[list[str]] = [[]]
    for line in text.replace("\\\n", " ").splitlines():
        if kind == "console" and not line.startswith("$ "):
            continue
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=OPERATORS)
        lexer.whitespace_split = True
        for word in [*lexer, ";"]:
            if set(word) <= set(OPERATORS):
                found.append([])
            else:
                found[-1].append(word)
    return [words for words in found if words]


def arguments(words: list[str]) -> list[str] | None:
    """What the command line of isoglot is given; None if the words call something else."""
    first = next((place for place, word in enumerate(words) if not re.match(r"[A-Z_]+=", word)), 0)
    for place, word in enumerate(words):
        if Path(word).name == "isoglot" and (place == first or words[place - 1] == "-m"):
            return words[place + 1 :]
    return None


PYTHON = [
    pytest.param(page, id=label(page), marks=[pytest.mark.slow] if label(page) in SLOW else [])
    for page in PAGES
    if blocks(page, "python") and label(page) not in ELSEWHERE
]
TOML = [pytest.param(text, id=f"{label(page)}:{line + 1}") for page in PAGES for line, _, text in blocks(page, "toml")]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """What a reader has after the demo: a model in build/demo; and some text of their own, English and German."""
    folder = tmp_path_factory.mktemp("prepared")
    words = [
        [("The cat", "Die Katze"), ("A dog", "Ein Hund"), ("My sister", "Meine Schwester"), ("Tom", "Tom")],
        [("sleeps", "schläft"), ("sings", "singt"), ("waits", "wartet"), ("works", "arbeitet")],
        [("in the garden.", "im Garten."), ("at home.", "zu Hause."), ("every day.", "jeden Tag."), ("here.", "hier.")],
    ]
    pairs = [tuple(map(" ".join, zip(*parts, strict=True))) for parts in itertools.product(*words)]
    held_out, kept = pairs[::4], [pair for place, pair in enumerate(pairs) if place % 4]
    for name, chosen in (("translations.tsv", kept), ("held-out.tsv", held_out)):
        (folder / name).write_text("eng\tdeu\n" + "".join(f"{a}\t{b}\n" for a, b in chosen), encoding="utf-8")
    (folder / "tatoeba").mkdir()
    for side, (plain, code) in enumerate((("english.txt", "eng"), ("german.txt", "deu"))):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / plain).write_text(text, encoding="utf-8")
        (folder / "tatoeba" / f"tatoeba.deu-eng.{code}").write_text(text, encoding="utf-8")
    tokenizer = train_tokenizer(itertools.chain.from_iterable(pairs), 400)
    StaticEncoder.create(tokenizer, 16).save(folder / "build" / "demo" / "model")
    return folder


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs(page, prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    space: dict[str, object] = {"__name__": "__main__"}
    with patch.dict(OBJECTIVES.data), patch.dict(TASKS.data), patch.dict(readers.READERS.data):
        for line, _, text in blocks(page, "python"):
            exec(compile("\n" * line + text, str(page), "exec"), space)  # the padding makes line numbers the page's


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_commands_exist_and_links_lead_somewhere(page):
    for line, kind, text in blocks(page, "sh", "console"):
        for words in commands(kind, text):
            try:
                check_command(words)
            except Exception as error:  # such as one of click
                raise AssertionError(f"{label(page)}:{line + 1}: {' '.join(words)}") from error
    for link in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        assert (page.parent / link["path"]).exists(), f"{label(page)}: {link['path']}"


def check_command(words):
    """Verbs, options and their types, by the command line's own parser; names of packaged recipes; make targets."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets)
    given = arguments(words)
    if given is None:
        return
    parser().main(args=list(given), prog_name="isoglot", standalone_mode=False)
    verb = 1 if given[0] == "train" else 2 if given[:2] in (["recipe", "show"], ["recipe", "check"]) else 0
    if verb and not given[verb].endswith(".toml"):
        recipe.text(given[verb])


@cache
def parser():
    """The command line without what its commands do."""
    command = deepcopy(typer.main.get_command(app))
    do_nothing(command)
    return command


def do_nothing(command: object) -> None:
    command.callback = None
    for inner in getattr(command, "commands", {}).values():
        do_nothing(inner)


@pytest.mark.parametrize("text", TOML)
def test_recipes_are_valid(text):
    given = recipe.tomllib.loads(text)
    own = {"streams", "optimizer", "epochs"} if "stages" in given else {"epochs"} if "steps" in given else set()
    if "extends" in given:
        assert recipe.parse(given)
        return
    whole = {key: value for key, value in REST.items() if key not in own} | given
    for part in whole.get("stages", [whole]):
        part["streams"] = [STREAM | stream for stream in part.get("streams", [STREAM])]
        part["optimizer"] = REST["optimizer"] | part.get("optimizer", {})
    for stage in (parsed := recipe.parse(whole)).stages:
        for stream in stage.streams:
            for source in corpus_of(parsed, stream).sources:
                readers.READERS.check(source.reader, source.options)
            for term in stream.objectives:
                OBJECTIVES.check(term.name, term.options)


@pytest.mark.parametrize("text, file", EXCERPTS)
def test_excerpts_are_in_their_files(text, file):
    """In order, `...` standing for lines that are left out."""
    lines = iter([line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()])
    for line in text.splitlines():
        assert line in ("", "...") or line.strip() in lines, f"{file} has no line {line!r} there"


SETTINGS = [value for value in (vars(settings) | vars(opened)).values() if hasattr(value, "model_fields")]


def test_every_setting_of_a_recipe_is_explained():
    text = (ROOT / "docs" / "train.md").read_text(encoding="utf-8")
    names = {name for model in SETTINGS for name in model.model_fields} - {"kind", "folder", "reader", "path"}
    assert len(names) > 40
    assert {name for name in names if f"`{name}`" not in text and f"{name} = " not in text} == set()


def test_the_tables_of_settings_have_the_defaults_of_the_fields():
    """A default that is written as a value is that of the field, or stands in its description (None: ... 256)."""
    text = (ROOT / "docs" / "train.md").read_text(encoding="utf-8")
    compared = 0
    for table in re.findall(r"^\| key[^|\n]*\| default .*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE):
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        rows = [(re.findall(r"`(\w+)`", keys), default) for keys, default, *_ in cells if " or " not in keys]
        names = {key for keys, _ in rows for key in keys}
        fields = max((m.model_fields for m in SETTINGS), key=lambda found: (len(names & found.keys()), -len(found)))
        assert names <= fields.keys() | {"streams", "optimizer"}  # of the only stage
        for keys, default in rows:
            words = re.split(r", (?![^\[]*\])", default) if len(keys) > 1 else [default]
            for key, word in zip(keys, words, strict=False):
                value, plain = fields[key].default if key in fields else None, word.strip("`").replace(",", "")
                if word.startswith("`["):
                    assert list(value) == ast.literal_eval(word.strip("`"))
                elif re.fullmatch(r"-?\d[\d.]*(e-?\d+)?", plain):
                    assert float(plain) == value or plain in fields[key].description, (key, word, value)
                elif plain in ("true", "false"):
                    assert value is (plain == "true"), (key, word, value)
                elif re.fullmatch(r"`[\w-]+`", word):
                    assert plain == value or plain in fields[key].description, (key, word, value)
                else:
                    continue
                compared += 1
    assert compared > 40
