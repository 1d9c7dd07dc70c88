"""`isoglot plot` as a function: which files are understood, languages, labels, samples, files written."""

from xml.etree import ElementTree

import pytest
from command_line import as_function

from isoglot.cli.evaluation import plot as plot_verb
from isoglot.data.readers.files import read_files

plot = as_function(plot_verb)


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


def run(model, files, *rest, **options):
    return plot([str(model), *map(str, files)], *rest, **options)


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
    found = read_files([folder / name for name in names], **options)
    assert [" ".join(group.langs) for group in found] == expected


def test_parallel_text_is_joined_in_the_map(folder, capsys):
    run("model", [folder / "news.eng", folder / "news.deu"], folder / "map.html", parallel=True)
    page = (folder / "map.html").read_text(encoding="utf-8")
    assert "<h1>Sentence map: model</h1>" in page
    assert "24 sentences. t-SNE of unit vectors" in page
    assert f"Wrote {folder / 'map.html'}" in capsys.readouterr().err


def test_a_sample_is_told(folder, capsys):
    run("model", [folder / "news.eng"], folder / "map.svg", method="pca", limit=7, seed=5, title="Mine")
    assert "7 of 12 sentences, sampled with seed 5" in capsys.readouterr().err
    svg = (folder / "map.svg").read_text(encoding="utf-8")
    assert "7 of 12 sentences, sampled with seed 5" in svg
    assert "Mine" in svg


def words(path):
    """The words in a picture."""
    return [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_labels_and_extras_colour(folder):
    files = [folder / "news.eng", folder / "news.deu"]
    run("model", files, folder / "map.svg", method="pca", labels=folder / "labels", parallel=True)
    assert {"animal", "plant"} <= {*words(folder / "map.svg")}
    (folder / "a.jsonl").write_text('{"eng": "x", "deu": "y", "topic": 3}\n', encoding="utf-8")
    run("model", [folder / "a.jsonl"], folder / "b.svg", method="pca", color="topic")
    assert "3" in words(folder / "b.svg")
