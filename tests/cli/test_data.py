"""`isoglot data`: what a user sees of the list, a download and a check."""

import json
import re

import pytest
import typer
from web import Web, hub_pages, serving

from isoglot.cli import data
from isoglot.core.errors import CorpusError
from isoglot.data.sets import catalogue, find
from isoglot.training.recipe import load
from isoglot.training.train import train


@pytest.fixture
def mirror():
    """A mirror without any file yet."""
    with serving(Web({})) as web:
        yield web


def test_list_has_what_is_known_of_every_set(capsys, tmp_path):
    data.list_sets(tmp_path)
    out = capsys.readouterr().out
    sets = [out[match.start() :].split("\n")[:4] for match in re.finditer(r"(?m)^\S", out)]
    assert [lines[0].split()[0] for lines in sets] == list(catalogue())
    assert sets[0] == [
        "tatoeba-laser (here: no): 88,877 pairs; languages: 112 and English",
        "  evaluate: retrieval (task tatoeba); 224 files with checksums",
        "  licence: CC BY 2.0 FR; redistribution: yes, with attribution",
        f"  {find('tatoeba-laser').address}",
    ]
    known = {lines[0].split()[0]: lines[1] for lines in sets}
    assert "manual" in known["mldoc"]
    assert "no checksums recorded, expected: 204 × dev/*.dev with 997 lines, 204 × devtest" in known["flores-200"]
    assert "size unknown" not in out
    data.list_sets(None)
    assert "here" not in capsys.readouterr().out.splitlines()[0]


def test_list_fits_a_terminal_of_80_columns_and_keeps_addresses_whole(capsys, monkeypatch):
    data.list_sets(None)
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    data.list_sets(None)
    lines = capsys.readouterr().out.splitlines()
    assert {f"  {one.address}" for one in catalogue().values()} <= set(lines)
    assert all(len(line) <= 80 for line in lines if not line.startswith("  https://"))
    assert " ".join(lines).split() == piped.split()  # every word is there, and whole


def test_get_says_the_licence_and_prints_the_folder(capsys, tmp_path, mirror):
    mirror.pages |= hub_pages("sts17-crosslingual-sts")
    data.get(["sts17-crosslingual-sts"], data=tmp_path, network={"mirror": mirror.address})
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'sts17-crosslingual-sts'}\n"
    assert "licence: not stated by MTEB" in err
    data.check([], data=tmp_path)
    assert capsys.readouterr().out.startswith("sts17-crosslingual-sts: ok: 11 files; as first downloaded")


def test_names_are_looked_up_before_anything_is_fetched(tmp_path, mirror):
    with pytest.raises(CorpusError, match=r"'wiki2m'; did you mean 'wiki1m'"):
        data.get(["wiki1m", "wiki2m"], data=tmp_path, network={"mirror": mirror.address})
    assert not mirror.asked
    assert not any(tmp_path.iterdir())


def test_check_of_an_empty_folder_says_what_to_do(capsys, tmp_path):
    with pytest.raises(typer.Exit) as ended:
        data.check([], data=tmp_path)
    assert ended.value.exit_code == 1
    assert "isoglot data get NAME" in capsys.readouterr().err
    with pytest.raises(typer.Exit):
        data.check(["mldoc"], data=tmp_path)
    assert capsys.readouterr().out == "mldoc: absent\n"


@pytest.mark.parametrize("text", [b"\xff", b"\0", b"a\tb\tc\n", b"a\t-1\tb\n", b"../../a\t1\tb\n"])
def test_damaged_checksums_are_named(tmp_path, text):
    folder = tmp_path / "sts17-crosslingual-sts"
    folder.mkdir()
    (folder / "checksums.tsv").write_bytes(text)
    with pytest.raises(CorpusError, match=r"checksums\.tsv"):
        data.check(["sts17-crosslingual-sts"], data=tmp_path)


RECIPE = """
name = "two"
steps = 1
encoder = { kind = "static", dim = 8, vocabulary = 400 }
optimizer = { lr = 1e-3 }
[[streams]]
objectives = [{ name = "info_nce" }]
leakage = "test.txt"
sources = [{ reader = "tsv", path = "a.tsv" }, { reader = "tsv", path = "b.tsv", sample = 3 }]
"""


def test_report_counts_what_a_recipe_trains_on_and_a_run_keeps_it(capsys, tmp_path):
    words = ["one", "two", "three", "four", "five", "six"]
    for name, code in (("a", "de"), ("b", "fr")):
        rows = "".join(f"{word} {name}\t{code} {word}\n" for word in words)
        (tmp_path / f"{name}.tsv").write_text(f"en\t{code}\n{rows}")
    (tmp_path / "test.txt").write_text("Six, a!\n")
    recipe = tmp_path / "two.toml"
    recipe.write_text(RECIPE)
    data.report(str(recipe), as_json=True)
    found = json.loads(capsys.readouterr().out)
    counts = {"read": 6, "leaked": 1, "kept": 5}
    assert found["train"]["a.tsv"] == {"groups": 5, "sentences": {"deu": 5, "eng": 5}, "counts": counts}
    assert found["train"]["b.tsv"]["sentences"] == {"eng": 3, "fra": 3}
    data.report(str(recipe))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[2:] == [
        ["language", "all", "a.tsv", "b.tsv"],
        ["all", "16", "10", "6"],
        ["eng", "8", "5", "3"],
        ["deu", "5", "5", "-"],
        ["fra", "3", "-", "3"],
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "data.json").write_text('{"of a run that failed": {}}')
    train(load(recipe), output=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "data.json").read_text()) == found
    data.report(str(tmp_path / "run"), as_json=True)
    assert json.loads(capsys.readouterr().out) == found
