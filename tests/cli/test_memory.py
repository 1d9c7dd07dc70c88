"""The loop of a translation memory on the command line: mine, index, search, export, and index again."""

import json

from typer.testing import CliRunner

from isoglot.cli.main import app
from isoglot.data.readers import read_tmx

ENGLISH, GERMAN = "The cat sits on the mat.\nA dog runs.\n", "A dog runs!\nThe cat sits on a mat.\n"


def run(*words):
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done


def write_files(folder):
    (folder / "a.eng").write_text(ENGLISH)
    (folder / "a.deu").write_text(GERMAN)


def test_mined_pairs_become_a_memory_and_the_memory_an_index(tmp_path, toy_static, monkeypatch):
    monkeypatch.chdir(tmp_path)
    toy_static.save(tmp_path / "model")
    write_files(tmp_path)
    run("mine", "model", "a.eng", "a.deu", "-o", "pairs.tsv")
    run("index", "model", "eng,deu=pairs.tsv", "-o", "memory")
    found = json.loads(run("search", "memory", "The cat sits on the mat.", "--json", "--in", "eng", "-k", "1").stdout)
    (hit,) = found["hits"]
    assert (hit["translation"], hit["translation_language"]) == ("The cat sits on a mat.", "deu")
    lines = run("search", "memory", "A dog runs.", "--not-in", "eng").stdout.splitlines()
    assert lines[0].split("\t")[5:] == ["A dog runs!", "A dog runs."]
    assert {line.split("\t")[3] for line in lines} == {"deu"}
    run("export", "memory", "-o", "tm.tmx")
    units = [dict(zip(group.langs, group.texts, strict=True)) for group in read_tmx("tm.tmx")]
    assert len(units) == 2
    assert {"eng": "A dog runs.", "deu": "A dog runs!"} in units
    run("index", "model", "tm.tmx", "-o", "again")
    again = json.loads(run("search", "again", "A dog runs!", "--json", "-k", "1", "--in", "deu").stdout)
    assert again["hits"][0]["translation"] == "A dog runs."
