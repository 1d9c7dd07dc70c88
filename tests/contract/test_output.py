"""What programs rely on: `--json` is all there is on stdout, `-` is stdin or stdout, `--quiet` prints no messages."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
from test_verbs import VERBS

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.main import main
from isoglot.encoders import StaticEncoder

EVALUATE = "evaluate model --tasks retrieval --data a.tsv -o"
COMMANDS = {  # verb with --json -> its words
    "encode": "encode model a.txt -o a.npy",
    "evaluate": f"{EVALUATE} scores-again",
    "compare": "compare a=scores b=scores --resamples 20",
    "mine": "mine model a.txt b.txt -o pairs.tsv",
    "align": "align model a.txt b.txt -o aligned.tsv",
    "search": "search index cat",
    "models list": "models list",
    "filter": "filter --model model a.tsv -o kept.jsonl",
    "data report": "data report tiny.toml",
    "sweep": "sweep tiny.toml --over optimizer.lr=0.05,0.1 --seeds 1 -o swept --data .",
}
TINY = """
name = "tiny"
steps = 2
encoder = { kind = "static", vocabulary = 400, dim = 8 }
optimizer = { lr = 0.05 }
evaluation = { task = "retrieval", data = "a.tsv" }
[[streams]]
sources = [{ reader = "tsv", path = "a.tsv" }]
batching = { size = 4 }
objectives = [{ name = "info_nce" }]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(folder / "model")
    for name, lines in (("a.txt", SENTENCES), ("b.txt", SENTENCES[::-1])):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(SENTENCES, reversed(SENTENCES), strict=True))
    (folder / "a.tsv").write_text("eng\tdeu\n" + rows, encoding="utf-8")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    return folder


@pytest.fixture
def run(made, monkeypatch, capfdbinary):
    """Run words with bytes on stdin; exit code, stdout and stderr."""

    def call(words, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["isoglot", *words.split()])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capfdbinary.readouterr()

    monkeypatch.chdir(made)
    if not (made / "index").exists():
        assert call(f"{EVALUATE} scores")[0] == 0
        assert call("index model a.txt -o index")[0] == 0
    return call


