"""An index finds what brute force finds, grows in any pieces to the same files, and survives its writer's death."""

import os
import shutil
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_parts import DIM, ORIGIN, brute_force, make, sentences, unit

from isoglot.index import Index, SearchError, Sentence, structures, table
from isoglot.search import faiss_index
from isoglot.search.faiss_index import faiss_module

pytest.importorskip("faiss")


def check(index, vectors, queries, k, **options):
    step = 3 if options else 1  # of three languages the first
    found = brute_force(vectors[::step], queries, k)
    for hits, expected in zip(index.search(queries, k, **options), found, strict=True):
        assert [hit.row for hit in hits] == [row * step for _, row in expected]
        np.testing.assert_allclose([hit.score for hit in hits], [score for score, _ in expected], atol=2e-7)
        for hit in hits:
            assert (hit.id, hit.text) == (f"s{hit.row}", f"text {hit.row}")
            assert hit.language == ("deu", "eng", "ara")[hit.row % 3]


@settings(max_examples=25)
@given(rows=st.integers(1, 40), k=st.integers(1, 45), size=st.integers(1, 17), seed=st.integers(0, 1000))
def test_search_is_brute_force(tmp_path_factory, rows, k, size, seed):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ROWS", "BLOCK"):
            patch.setattr(table, name, size)
        vectors = unit(rows, seed=seed)
        with make(tmp_path_factory.mktemp("i") / "x", vectors=vectors) as index:
            queries = unit(3, seed=seed + 1) * 5
            check(index, vectors, queries, k)
            check(index, vectors, queries, k, languages=["deu"])


@settings(max_examples=20)
@given(pieces=st.lists(st.integers(0, 12), min_size=1, max_size=6), size=st.integers(1, 9))
@pytest.mark.slow
def test_any_pieces_make_the_same_files(tmp_path_factory, pieces, size):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ROWS", "BLOCK"):
            patch.setattr(table, name, size)
        folder = tmp_path_factory.mktemp("i")
        vectors = unit(sum(pieces))
        with Index.create(folder / "pieces", ORIGIN) as index:
            for count in pieces:
                first = len(index)
                index.add_vectors(sentences(count, first), vectors[first : first + count])
            grown = index.search(unit(2, seed=9), 5)
        with make(folder / "once", vectors=vectors) as index:
            assert index.search(unit(2, seed=9), 5) == grown
        assert (folder / "pieces/vectors.npy").read_bytes() == (folder / "once/vectors.npy").read_bytes()
        rows = []
        for name in ("pieces", "once"):
            with closing(sqlite3.connect(folder / name / "index.sqlite")) as connection:
                rows.append(connection.execute("SELECT * FROM sentences ORDER BY row").fetchall())
        assert rows[0] == rows[1]


def test_equal_vectors_come_in_the_order_of_rows(tmp_path):
    with make(tmp_path / "i", vectors=np.repeat(unit(1), 12, axis=0)) as index:
        assert [hit.row for hit in index.search(unit(1), 12)[0]] == list(range(12))


def test_a_query_of_zeros_and_an_empty_index(tmp_path):
    with make(tmp_path / "i", rows=4) as index:
        assert [hit.score for hit in index.search(np.zeros((1, DIM), np.float32), 2)[0]] == [0, 0]
        assert index.search(np.empty((0, DIM), np.float32)) == []
        assert index.search(unit(1), 3, languages=["fra"]) == [[]]
    with Index.create(tmp_path / "empty", ORIGIN, kind="hnsw") as index:
        index.restructure()
        assert index.search(unit(2)) == [[], []]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ivf", "ivf-pq", "hnsw", "IVF4,SQ8"])
def test_approximate_kinds_find_most_and_score_exactly(tmp_path, kind):
    vectors = unit(1500)
    with make(tmp_path / "i", vectors=vectors, kind=kind) as index:
        index.add_vectors(sentences(30, 1500), unit(30, seed=5))  # not covered yet: searched exactly
        everything = np.concatenate([vectors, unit(30, seed=5)])
        queries = unit(20, seed=7)
        expected = brute_force(everything, queries, 5)
        for covered in (1500, 1530):
            found = index.search(queries, 5, effort=64)
            right = sum(len({h.row for h in a} & {row for _, row in b}) for a, b in zip(found, expected, strict=True))
            assert right >= 90
            for query, hits in zip(queries, found, strict=True):
                for hit in hits:
                    assert hit.score == pytest.approx(float(everything[hit.row] @ query), abs=1e-6)
            assert index._view.covered_rows == covered
            index.restructure()
    with Index.open(tmp_path / "i") as again:
        assert again.search(queries, 5, effort=64) == found
        again.restructure("flat")
        assert not list((tmp_path / "i" / "faiss").iterdir())
        check(again, everything[:1500], everything[:1], 1)
        again.restructure("hnsw")
        assert again.kind == "hnsw"


