"""What programs rely on: `--json` is all there is on stdout, `-` is stdin or stdout, `--quiet` prints no messages."""

import io
import json
from pathlib import Path

import hostile_world
import numpy as np
import pytest
from hostile_world import having

standing = hostile_world.standing
JSON = {name: verb.words for name, verb in having("--json").items()}
# Each verb with an output, without it; those whose outputs are named as files write text.
OUTPUTS = {name: verb.words.replace(f" {verb.output}", " -") for name, verb in having("--output").items()}
TEXT = {name: words for name, words in OUTPUTS.items() if "." in having("--output")[name].output}
TEXT |= {"export": "export index --format tsv -o -"}
del TEXT["freeze"]  # an archive


@pytest.fixture
def run(standing):
    """Run words with bytes on stdin; exit code, stdout and stderr."""

    def call(words, stdin=b""):
        done = standing.call(words.split(), stdin)
        return done.code, done.out, done.err

    standing.renew()
    return call


@pytest.mark.parametrize("verb", JSON)
def test_json_is_all_there_is_on_stdout_and_quiet_says_nothing_on_stderr(run, verb):
    code, out, err = run(f"{JSON[verb]} --json")
    assert code == 0, err
    assert json.loads(out)
    assert run(f"{JSON[verb]} --quiet")[::2] == (0, "")  # again, into the output that is there


def test_quiet_may_stand_before_the_verb_and_is_a_level_of_messages(run):
    assert run(f"--quiet {JSON['search']}")[::2] == (0, "")
    assert run(f"{JSON['search']} --log-level error")[::2] == (0, "")


def test_search_prints_an_object_a_query(run):
    out = run("search index -k 2 --json", b"cat\ndog\n")[1]
    assert [json.loads(line)["query"] for line in out.splitlines()] == ["cat", "dog"]
    assert run("search index - -k 2 --json", b"cat\ndog\n")[1] == out


def test_stdin_and_stdout_are_dashes(run):
    text = Path("a.deu").read_bytes()
    lines = run("encode model - -o -", text)[1].splitlines()
    assert [json.loads(line)["text"] for line in lines] == text.decode().splitlines()
    table = np.load(io.BytesIO(run("encode model - -o - --format npy", text)[1]))
    np.testing.assert_allclose(table, [json.loads(line)["vector"] for line in lines], atol=1e-7)
    run("encode model a.deu -o plain.npy")
    assert (table == np.load("plain.npy")).all()
    run("mine model a.deu b.eng -o plain.tsv")
    assert run("mine model - b.eng -o -", text)[1] == Path("plain.tsv").read_bytes()
    run("negatives model pairs.tsv -o plain.jsonl")
    assert run("negatives model pairs.tsv -o -")[1] == Path("plain.jsonl").read_bytes()
    run("fit whitening model - --dim 2 -o whitened", text)
    assert Path("whitened").is_dir()


@pytest.mark.parametrize("verb", TEXT)
def test_text_is_written_to_stdout(run, verb):
    code, out, err = run(TEXT[verb])
    assert code == 0, err
    assert out
    assert not Path("-").exists()


@pytest.mark.parametrize("verb", sorted(OUTPUTS.keys() - TEXT.keys()))
def test_a_folder_is_not_written_to_stdout(run, verb):
    code, out, err = run(OUTPUTS[verb])
    assert (code, out) == (1, b"")
    assert "isoglot: -: a folder can't be written to stdout" in err
    assert not Path("-").exists()


def test_lines_of_stdin_are_indexed_mapped_and_counted(run):
    text = Path("a.deu").read_bytes()
    for _ in range(2):  # the same lines again are no new sentences
        assert run("index model deu=- -o piped", text)[0] == 0
    assert run("index model - -o piped", b"one more\n")[0] == 0
    rows = [json.loads(line) for line in run("export piped -o -")[1].splitlines()]
    expected = [*((line, "deu") for line in text.decode().splitlines()), ("one more", "und")]
    assert [(row["text"], row["language"]) for row in rows] == expected
    piped, named = (json.loads(run(f"search {file} --model model cat -k 3 --json", text)[1]) for file in ("-", "a.deu"))
    assert [hit["text"] for hit in piped["hits"]] == [hit["text"] for hit in named["hits"]]
    assert run("plot model - --layout pca -o -", text)[1].count(b"The cat sits on the mat.") > 0
    assert run("trim model - -o trimmed", text)[0] == 0


def test_json_lines_of_stdin_are_filtered(run):
    kept = run("filter --model model pairs.tsv --threshold 0 -o -")[1]
    assert kept
    assert run("filter --model model - -o - --threshold 0", kept)[1] == kept
    assert run("negatives model - -o -", kept)[0] == 0


def test_results_of_stdin_are_a_page(run):
    assert run("report - -o -", Path("one/results.json").read_bytes())[1].startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("words", ["report - -o x.html", "filter --model model - -o x.jsonl"])
def test_errors_name_stdin_and_the_line(run, words):
    code, out, err = run(words, b"{,\n")
    assert (code, out) == (1, b"")
    assert "isoglot: stdin:1: " in err
    assert not [*Path().glob("x.*")]


def test_stdin_that_a_verb_does_not_read_is_an_error(run):
    code, _, err = run("evaluate --vectors - --texts - -o x")
    assert code == 1
    assert "isoglot: -: " in err


@pytest.mark.parametrize("words", ["encode model a.deu -o - --json", "mine model a.deu b.eng -o - --json"])
def test_two_outputs_on_stdout_are_wrong_usage(run, words):
    code, out, err = run(words)
    assert (code, out) == (2, b"")
    assert "--json and --output -" in err
