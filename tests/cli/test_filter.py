"""`isoglot filter` as a user meets it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from command_line import runner

from conftest import SENTENCES
from isoglot.cli.filter import filter as verb
from isoglot.data.readers import read_jsonl, read_tmx
from isoglot.errors import CorpusError, IsoglotError, OutputError

run = runner(filter=verb)


@pytest.fixture
def project(tmp_path, monkeypatch, toy_static):
    monkeypatch.chdir(tmp_path)
    toy_static.save(tmp_path / "model")
    rows = [(text, text) for text in dict.fromkeys(SENTENCES)]
    rows[1] = (rows[1][0], rows[2][0])  # a wrong translation
    (tmp_path / "pairs.tsv").write_text("eng\tdeu\n" + "".join(f"{a}\t{b}\n" for a, b in rows))
    return rows


def test_wrong_pairs_are_dropped(project):
    err = run("pairs.tsv", "-o", "out.jsonl", "--model", "model", "--dropped", "bad.jsonl", "--threshold", 1.001)
    kept, dropped = (list(read_jsonl(f"{name}.jsonl")) for name in ("out", "bad"))
    assert project[1] in [group.texts for group in dropped]
    assert [group.texts for group in [*kept, *dropped]].count(project[1]) == 1
    assert sorted(group.texts for group in [*kept, *dropped]) == sorted(project)
    assert f"eng-deu: {len(dropped)} dropped, {len(kept)} kept" in err


def test_columns_of_csv_become_a_translation_memory(project):
    with Path("pairs.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("key", "german", "english"), *((1, b, a) for a, b in project)])
    with pytest.raises(CorpusError, match=r"pairs\.csv:1: .*the columns are key, german, english: .*--columns"):
        run("pairs.csv", "-o", "out.tmx", "--model", "model")
    run("pairs.csv", "-o", "out.tmx", "--model", "model", "--columns", "english=en, german=de", "--threshold", 0)
    assert [group.texts[::-1] for group in read_tmx("out.tmx")] == project


@pytest.mark.parametrize("name", ["clean.tsv", "clean.csv"])
def test_the_output_is_json_lines_or_tmx_by_name_too(project, name):
    for words in (("-o", name), ("-o", "out.jsonl", "--dropped", name)):
        with pytest.raises(OutputError, match=name):
            run("pairs.tsv", *words, "--model", "model")


def test_mistakes_are_named(project):
    with pytest.raises(IsoglotError, match=r"filter: --margin is .*absolute"):
        run("pairs.tsv", "-o", "out.jsonl", "--model", "model", "--margin", "absolut")
    with pytest.raises(CorpusError, match=r"none\.tsv"):
        run("none.tsv", "-o", "out.jsonl", "--model", "model")
