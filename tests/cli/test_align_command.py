"""`isoglot align` as a user meets it: documents in, a translation memory out, and errors in one line."""

from __future__ import annotations

import json

import pytest
from command_line import runner
from test_documents import write_docx
from typer.testing import CliRunner

from conftest import SENTENCES
from isoglot.cli.align import align
from isoglot.cli.main import app
from isoglot.cli.mine import mine
from isoglot.data.readers import read_tmx
from isoglot.errors import CorpusError, IsoglotError

run = runner(align=align, mine=mine)


@pytest.fixture
def project(tmp_path, monkeypatch, toy_static):
    """A model, and two versions of a document: the second one joins the first two sentences and lacks the last."""
    monkeypatch.chdir(tmp_path)
    toy_static.save(tmp_path / "model")
    write_docx(tmp_path / "a.docx", "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in SENTENCES[:5]))
    second = [f"{SENTENCES[0]} {SENTENCES[1]}", *SENTENCES[2:4]]
    (tmp_path / "b.deu.html").write_text("".join(f"<p>{text}</p>\n" for text in second), encoding="utf-8")
    return tmp_path


def test_documents_become_a_memory(project):
    words = [
        "align",
        "model",
        "a.docx",
        "b.deu.html",
        "-o",
        "out.tmx",
        "--languages",
        "eng,deu",
        "--write-ids",
        "--json",
    ]
    done = CliRunner().invoke(app, words)
    counts = {"1-0": 1, "1-1": 2, "2-1": 1}
    assert json.loads(done.stdout) == {"output": "out.tmx", "alignments": 3, "counts": counts}
    assert "alignments: 1 1-0, 2 1-1, 1 2-1" in done.stderr
    groups = list(read_tmx("out.tmx"))
    assert [group.texts[0] for group in groups] == [f"{SENTENCES[0]} {SENTENCES[1]}", *SENTENCES[2:4]]
    assert {group.langs for group in groups} == {("eng", "deu")}
    text = (project / "out.tmx").read_text(encoding="utf-8")
    assert '<prop type="source-id">1,2</prop><prop type="target-id">1</prop>' in text


def test_what_is_left_out_and_the_minimum_score(project):
    said = run("align", "model", "a.docx", "b.deu.html", "-o", "out.tsv", "--min-score", "1.1")
    assert (project / "out.tsv").read_text() == ""
    assert "alignments: 3 0-1, 5 1-0" in said
    run("align", "model", "a.docx", "b.deu.html", "-o", "out.tsv", "--most", "2")
    assert len((project / "out.tsv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["model", "a.docx"], IsoglotError, "align: a.docx is the only file"),
        (["model", "a.docx", "none.html"], CorpusError, "none.html: no such file"),
        (["model", "a.docx", "b.deu.html", "-o", "x.tmx"], IsoglotError, "tmx needs the languages"),
        (["model", "a.docx", "b.deu.html", "--format", "docx"], IsoglotError, "--format is 'docx'"),
    ],
)
def test_errors(project, words, error, message):
    with pytest.raises(error, match=message):
        run("align", *words)
    assert not [*project.glob("x.*")]
