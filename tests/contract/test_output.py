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
def test_json_is_all_there_is_on_stdout(run, verb):
    code, out, err = run(f"{COMMANDS[verb]} --json")
    assert code == 0, err
    assert json.loads(out)


@pytest.mark.parametrize("verb", COMMANDS)
def test_quiet_says_nothing_on_stderr(run, verb):
    assert run(f"{COMMANDS[verb]} --quiet")[::2] == (0, b"")
    assert run(f"--quiet {COMMANDS[verb]}")[::2] == (0, b"")
    assert run(f"{COMMANDS[verb]} --log-level error")[::2] == (0, b"")


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
