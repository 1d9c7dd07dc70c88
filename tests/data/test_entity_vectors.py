"""Wikipedia2Vec vectors in all their files, brought into the order of a table of entities."""

import bz2
import importlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from isoglot.core.errors import CorpusError, EncoderError, OutputError
from isoglot.data import entity_vectors
from isoglot.data.entity_vectors import align, read_vectors, write_vectors
from isoglot.wikipedia.entities import read_titles

LABELS = ["Berlin", "New York City", "Paris", "Springfield", "Springfield", "Atlantis"]
VECTORS = {"Berlin": [1, 2, 3], "New York City": [4, 5, 6], "Paris": [7, 8, 9], "Springfield": [1, 1, 1]}
EXPECTED = [[1, 2, 3], [4, 5, 6], [7, 8, 9], None, None, None]
WORDS = {"berlin": [0, 0, 1], "the": [0, 0, 2]}


@pytest.fixture
def folder(tmp_path):
    lines = [f"Q{row}\t{20 - row}\t{label}\n" for row, label in enumerate(LABELS)]
    (tmp_path / "entities.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.fixture
def saved(folder):
    """The table of vectors of the entities in the folder."""
    source = write(folder / "vectors.txt")
    return write_vectors(align(source, folder), folder, source=source)


def write(path, vectors=VECTORS, words=WORDS, form="default"):
    """As the library writes it: words and entities mixed, three decimals."""
    lines = ["6 3"] if form == "word2vec" else []
    for name, vector in [*words.items(), *((f"ENTITY/{title}", vector) for title, vector in vectors.items())]:
        text, separator = (name, "\t") if form == "default" else (name.replace(" ", "_"), " ")
        lines.append(text + separator + " ".join(f"{value:.3f}" for value in vector))
    path.write_bytes(("\n".join(lines) + "\n").encode())
    return path


def rows(aligned):
    return [None if np.isnan(row).all() else row.tolist() for row in aligned.vectors]


@pytest.mark.parametrize("form", ["default", "word2vec", "glove"])
def test_text_formats(folder, form):
    aligned = align(write(folder / "vectors.txt", form=form), folder)
    assert rows(aligned) == EXPECTED  # two entities are labelled Springfield, so the title tells neither
    assert aligned.vectors.dtype == np.float32
    assert aligned.missing == ("Q3", "Q4", "Q5")
    packed = folder / "vectors.txt.bz2"
    packed.write_bytes(bz2.compress((folder / "vectors.txt").read_bytes()))
    assert rows(align(packed, folder)) == EXPECTED


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "bz2"])
def test_a_saved_model_of_the_library(folder, pack):
    library = pytest.importorskip("wikipedia2vec")
    model = library.Wikipedia2Vec.load_text(str(write(folder / "vectors.txt")))
    path = folder / "model.pkl"
    model.save(str(path))
    if pack:
        path.write_bytes(bz2.compress(path.read_bytes()))
    assert rows(align(path, folder, allow_pickle=True)) == EXPECTED


@pytest.mark.parametrize("pack", [bytes, bz2.compress], ids=["plain", "bz2"])
def test_a_pickle_is_not_run(folder, pack):
    class Hostile:
        def __reduce__(self):
            return Path.touch, (folder / "run",)

    path = folder / "model.pkl"
    path.write_bytes(pack(pickle.dumps(Hostile())))
    for read in (lambda: align(path, folder), lambda: read_vectors(path, entities=folder)):
        with pytest.raises(CorpusError, match=r"model\.pkl: is a pickle.*--allow-pickle"):
            read()
    assert not (folder / "run").exists()


def test_a_model_follows_the_redirects_that_it_knows(folder):
    library = pytest.importorskip("wikipedia2vec")
    tries = importlib.import_module("marisa_trie")
    model = library.Wikipedia2Vec.load_text(str(write(folder / "vectors.txt")))
    state = model.dictionary.serialize()
    place = model.dictionary.get_entity_index("Paris") - model.dictionary.entity_offset
    state["redirect_dict"] = tries.RecordTrie("<I", [("Atlantis", (place,))]).tobytes()
    renamed = library.Wikipedia2Vec(type(model.dictionary).load(state))
    renamed.syn0 = model.syn0
    renamed.save(str(folder / "model.pkl"))
    assert rows(align(folder / "model.pkl", folder, allow_pickle=True))[5] == VECTORS["Paris"]