@pytest.mark.parametrize("folder", ["i", None])
@pytest.mark.parametrize("kind", ["hnsw", "IVF4,Flat", "PCA4,IVF4,Flat", "IVF4,PQ4x4fs,RFlat"])
def test_a_search_under_way_is_not_disturbed_by_adding(tmp_path, kind, folder, monkeypatch):
    """A search holds the structure of its moment, and a structure that did not change is not read again."""
    read, real = [], structures.open_structure
    monkeypatch.setattr(structures, "open_structure", lambda *given: read.append(given) or real(*given))
    with Index.create(folder and tmp_path / folder, ORIGIN, kind=kind) as index:
        index.add_vectors(sentences(600), unit(600))
        index.restructure()
        before = index._view
        for first in (600, 700):
            index.add_vectors(sentences(100, first), unit(100, seed=first))
        assert index._view.structure is before.structure
        index.restructure()
        assert (before.structure.ntotal, index._view.structure.ntotal) == (600, 800)
        assert index._view.covered_rows == 800
        assert index.search(unit(1, seed=700), 1)[0][0].row == 700
    assert len(read) == (3 if folder else 0)  # each once, and a copy that grows


IVF_KINDS = ["IVF8,Flat", "ivf-pq", "IVF8,SQ8", "PCA4,IVF8,Flat", "IVF1,Flat", "IVF8_HNSW8,PQ2x4"]


@pytest.mark.parametrize("kind", IVF_KINDS)
@pytest.mark.slow
def test_merged_parts_equal_what_faiss_adds_at_once(tmp_path, kind, monkeypatch):
    """In one file or in memory, in parts or not, and grown by an addition: the same lists in the same order."""
    from faiss.contrib.inspect_tools import get_invlist

    monkeypatch.setattr(structures, "BLOCK", 64 * 4 * DIM)
    monkeypatch.setattr(structures, "_PART", 1000)
    vectors = unit(1300)
    index = make(tmp_path / "i", kind=kind, vectors=vectors[:1000])
    trained = faiss_module().read_index(str(next((tmp_path / "i" / "faiss").iterdir())))
    faiss_module().extract_index_ivf(trained).reset()
    trained.ntotal = 0
    for stop in (1000, 1300):
        trained.add(vectors[trained.ntotal : stop])
        if stop > 1000:
            index.add_vectors(sentences(300, 1000), vectors[1000:])
            index.restructure()
        inner, expected = (faiss_module().extract_index_ivf(one) for one in (index._view.structure, trained))
        for cell in range(inner.nlist):
            for one, other in zip(*(get_invlist(each.invlists, cell) for each in (inner, expected)), strict=True):
                np.testing.assert_array_equal(one, other)
        near = structures.find_candidates(index._view.structure, vectors[:20], 5)
        np.testing.assert_array_equal(near, structures.find_candidates(trained, vectors[:20], 5))
    index.close()


def test_a_kind_whose_lists_are_inside_another_grows(tmp_path):
    index = make(tmp_path / "i", kind="IVF8,SQ8,RFlat", vectors=unit(1300)[:1000])
    index.add_vectors(sentences(300, 1000), unit(1300)[1000:])
    index.restructure()
    assert index._view.covered_rows == 1300
    assert index.search(unit(1300)[1200:1201], 1)[0][0].row == 1200
    index.close()


