"""`isoglot plot` as a function: which files are understood, languages, labels, samples, files written."""

from __future__ import annotations

import re

import pytest

from isoglot.cli.plot import Look, read_groups, run
from isoglot.errors import CorpusError, EvaluationError
from isoglot.report.plot import LIMIT


@pytest.fixture
def folder(toy_static, tmp_path, monkeypatch):
    toy_static.save(tmp_path / "model")
    english = [f"The cat {number}" for number in range(12)]
    german = [f"Die Katze {number}" for number in range(12)]
    (tmp_path / "news.eng").write_text("\n".join(english), encoding="utf-8")
    (tmp_path / "news.deu").write_text("\n".join(german), encoding="utf-8")
    (tmp_path / "plain.txt").write_text("one\n\ntwo\n", encoding="utf-8")
    (tmp_path / "labels").write_text("animal\nplant\n" * 6, encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("eng\tdeu\nx\ty\nz\t\n", encoding="utf-8")
    (tmp_path / "bare.tsv").write_text("x\ty\n", encoding="utf-8")
    (tmp_path / "a.jsonl").write_text('{"eng": "x", "deu": "y", "topic": 3}\n{"text": "z"}\n', encoding="utf-8")
    units = '<tu><tuv xml:lang="en"><seg>x</seg></tuv><tuv xml:lang="de"><seg>y</seg></tuv></tu>'
    (tmp_path / "a.tmx").write_text(f'<tmx version="1.4"><body>{units}</body></tmx>', encoding="utf-8")
    (tmp_path / "many").mkdir()
    for code in ("eng", "deu", "fra"):
        (tmp_path / "many" / f"set.{code}").write_text("x\ny\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        (["news.eng", "news.deu"], {}, ["eng"] * 12 + ["deu"] * 12),
        (["news.eng", "news.deu"], {"parallel": True}, ["eng deu"] * 12),
        (["news.eng", "plain.txt"], {"parallel": False, "languages": ["fr"]}, ["fra"] * 14),
        (["plain.txt", "plain.txt"], {"languages": ["en", "de"]}, ["eng"] * 2 + ["deu"] * 2),
        (["plain.txt"], {}, ["und"] * 2),
        (["pairs.tsv"], {}, ["eng deu", "eng"]),
        (["bare.tsv"], {"languages": ["fra", "ita"]}, ["fra ita"]),
        (["a.jsonl"], {}, ["eng deu", "und"]),
        (["a.jsonl"], {"languages": ["kor"]}, ["eng deu", "kor"]),
        (["a.tmx", "news.eng"], {}, ["eng deu"] + ["eng"] * 12),
        (["many"], {}, ["deu eng fra"] * 2),
        (["many"], {"languages": ["fra", "eng"]}, ["eng fra"] * 2),
    ],
)
def test_files_are_read_by_their_endings(folder, names, options, expected):
    found = read_groups([folder / name for name in names], **options)
    assert [" ".join(group.langs) for group in found] == expected


def test_parallel_text_is_joined_in_the_map(folder, capsys):
    run("model", [folder / "news.eng", folder / "news.deu"], folder / "map.html", look=Look(), parallel=True)
    page = (folder / "map.html").read_text(encoding="utf-8")
    assert page.count("<line ") == 24
    assert "Sentences as model sees them" in page
    assert "24 sentences. t-SNE of unit vectors" in page
    assert "24 sentences, tsne: " in capsys.readouterr().err


def test_a_sample_is_told(folder, capsys):
    look = Look(layout="pca", limit=7, seed=5, title="Mine")
    run("model", [folder / "news.eng"], folder / "map.svg", look=look)
    assert "7 of 12 sentences, drawn with seed 5" in capsys.readouterr().err
    svg = (folder / "map.svg").read_text(encoding="utf-8")
    assert "7 of 12 sentences, drawn with seed 5" in svg
    assert "Mine" in svg


def test_labels_and_extras_colour(folder):
    look = Look(layout="pca", labels=folder / "labels")
    run("model", [folder / "news.eng", folder / "news.deu"], folder / "map.html", look=look, parallel=True)
    page = (folder / "map.html").read_text(encoding="utf-8")
    assert re.findall(r"<bdi>(.*?)</bdi><small>(.*?)</small>", page) == [("animal", "12"), ("plant", "12")]
    (folder / "a.jsonl").write_text('{"eng": "x", "deu": "y", "topic": 3}\n', encoding="utf-8")
    run("model", [folder / "a.jsonl"], folder / "b.html", look=Look(layout="pca", color="topic"))
    assert "<bdi>3</bdi>" in (folder / "b.html").read_text(encoding="utf-8")


def test_a_language_that_is_not_known_is_named_so(folder):
    run("model", [folder / "plain.txt"], folder / "map.html", look=Look(layout="pca"))
    assert "<bdi>language unknown</bdi>" in (folder / "map.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "output", "options", "error", "message"),
    [
        (["news.eng"], "map.pdf", {}, EvaluationError, r"map\.pdf: a map is written as"),
        (["news.eng"], "map.png", {"parallel": True}, EvaluationError, "two files or more"),
        (["news.eng"], "map.png", {"look": Look(layout="mds")}, EvaluationError, "unknown layout 'mds'"),
        (["news.eng"], "map.png", {"look": Look(color="topic")}, EvaluationError, "no such extra"),
        (["news.eng", "plain.txt"], "map.png", {"parallel": True}, CorpusError, r"plain\.txt"),
        (["absent.txt"], "map.png", {}, CorpusError, "no such file"),
        (["news.eng"], "map.png", {"languages": ["xx"]}, CorpusError, "unknown language 'xx'"),
        (["news.eng"], "map.png", {"languages": ["eng", "deu"]}, EvaluationError, "2 languages were given"),
        (["news.eng", "news.deu"], "map.png", {"languages": "abc", "parallel": True}, EvaluationError, "3 languages"),
    ],
)
def test_errors(folder, names, output, options, error, message):
    options = {"look": Look(layout="pca"), **options}
    with pytest.raises(error, match=message):
        run("model", [folder / name for name in names], folder / output, **options)
    assert not (folder / output).exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [(11, "more sentences than labels, of which there are 11"), (13, "more labels than sentences")],
)
def test_labels_must_be_as_many_as_groups(folder, lines, message):
    (folder / "labels").write_text("x\n" * lines, encoding="utf-8")
    with pytest.raises(EvaluationError, match=message):
        run("model", [folder / "news.eng"], folder / "map.png", look=Look(labels=folder / "labels"))
    with pytest.raises(CorpusError, match=r"plain\.txt:2: is empty"):
        run("model", [folder / "plain.txt"], folder / "map.png", look=Look(labels=folder / "labels"))


def test_the_limit_is_the_one_of_the_report():
    assert Look().limit == LIMIT == 2000
