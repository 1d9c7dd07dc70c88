"""No verb writes over an input or over what it did not write, and a wrong output is rejected before the work."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import RECIPE, invoke, locked_elsewhere
from killed import full_after

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.main import app
from isoglot.core.errors import IsoglotError, OutputError
from isoglot.encoders import StaticEncoder, load
from isoglot.model import layout

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A model, two texts and pairs, in the current folder; and a folder that is the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "m")
    for name in ("a.eng", "b.deu"):
        Path(name).write_text("".join(f"{text}\n" for text in SENTENCES[:7]), encoding="utf-8")
    Path("p.tsv").write_text("eng\tdeu\n" + "".join(f"{a}\t{b}\n" for a, b in pairwise(SENTENCES[:7])))
    Path("proj/src").mkdir(parents=True)
    for name in ("config.json", "modules.json", "thesis.txt", "src/code.py"):
        (Path("proj") / name).write_text("{}")
    return tmp_path


def tree():
    """All files below the current folder but those of the cache and locks."""
    return {
        str(path): path.read_bytes()
        for path in Path().rglob("*")
        if path.is_file() and path.parts[0] != "cache" and "tfevents" not in path.name
    }


run = partial(invoke, app)


TRIM, FIT = ("trim", "m", "a.eng"), ("fit", "whitening", "m", "a.eng", "--dim", 2)
REPLACING = pytest.mark.parametrize("verb", [TRIM, FIT], ids=["trim", "fit"])


@REPLACING
def test_a_folder_of_the_user_is_not_replaced(project, verb):
    Path("alias").symlink_to("m")
    Path("link").symlink_to(project)
    Path("cache/hub").mkdir(parents=True)
    Path("cache/hub/config.json").symlink_to(project / "proj/config.json")
    before = tree()
    for output in ("proj", "proj/src", "m", "./m/../m", "m/sub", ".", "alias", "link/m", "cache/hub"):
        with pytest.raises(OutputError):
            run(*verb, "-o", output)
        assert tree() == before, output
        assert Path("cache/hub/config.json").is_symlink()


@REPLACING
def test_a_model_of_ours_is_replaced_unless_something_was_added(project, verb):
    run(*verb, "-o", "out")
    shutil.copytree("m", "other")
    run(*verb, "-o", "other")
    assert {path.name for path in Path("other").iterdir()} == {path.name for path in Path("out").iterdir()}
    assert load("other").dim == load("out").dim
    Path("empty").mkdir()
    Path("link").symlink_to("empty")
    run(*verb, "-o", "link")
    assert Path("link").is_symlink()
    assert (Path("empty") / layout.FILES).is_file()
    for add in ("thesis.txt", "sub/thesis.txt"):
        path = Path("out") / add
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        with pytest.raises(OutputError, match=add):
            run(*verb, "-o", "out")
        assert path.read_text() == "mine"
        path.unlink()
    (Path("out") / layout.FILES).unlink()  # as an earlier version saved it
    before = tree()
    with pytest.raises(OutputError, match=r"out: .*no list of files"):
        run(*verb, "-o", "out")
    assert tree() == before
    assert [path.name for path in Path().glob(".*")] == []


VERBS = {
    "encode": ("encode", "x", "a.eng"),
    "encode --ray": ("encode", "x", "a.eng", "--ray", "local"),
    "mine": ("mine", "x", "a.eng", "b.deu"),
    "mine tmx": ("mine", "x", "a.eng", "b.deu", "--format", "tmx"),
    "negatives": ("negatives", "x", "p.tsv"),
    "plot": ("plot", "x", "a.eng"),
    "trim": ("trim", "x", "a.eng"),
    "fit": ("fit", "whitening", "x", "a.eng"),
    "index": ("index", "x", "a.eng"),
    "export": ("export", "x"),
    "evaluate": ("evaluate", "x", "--data", "."),
    "evaluate --write-texts": ("evaluate", "--data", ".", "--write-texts"),
    "compare": ("compare", "x"),
    "report": ("report", "x"),
    "wikipedia": ("wikipedia", "a.eng", "--titles", "p.tsv"),
    "train": ("train", "demo/pairs"),
    "train --seeds": ("train", "demo/pairs", "--seeds", 2),
    "demo": ("demo",),
}
FOLDERS = ("encode --ray", "trim", "fit", "index", "evaluate", "compare", "wikipedia", "train", "train --seeds", "demo")


@pytest.mark.parametrize("name", VERBS)
def test_an_output_that_cannot_be_is_refused_before_the_work(project, name):
    """The model `x` does not exist, so whatever opens it first fails otherwise."""
    if name in FOLDERS:
        Path("taken.html").write_text("mine")
    else:
        Path("taken.html").mkdir()
    before = tree()
    for output in ("a.eng/deep/out.html", "/proc/out.html", "x" * 260 + ".html", "taken.html"):
        with pytest.raises(OutputError, match=output[:20]):
            run(*VERBS[name], "-o", output)
        assert tree() == before, output


@pytest.mark.parametrize(
    "words",
    [
        ("encode", "m", "x.npy.partial", "-o", "x.npy"),
        ("encode", "m", "x.npy.partial.journal", "-o", "x.npy"),
        ("encode", "m", "a.eng", "-o", "x.npy"),  # x.npy.partial is the user's
        ("negatives", "m", "pairs", "-o", "pairs/x.eng"),
        ("mine", "m", "source.txt", "target.txt", "-o", "p.out", "--work", "."),
        ("mine", "m", "a.eng", "b.deu", "-o", "mined"),  # mined.work is the user's
        ("mine", "m", "a.eng", "b.deu", "-o", "w", "--work", "w"),
        ("index", "m", "a.eng", "-o", "base"),  # a database of the user's
        ("evaluate", "m", "--data", "data", "--tasks", "tatoeba", "-o", "proj2"),  # its results.json is the user's
        ("evaluate", "--data", "data", "--write-texts", "-o", "data/tatoeba.deu-eng.deu"),
        ("wikipedia", "dump.xml", "--titles", "p.tsv", "-o", "out", "--work", "proj"),
        ("wikipedia", "dump.xml", "--titles", "p.tsv", "-o", "mined"),
        ("train", "demo/pairs", "-o", "proj2"),  # its run.json is the user's
        ("train", "demo/pairs", "-o", "proj3"),  # its model/ is the user's
        ("train", "demo/pairs", "--seeds", 2, "-o", "proj2"),  # its seeds.json is the user's
        ("train", "own.toml", "-o", "proj4"),  # its model/ is where training begins
        ("demo", "-o", "proj3"),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_nothing_of_the_user_is_written_over(project, words):
    """Files that are neither inputs nor outputs of the call: those are the cases of tests/contract/test_paths.py."""

    for name in ("source.txt", "target.txt", "x.npy.partial", "x.npy.partial.journal", "dump.xml"):
        Path(name).write_bytes(Path("a.eng").read_bytes())
    for name in ("pairs/x.eng", "pairs/x.deu", "mined.work/source.txt", "mined.work/thesis.txt", "proj2/results.json",
                 "proj2/run.json", "proj2/seeds.json", "proj3/model/config.json", "proj3/runs/pairs/thesis.txt",
                 "data/tatoeba.deu-eng.deu", "data/tatoeba.deu-eng.eng"):  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("mine\n")
    shutil.copytree("m", "proj4/model")
    Path("own.toml").write_text(RECIPE.replace('"m"', '"proj4/model"'))
    Path("base").mkdir()
    with sqlite3.connect("base/index.sqlite") as base:
        base.execute("CREATE TABLE diary (day TEXT)")
    base.close()
    before = tree()
    with pytest.raises(IsoglotError):
        run(*words)
    after = tree()
    assert {name: after.get(name) for name in before} == before
    assert [path for path in Path().rglob(".*") if path.name.endswith((".lock", ".tmp", ".new", ".old"))] == []


def test_an_encoding_does_not_begin_anew_in_the_finished_file_of_another(project):
    with locked_elsewhere("x.npy"), pytest.raises(OutputError, match="another process"):
        run("encode", "m", "a.eng", "-o", "x.npy")
    assert not Path("x.npy.partial").exists()
    run("encode", "m", "a.eng", "-o", "x.npy")
    assert [name for name in tree() if name.startswith((".", "x.npy"))] == ["x.npy"]


@pytest.mark.slow
def test_one_run_at_a_time(project):
    verbs = ("index", "evaluate", "demo", "encode --ray", "train", "mine", "trim", "fit", "wikipedia")
    calls = [(verb, "out", ()) for verb in verbs]
    calls += [(verb, "held", ("--work", "held")) for verb in ("mine", "wikipedia")]
    for verb, held, more in calls:
        with locked_elsewhere(held), pytest.raises(OutputError, match=f"{held}: another process"):
            run(*[word if word != "x" else "m" for word in VERBS[verb]], "-o", "out", *more)


@pytest.mark.slow
def test_stdout_that_is_full_is_named(project):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "isoglot", "recipe", "show", "demo/pairs"], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False, env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "isoglot: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("encode", "m", "long.eng", "-o", "x.npy"), "x.npy"),
        (("mine", "m", "long.eng", "-o", "x.tsv"), "x.tsv"),
        (("negatives", "m", "long.tsv", "-o", "x.jsonl"), "isoglot-.*npy"),
        (("plot", "m", "long.eng", "--layout", "pca", "-o", "x.html"), "x.html"),
        (("trim", "m", "long.eng", "-o", "x"), "x: "),
        (("index", "m", "long.eng", "-o", "x"), "x"),
        (("train", "long.toml", "-o", "x"), "x"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else words,
)
def test_a_full_disk_is_one_line_that_names_the_path(project, words, named, monkeypatch):
    # Else Python would cut the bytecode of a module imported meanwhile, which no later process could read.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    lines = [f"{SENTENCES[row % 7]} {row}" for row in range(300)]
    Path("long.eng").write_text("".join(f"{line}\n" for line in lines))
    Path("long.tsv").write_text("eng\tdeu\n" + "".join(f"{line}\t{line[::-1]}\n" for line in lines))
    Path("long.toml").write_text(RECIPE.replace("p.tsv", "long.tsv"))
    with full_after(1500), pytest.raises(IsoglotError, match=named):
        run(*words)
    assert [path for path in Path().rglob(".*") if path.name.endswith((".lock", ".tmp", ".new", ".old"))] == []
    run(*words)


KILLED = """
import os, signal, sys
seen, at = 0, int(sys.argv[1])
def count(event, arguments):
    global seen
    if event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir") and "cache" not in str(arguments[0]):
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
from isoglot.cli.main import app
sys.addaudithook(count)
app(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        TRIM, FIT, ("encode", "m", "a.eng"), ("mine", "m", "a.eng", "b.deu"), ("negatives", "m", "p.tsv"),
        ("index", "m", "a.eng"), ("train", "own.toml"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_killed_anywhere_and_run_again_nothing_is_left(project, words):
    Path("own.toml").write_text(RECIPE.replace("steps = 1", "steps = 3\ncheckpoint_every = 1"))
    before = tree()
    run(*words, "-o", "whole")
    whole = {name.replace("whole", "out", 1) for name in tree().keys() - before.keys()}
    assert whole
    shutil.rmtree("whole") if Path("whole").is_dir() else Path("whole").unlink()
    for at in (1, 2, 3, 4, 6, 8, 10):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(at), *map(str, words), "-o", "out"],
            check=False, capture_output=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        run(*words, "-o", "out")
        now = tree()
        assert now.keys() - before.keys() == whole
        assert {name: now[name] for name in before} == before
        if at % 2:  # the other half of the kills meets an output that is there
            shutil.rmtree("out") if Path("out").is_dir() else Path("out").unlink()


def test_a_file_beside_the_output_is_the_users(project):
    """The table from which a Parquet file or JSON lines are made has a hidden name."""
    Path("x.jsonl.npy").write_text("mine")
    run("encode", "m", "a.eng", "-o", "x.jsonl")
    assert Path("x.jsonl.npy").read_text() == "mine"
    assert sorted(path.name for path in Path().glob("*x.jsonl*")) == ["x.jsonl", "x.jsonl.npy"]