def test_a_table_of_titles_says_who_is_meant_in_one_language(folder):
    titles = folder / "titles.tsv"
    titles.write_text("de\tParis\tQ0\nen\tspringfield\tQ4\nen\tNew_York_City\tQ1\nen\tBerlin\tQ99\n")
    vectors = write(folder / "vectors.txt")
    english = rows(align(vectors, folder, titles=read_titles(titles, "en")))
    assert english == [None, [4, 5, 6], None, None, [1, 1, 1], None]
    assert rows(align(vectors, folder, titles=read_titles(titles, "deu")))[0] == VECTORS["Paris"]
    with pytest.raises(CorpusError, match=r"vectors\.txt: no entity matches any of the titles"):
        align(vectors, folder, titles=read_titles(titles, "fr"))


def test_the_table_and_its_note(folder, saved):
    table = read_vectors(saved)
    assert table.dtype == np.float32
    assert rows(entity_vectors.Aligned(table, ())) == EXPECTED
    note = json.loads((folder / "entity_vectors.json").read_text())
    assert (note["source"], note["rows"], note["dim"]) == ("vectors.txt", 6, 3)
    assert note["missing"] == ["Q3", "Q4", "Q5"]


def test_vectors_of_other_entities_are_refused(folder, saved):
    lines = (folder / "entities.tsv").read_text().splitlines(keepends=True)
    (folder / "entities.tsv").write_text("".join(reversed(lines)))
    with pytest.raises(CorpusError, match=r"entity_vectors\.npy: belongs to another entities\.tsv"):
        read_vectors(saved)
    (folder / "entity_vectors.json").write_text("{")
    with pytest.raises(CorpusError, match=r"entity_vectors\.json: damaged"):
        read_vectors(saved)


def test_a_failed_write_leaves_no_note_beside_vectors_that_it_does_not_belong_to(folder, saved, monkeypatch):
    aligned = align(folder / "vectors.txt", folder)

    def fail(*_arguments, **_named):
        raise OSError("disk full")

    monkeypatch.setattr(entity_vectors, "write_table", fail)
    with pytest.raises(OutputError, match=r"entity_vectors\.npy: .*disk full"):
        write_vectors(aligned, folder, source=folder / "vectors.txt")
    assert not (folder / "entity_vectors.json").exists()
    assert rows(entity_vectors.Aligned(read_vectors(saved), ())) == EXPECTED


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ENTITY/Berlin\t1 x 3\n", r"v\.txt:1: not a vector"),
        (b"ENTITY/Berlin\t1 2 3\nENTITY/Paris\t1 2\n", r"v\.txt:2: 2 numbers where 3 finite ones are expected"),
        (b"ENTITY/Berlin\t1 nan 3\n", r"v\.txt:1: 3 numbers where 3 finite ones"),
        (b"ENTITY/Berlin\n", r"v\.txt:1: 0 numbers where some finite ones"),
        (b"word\t1 2 3\n", r"v\.txt: contains no line that begins with ENTITY/"),
        (b"ENTITY/Elsewhere\t1 2 3\n", r"v\.txt: no entity matches any of the labels of"),
        (b"", r"v\.txt: .*no text"),
        (b"\x80\x04not a pickle", r"v\.txt: not a model of Wikipedia2Vec"),
        (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x04syn0\x94Ns.", r"v\.txt: not a model of"),
    ],
)
def test_files_that_are_no_vectors(folder, content, message):
    if content.startswith(b"\x80"):
        pytest.importorskip("wikipedia2vec")
    (folder / "v.txt").write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        align(folder / "v.txt", folder, allow_pickle=True)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((0, 3), np.float32), "contains no vectors"),
        (np.full((2, 3), np.inf), "row 0 contains infinity"),
    ],
)
def test_tables_that_are_none(tmp_path, table, message):
    path = tmp_path / "v.npy"
    np.save(path, table)
    with pytest.raises(CorpusError, match=message):
        read_vectors(path)
    with pytest.raises(CorpusError, match="no such file"):
        read_vectors(tmp_path / "nothing.npy")


def test_without_the_library_the_line_to_type_is_told(folder, monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    (folder / "v.pkl").write_bytes(b"\x80\x04N.")
    monkeypatch.setattr(entity_vectors, "import_module", absent)
    with pytest.raises(EncoderError, match=r'pip install "isoglot\[wikipedia\]"'):
        align(folder / "v.pkl", folder, allow_pickle=True)