def test_a_killed_structure_is_resumed_by_its_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(structures, "BLOCK", 64 * 4 * DIM)
    monkeypatch.setattr(structures, "_PART", 1)
    index = make(tmp_path / "i", rows=1000)
    blocks = []

    def killed(trained, given):
        for number, block in enumerate(given):
            blocks.append(len(block))
            if len(blocks) == 5:
                raise KeyboardInterrupt
            yield structures.encode_rows(trained, block)
            assert number < 15

    index._coding = killed
    with pytest.raises(KeyboardInterrupt):
        index.restructure("IVF8,Flat")
    check(index, unit(1000), unit(3, seed=1), 5)  # flat, as before
    monkeypatch.setattr(structures, "train", None)
    index.restructure("IVF8,Flat")
    assert blocks == [64] * 16 + [40]  # the fifth block twice, none of the four before it
    check(index, unit(1000), unit(3, seed=1), 5)
    assert [path.name for path in (tmp_path / "i/faiss").iterdir()] == ["IVF8-Flat-1000.faiss"]
    index.close()


@pytest.mark.slow
def test_the_recall_of_a_structure_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(faiss_index, "CELLS", 4)
    vectors = unit(2000)
    with make(tmp_path / "i", vectors=vectors) as index:
        assert index.recall is None
        index.restructure("IVF200,Flat")
        measured = index.recall
        queries = unit(200, seed=5)
        found = index.search(queries, 10)
        right = [len({hit.row for hit in hits} & {row for _, row in true})
                 for hits, true in zip(found, brute_force(vectors, queries, 10), strict=True)]  # fmt: skip
        assert measured == pytest.approx(np.mean(right) / 10, abs=0.1)
        assert 0.5 < measured < 1
        index.add_vectors(sentences(100, 2000), unit(100, seed=7))
        index.restructure()
        assert index.recall == measured  # it has hardly grown
        index.restructure("IVF4,Flat")
        assert index.recall == 1
    with make(tmp_path / "equal", vectors=np.repeat(unit(20), 60, axis=0), kind="hnsw") as equal:
        assert equal.recall == 1  # any ten of sixty equal sentences are the nearest
    with Index.open(tmp_path / "i") as again:
        assert again.recall == 1
        again.restructure("flat")
        assert again.recall is None


@pytest.mark.parametrize(("place", "message"), [("head", "is damaged"), ("row", "are damaged"), ("code", None)])
def test_a_changed_byte_of_lists_is_an_error_or_a_sentence_that_is_missed(tmp_path, place, message):
    with make(tmp_path / "i", rows=300, kind="IVF4,Flat") as index:
        head = int(index._view.files.approximate.digest.split()[1])
    (path,) = (tmp_path / "i" / "faiss").iterdir()
    content = bytearray(path.read_bytes())
    content[{"head": head - 1, "code": head + 1, "row": -1}[place]] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(SearchError, match=message) if message else nullcontext(), Index.open(tmp_path / "i") as index:
        for query, hits in zip(unit(300), index.search(unit(300), 3), strict=True):
            assert all(hit.score == pytest.approx(float(unit(300)[hit.row] @ query), abs=1e-6) for hit in hits)


def test_compressed_kinds_that_need_more_say_so(tmp_path):
    with pytest.raises(ValueError, match="needs more than 50 rows"):
        make(tmp_path / "i", kind="IVF64,PQ4")
    with Index.open(tmp_path / "i") as index:  # the sentences are there nevertheless
        check(index, unit(50), unit(1, seed=3), 4)
    with pytest.raises(ValueError, match="'nonsense' is not a kind"):
        Index.create(tmp_path / "j", ORIGIN, kind="nonsense")
    assert not (tmp_path / "j").exists()


def test_ids_must_differ_and_nothing_is_added_by_halves(tmp_path):
    with make(tmp_path / "i", rows=5) as index:
        with pytest.raises(SearchError, match="'s2' is in use"):
            index.add_vectors([Sentence("new", "text"), Sentence("s2", "other")], unit(2))
        assert len(index) == 5
        assert index.store.by_id(["new"]) == {}
        with pytest.raises(SearchError, match="'new' is in use"):
            index.add_vectors([Sentence("new", "a"), Sentence("other", "b"), Sentence("new", "c")], unit(3))
        with pytest.raises(ValueError, match="must be"):
            index.add_vectors(sentences(2, 5), unit(3))
        with pytest.raises(ValueError, match="finite"):
            index.add_vectors(sentences(1, 5), np.full((1, DIM), np.nan, np.float32))
        index.add_vectors(sentences(2, 5), unit(2))
        assert len(index) == 7


