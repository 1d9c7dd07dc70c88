"""`isoglot data`: what a user sees of the list, a download and a check."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

from web import Web, serving

from isoglot.cli import data
from isoglot.data.sets import find
from isoglot.errors import CorpusError


@pytest.fixture
def mirror():
    """A mirror without any file yet."""
    with serving(Web({})) as web:
        yield web


def test_list_names_every_set_and_what_may_be_done(capsys, tmp_path):
    data.show_list(tmp_path)
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert {"tatoeba-laser", "mldoc", "flores-200"} <= set(rows)
    assert "88,877 pairs" in rows["tatoeba-laser"]
    assert "CC BY 2.0 FR" in rows["tatoeba-laser"]
    assert "by hand" in rows["mldoc"]
    assert "not recorded" in rows["flores-200"]
    assert rows["tatoeba-laser"].split()[-1] == "no"
    assert "here" in rows["name"]
    data.show_list()
    assert "here" not in capsys.readouterr().out.splitlines()[0]


def test_get_says_the_licence_and_prints_the_folder(capsys, tmp_path, mirror, monkeypatch):
    mirror.pages["/huggingface.co/datasets/princeton-nlp/datasets-for-simcse/resolve/main/wiki1m_for_simcse.txt"] = (
        b"a\n"
    )
    data.get(["wiki1m"], tmp_path, base_url=mirror.address)
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'wiki1m'}\n"
    assert "licence: text CC BY-SA" in err
    with pytest.raises(typer.Exit) as ended:
        data.check([], tmp_path)
    assert ended.value.exit_code == 1
    out = capsys.readouterr().out
    assert out.startswith("wiki1m: wrong: wiki1m_for_simcse.txt has 1 lines, 1,000,000 expected")
    assert out.count("\n") == 1


def test_names_are_looked_up_before_anything_is_fetched(tmp_path, mirror):
    with pytest.raises(CorpusError, match=r"'wiki2m'; nearest: .*wiki1m"):
        data.get(["wiki1m", "wiki2m"], tmp_path, base_url=mirror.address)
    assert not mirror.asked
    assert not any(tmp_path.iterdir())


def test_check_of_an_empty_folder_says_what_to_do(capsys, tmp_path):
    with pytest.raises(typer.Exit) as ended:
        data.check([], tmp_path)
    assert ended.value.exit_code == 1
    assert "isoglot data get NAME" in capsys.readouterr().err
    with pytest.raises(typer.Exit):
        data.check(["mldoc"], tmp_path)
    assert capsys.readouterr().out == "mldoc: absent\n"


def test_check_of_a_good_copy_ends_well(capsys, tmp_path):
    folder = tmp_path / "mldoc"
    folder.mkdir()
    data.check(["mldoc"], tmp_path)
    assert capsys.readouterr().out == "mldoc: unknown: checksums not recorded\n"
    assert find("mldoc").manual
