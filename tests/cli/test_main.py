"""The command line as a user meets it: one line for an error, exit codes, files that are there afterwards."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from test_loop import RECIPE, write_corpus

import isoglot
from isoglot.cli.main import app, main, make_completion

SLOW = pytest.mark.slow


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ISOGLOT_DEBUG", "0")  # so that it is put back to nothing afterwards
    monkeypatch.delenv("ISOGLOT_DEBUG")
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


@pytest.mark.parametrize("word", ["a\udcff", "a\0b"])
def test_words_that_no_file_may_hold_are_refused_before_the_work(project, run_main, word):
    code, out, err = run_main("train", "tiny.toml", "--output", word)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("isoglot: the argument ")
    assert not [path for path in project.iterdir() if path.is_dir() and path.name not in ("dev", "cache")]


def test_train_encode_evaluate(project, run_main):
    code, out, err = run_main("train", "tiny.toml", "--output", "run")
    assert (code, out.strip()) == (0, "run/model")
    assert "120 read, 120 kept" in err
    (project / "lines.txt").write_text("red cat\n\nred cat\n")
    assert run_main("encode", "run/model", "lines.txt", "--output", "vectors.npy")[0] == 0
    vectors = np.load(project / "vectors.npy")
    assert vectors.shape == (3, 16)
    assert (vectors[0] == vectors[2]).all()
    assert not vectors[1].any()
    code, out, err = run_main("evaluate", "run/model", *TATOEBA, "--output", "scores")
    assert code == 0
    assert "deu-eng" in out
    assert "% encoding)" in err
    results = json.loads((project / "scores" / "results.json").read_text())
    assert set(results) == {"model", "settings", "scores"}
    assert {(s["task"], s["subset"], s["metric"]) for s in results["scores"]} >= {
        ("tatoeba", "deu-eng", f"accuracy/{way}") for way in ("xx-en", "en-xx", "mean")
    }
    for name in ("page.html", "results.md", "items.npz"):
        assert (project / "scores" / name).exists(), name
    assert not (project / "scores" / "mteb").exists()  # fewer pairs than MTEB has


TATOEBA = ("--data", "dev", "--tasks", "tatoeba", "--languages", "de")


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    write_corpus(folder)
    (folder / "tiny.toml").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOGLOT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        for words in (["train", "tiny.toml", "-o", "run"], ["evaluate", "run/model", *TATOEBA, "-o", "scores"]):
            patch.setattr(sys, "argv", ["isoglot", *words])
            with pytest.raises(SystemExit, match="0"):
                main()
    return folder


@pytest.fixture
def trained(project, trained_once):
    """A project with a model, `run/model`, and its scores, in `scores`."""
    shutil.copytree(trained_once, project, dirs_exist_ok=True)
    return project


def test_vectors_made_elsewhere_and_functions_give_the_same_scores(trained, run_main, monkeypatch):
    assert run_main("evaluate", *TATOEBA, "--write-texts", "--output", "texts.jsonl")[0] == 0
    texts = [json.loads(line) for line in (trained / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
    np.save("vectors.npy", isoglot.encode(isoglot.load("run/model"), texts))
    assert run_main("evaluate", *TATOEBA, "--vectors", "vectors.npy", "--texts", "texts.jsonl", "--output", "v")[0] == 0
    code = "import isoglot\nmodel = isoglot.load('run/model')\ndef f(texts): return isoglot.encode(model, texts)\n"
    (trained / "mine_own.py").write_text(code)
    assert run_main("evaluate", *TATOEBA, "--function", "mine_own:f", "--output", "f")[0] == 0
    expected = json.loads((trained / "scores" / "results.json").read_text())["scores"]
    for folder in ("v", "f"):
        assert json.loads((trained / folder / "results.json").read_text())["scores"] == expected


def test_a_cache_is_kept_and_a_second_run_writes_the_same_bytes(trained, run_main):
    for folder in ("one", "two"):
        assert run_main("evaluate", "run/model", *TATOEBA, "--cache", "vectors", "--output", folder)[0] == 0
    for name in ("results.json", "items.npz", "page.html", "results.md", "results.tex"):
        one, two = ((trained / folder / name).read_bytes() for folder in ("one", "two"))
        if name == "page.html":  # the command names the folder
            one, two = one.replace(b"--output one", b""), two.replace(b"--output two", b"")
        assert one == two, name
    assert (trained / "one" / "results.json").read_bytes() == (trained / "scores" / "results.json").read_bytes()
    assert len(list((trained / "vectors").rglob("*.*"))) >= 1


def test_seeds_give_mean_and_deviation(project, run_main):
    code, out, err = run_main("train", "tiny.toml", "--output", "runs", "--seeds", "2", "--set", "steps=3")
    assert code == 0
    assert out.split() == ["runs/seed-42/model", "runs/seed-43/model"]
    assert "over 2 seeds" in err
    assert json.loads((project / "runs" / "seeds.json").read_text())["n"] == 2


@pytest.mark.parametrize(
    ("spoil", "where"),
    [(lambda text: text + b"only one\n", "pairs.tsv:122"), (lambda text: gzip.compress(text * 50)[:-40], "pairs.tsv")],
)
def test_a_bad_corpus_is_one_line_with_its_place(project, run_main, spoil, where):
    text = (project / "pairs.tsv").read_bytes()
    (project / "pairs.tsv").write_bytes(spoil(text))
    code, out, err = run_main("train", "tiny.toml", "--output", "run")
    last = err.strip().splitlines()[-1]
    assert (code, out) == (1, "")
    assert last.startswith("isoglot: ")
    assert where in last
    assert "Traceback" not in err
    (project / "pairs.tsv").write_bytes(text)
    assert run_main("train", "tiny.toml", "--output", "run", "--set", "steps=1")[0] == 0  # the folder is not burnt


def test_wrong_usage_is_two(run_main):
    assert run_main("train")[0] == 2
    assert run_main("nosuch")[0] == 2


def test_debug_shows_where_an_error_came_from(project, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["isoglot", "--debug", "recipe", "check", "nosuch"])
    with pytest.raises(Exception, match="neither a file"):
        main()


def test_a_recipe_is_shown_whole_or_as_its_file(project, run_main):
    (project / "mine.toml").write_text('extends = "tiny.toml"\nseed = 7\n', encoding="utf-8")
    _, whole, _ = run_main("recipe", "show", "mine.toml")
    assert "seed = 7" in whole
    assert "[optimizer]" in whole
    assert run_main("recipe", "show", "mine.toml", "--raw")[1] == 'extends = "tiny.toml"\nseed = 7\n'
    assert run_main("recipe", "check", "mine.toml")[0] == 0


@pytest.mark.parametrize("verb", [("recipe", "list"), ("models", "list"), ("tasks",)])
def test_a_list_is_never_cut_in_a_pipe(run_main, monkeypatch, verb):
    """A narrow terminal changes nothing, so a name is on its line with all that is said of it."""
    monkeypatch.delenv("ISOGLOT_DATA", raising=False)  # its sets would be read and counted
    _, wide, _ = run_main(*verb)
    monkeypatch.setenv("COLUMNS", "20")
    assert run_main(*verb)[1] == wide
    whole = {"recipe": "BERT base (SBERT, section 3.1)", "models": "multilingual-e5-small", "tasks": "sick-r"}[verb[0]]
    assert any(whole in line and len(line) > 80 for line in wide.splitlines())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("isoglot train cpu/msimcse-xn", "cpu/msimcse-xnli"),
        ("isoglot recipe show demo/g", "demo/groups"),
        ("isoglot encode isoglot-s", "isoglot-static"),
        ("isoglot evaluate --tasks sts17,tato", "sts17,tatoeba"),
        ("isoglot eval", "evaluate"),
    ],
)
def test_the_shell_completes_names(project, run_main, monkeypatch, words, expected):
    monkeypatch.setenv("_ISOGLOT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert expected in run_main()[1].splitlines()


def test_names_to_complete_are_kept(project, monkeypatch):
    assert "tatoeba" in make_completion("task")("")
    kept = project / "cache" / "names.json"
    kept.write_text('{"task": ["kept"]}')
    assert make_completion("task")("tatoeba,k") == ["tatoeba,kept"]
    kept.write_text("damaged")
    assert "tatoeba" in make_completion("task")("")


def test_the_version_is_shown_without_torch_too(monkeypatch, capsys):
    monkeypatch.setattr("importlib.metadata.distributions", lambda **_: ())
    with pytest.raises(SystemExit) as end:
        app(["--version"])
    assert end.value.code == 0
    assert "torch not installed" in capsys.readouterr().out


@pytest.mark.parametrize("closed", [">&- 2>&- <&-", *(pytest.param(one, marks=SLOW) for one in (">&-", "2>&-", "<&-"))])
@pytest.mark.parametrize("words", ["--version", pytest.param("recipe list", marks=SLOW)])
def test_a_stream_that_the_caller_has_closed_is_no_error(closed, words):
    command = f"'{sys.executable}' -m isoglot {words} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (not closed.startswith(">"))


INTERRUPTED = """
import os, runpy, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["isoglot", "--help"]
runpy.run_module("isoglot", run_name="__main__")
"""


def test_a_pipe_gets_utf8_whatever_the_system_has(tmp_path):
    (tmp_path / "one.toml").write_text('name = "日本"\n', encoding="utf-8")
    command = [sys.executable, "-m", "isoglot", "recipe", "show", "one.toml", "--raw"]
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout.decode()) == (0, 'name = "日本"\n'), done.stderr


def test_an_interruption_of_the_imports_shows_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