def test_every_verb_with_json_is_tested():
    there = {name for name, verb in VERBS.items() if any("--json" in one.opts for one in verb.params)}
    assert there == set(COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_json_is_all_there_is_on_stdout_and_quiet_says_nothing_on_stderr(run, verb):
    code, out, err = run(f"{COMMANDS[verb]} --json")
    assert code == 0, err
    assert json.loads(out)
    assert run(f"{COMMANDS[verb]} --quiet")[::2] == (0, b"")


def test_quiet_may_stand_before_the_verb_and_is_a_level_of_messages(run):
    assert run(f"--quiet {COMMANDS['search']}")[::2] == (0, b"")
    assert run(f"{COMMANDS['search']} --log-level error")[::2] == (0, b"")


def test_search_prints_an_object_a_query(run):
    out = run("search index -k 2 --json", b"cat\ndog\n")[1]
    assert [json.loads(line)["query"] for line in out.splitlines()] == ["cat", "dog"]
    assert run("search index - -k 2 --json", b"cat\ndog\n")[1] == out


def test_stdin_and_stdout_are_dashes(run, made):
    text = (made / "a.txt").read_bytes()
    lines = run("encode model - -o -", text)[1].splitlines()
    assert [json.loads(line)["text"] for line in lines] == SENTENCES
    table = np.load(io.BytesIO(run("encode model - -o - --format npy", text)[1]))
    np.testing.assert_allclose(table, [json.loads(line)["vector"] for line in lines], atol=1e-7)
    run("encode model a.txt -o plain.npy")
    assert (table == np.load(made / "plain.npy")).all()
    run("mine model a.txt b.txt -o plain.tsv")
    assert run("mine model - b.txt -o -", text)[1] == (made / "plain.tsv").read_bytes()
    run("negatives model a.tsv -o plain.jsonl")
    assert run("negatives model a.tsv -o -")[1] == (made / "plain.jsonl").read_bytes()
    run("fit whitening model - --dim 2 -o whitened", text)
    assert (made / "whitened").is_dir()


STDOUT = {  # verb -> its words without the output, and how the output begins
    "encode": ("encode model a.txt", b'{"text": "The cat'),
    "mine": ("mine model a.txt b.txt", b"2."),
    "align": ("align model a.txt b.txt", b"0."),
    "negatives": ("negatives model a.tsv", b'{"texts":'),
    "filter": ("filter --model model a.tsv --threshold 0", b'{"texts":'),
    "export": ("export index --format tsv", b"id\ttext\tlanguage\n"),
    "report": ("report scores", b"<!DOCTYPE html>"),
    "plot": ("plot model a.txt --layout pca", b"<!DOCTYPE html>"),
}
FOLDERS = {  # verb that writes a folder -> its words without the output
    "demo": "demo",
    "train": "train tiny.toml",
    "sweep": "sweep tiny.toml",
    "freeze": "freeze run",
    "evaluate": "evaluate model --tasks retrieval --data a.tsv",
    "compare": "compare a=scores b=scores",
    "index": "index model a.txt",
    "trim": "trim model a.txt",
    "fit": "fit whitening model a.txt --dim 2",
    "average": "average model model",
    "convert": "convert model",
    "wikipedia": "wikipedia a.txt --titles a.txt",
}


def test_a_dash_is_tested_for_every_verb_with_an_output():
    there = {name for name, verb in VERBS.items() if any("--output" in one.opts for one in verb.params)}
    assert there == set(STDOUT) | set(FOLDERS)


@pytest.mark.parametrize("verb", STDOUT)
def test_text_is_written_to_stdout(run, made, verb):
    words, beginning = STDOUT[verb]
    code, out, err = run(f"{words} -o -")
    assert code == 0, err
    assert out.startswith(beginning)
    assert not (made / "-").exists()


@pytest.mark.parametrize("verb", FOLDERS)
def test_a_folder_is_not_written_to_stdout(run, made, verb):
    code, out, err = run(f"{FOLDERS[verb]} -o -")
    assert (code, out) == (1, b"")
    assert b"isoglot: -: a folder can't be written to stdout" in err
    assert not (made / "-").exists()


def test_lines_of_stdin_are_indexed_mapped_and_counted(run, made):
    text = (made / "a.txt").read_bytes()
    for _ in range(2):  # the same lines again are no new sentences
        assert run("index model deu=- -o piped", text)[0] == 0
    assert run("index model - -o piped", b"one more\n")[0] == 0
    rows = [json.loads(line) for line in run("export piped -o -")[1].splitlines()]
    assert [(row["text"], row["language"]) for row in rows] == [
        *((text, "deu") for text in SENTENCES),
        ("one more", "und"),
    ]
    hits = json.loads(run("search - --model model cat -k 3 --json", text)[1])["hits"]
    assert [hit["text"] for hit in hits] == [
        hit["text"] for hit in json.loads(run("search a.txt --model model cat -k 3 --json")[1])["hits"]
    ]
    assert run("plot model - --layout pca -o -", text)[1].count(b"The cat sits on the mat.") > 0
    assert run("trim model - -o trimmed", text)[0] == 0


def test_json_lines_of_stdin_are_filtered(run):
    kept = run("filter --model model a.tsv --threshold 0 -o -")[1]
    assert kept
    assert run("filter --model model - -o - --threshold 0", kept)[1] == kept
    assert run("negatives model - -o -", kept)[0] == 0


def test_results_of_stdin_are_a_page(run, made):
    assert run("report - -o -", (made / "scores/results.json").read_bytes())[1].startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("words", ["report - -o x.html", "filter --model model - -o x.jsonl"])
def test_errors_name_stdin_and_the_line(run, made, words):
    code, out, err = run(words, b"{,\n")
    assert (code, out) == (1, b"")
    assert b"isoglot: stdin:1: " in err
    assert not [*made.glob("x.*")]


def test_stdin_that_a_verb_does_not_read_is_an_error(run):
    code, _, err = run("evaluate --vectors - --texts - -o x")
    assert code == 1
    assert b"isoglot: -: " in err


@pytest.mark.parametrize("words", ["encode model a.txt -o - --json", "mine model a.txt b.txt -o - --json"])
def test_two_outputs_on_stdout_are_wrong_usage(run, words):
    code, out, err = run(words)
    assert (code, out) == (2, b"")
    assert b"--json and --output -" in err


@pytest.mark.parametrize("words", ["encode model a.txt -o a.csv", "encode model a.txt -o a.parquet --format npy"])
def test_a_format_that_contradicts_the_name_is_an_error(run, made, words):
    code, out, err = run(words)
    assert (code, out) == (1, b"")
    assert b"format" in err
    assert not [*made.glob("a.csv*"), *made.glob("a.parquet*")]