def test_folders_that_are_no_index_are_refused(tmp_path):
    with pytest.raises(SearchError, match="contains no index"):
        Index.open(tmp_path)
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(SearchError, match="is not empty"):
        Index.create(tmp_path, ORIGIN)
    (tmp_path / "notes").rename(tmp_path / "index.sqlite")
    assert not Index.exists(tmp_path)
    with pytest.raises(SearchError, match=r"index\.sqlite: "):
        Index.open(tmp_path)
    with pytest.raises(SearchError, match="is not empty"):
        Index.create(tmp_path, ORIGIN)
    assert (tmp_path / "index.sqlite").read_text() == "mine"


@pytest.mark.parametrize(("version", "advice"), [(4, "; make it again"), (99, "; upgrade isoglot, or make it again")])
def test_another_format_is_refused_with_the_command_that_makes_the_index_again(tmp_path, version, advice):
    make(tmp_path / "i").store.close()
    with closing(sqlite3.connect(tmp_path / "i" / "index.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(SearchError, match=f"i: an index of format {version}, and this isoglot reads 5{advice}") as said:
        Index.open(tmp_path / "i")
    assert f"isoglot index {ORIGIN.name} FILE" in str(said.value)


DAMAGE = {
    "cut": lambda content: content[:100],
    "empty": lambda _: b"",
    "other": lambda content: b"x" * len(content),
    **{f"byte {at}": lambda content, at=at: content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 or None :]
       for at in (0, 20, 500, -200, -1)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "damage"),
    [*(("faiss/*", each) for each in ("gone", *DAMAGE)), *(("vectors.npy", each) for each in ("gone", "cut", "other"))],
)
def test_damaged_files_are_never_read_as_good(tmp_path, what, damage):
    make(tmp_path / "i", kind="hnsw").close()
    (path,) = (tmp_path / "i").glob(what)
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(SearchError, match=rf"{path.name}.*make the index again"):
        Index.open(tmp_path / "i")


def test_a_creation_that_was_cut_off_is_done_again(tmp_path):
    (tmp_path / "i").mkdir()
    (tmp_path / "i" / "index.sqlite").touch()
    assert not Index.exists(tmp_path / "i")
    with pytest.raises(SearchError, match="not a finished index"):
        Index.open(tmp_path / "i")
    with make(tmp_path / "i") as index:
        assert len(index) == 50


def test_a_folder_beside_which_nothing_can_be_written_gets_an_index(tmp_path, monkeypatch):
    (tmp_path / "i").mkdir()
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path) != tmp_path)  # the lock is inside, as in a volume
    with make(tmp_path / "i") as index:
        assert len(index) == 50
    assert sorted(path.name for path in (tmp_path / "i").iterdir()) == ["index.sqlite", "vectors.npy"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder with open files")
@pytest.mark.parametrize("what", ["removed", "moved", "of the same name elsewhere"])
def test_an_index_leaves_the_one_that_replaced_it_alone(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    with make(Path("i"), 5, vectors=unit(5, seed=1)) as old:
        if what == "removed":
            shutil.rmtree("i")
        elif what == "moved":
            Path("i").rename("j")
        else:
            (tmp_path / "other").mkdir()
            monkeypatch.chdir(tmp_path / "other")
        make(Path("i"), kind="hnsw").close()
        changes = (
            lambda: old.add_vectors(sentences(1, 90), unit(1)),
            lambda: old.delete("s1"),
            lambda: old.restructure("hnsw"),
            old.restructure,
        )
        for change in changes:
            with pytest.raises(SearchError, match="i: was removed or replaced"):
                change()
        check(old, unit(5, seed=1), unit(2, seed=3), 5)
    with Index.open("i") as new:
        check(new, unit(50), unit(2, seed=3), 5)


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_an_open_index_has_what_others_add(tmp_path, kind):
    vectors = unit(80)
    with make(tmp_path / "i", vectors=vectors[:50]) as old, Index.open(tmp_path / "i") as writer:
        check(old, vectors[:50], unit(2, seed=3), 5)
        writer.add_vectors(sentences(30, 50), vectors[50:])
        writer.restructure(kind)
        check(old, vectors, unit(2, seed=3), 5)
        assert (len(old), old.kind, sum(old.languages().values())) == (80, kind, 80)
        assert (old.vectors([79]) == vectors[79:]).all()
        check(old, vectors, unit(2, seed=3), 5, languages=["deu"])
        old.add_vectors(sentences(1, 80), unit(1))
        assert (len(old), len(writer)) == (81, 81)
