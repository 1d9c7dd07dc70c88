"""Damaged indexes: whatever byte is wrong, the answer is right or one `SearchError` that names the file."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager

import numpy as np
import pytest
from command_line import locked_elsewhere
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_parts import DIM, ORIGIN, make, sentences, unit
from killed import full_after

from isoglot.core.errors import OutputError
from isoglot.data.files import exclusive
from isoglot.data.store import write_rows
from isoglot.index import Index, Origin, SearchError, Sentence

pytest.importorskip("faiss")

ROWS = 3000


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An index whose tables have inner pages."""
    folder = tmp_path_factory.mktemp("whole") / "i"
    make(folder, ROWS, "hnsw").close()
    return folder


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "i")
    return tmp_path / "i"


def overwrite(path, start, data):
    with path.open("r+b") as stream:
        stream.seek(start)
        stream.write(data)


@contextmanager
def right_or_named(path):
    try:
        yield
    except SearchError as error:
        if str(path) not in str(error):
            raise


def use(folder, output):
    """Everything that reads the database."""
    with Index.open(folder) as index:
        index.search(unit(3), 20)
        index.search(unit(3), 20, languages=["deu"])
        index.languages()
        index.store.by_id([f"s{row}" for row in range(0, ROWS, 7)])
        index.export(output)
        index.add_vectors(sentences(2, ROWS), unit(2))
        index.restructure()


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_page_is_one_error(whole, tmp_path_factory, data):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(whole, folder / "i")
    path = folder / "i" / "index.sqlite"
    page = data.draw(st.integers(0, path.stat().st_size // 4096 - 1))
    start = data.draw(st.sampled_from([0, 1, 3, 5, 8, 100, 2000, 4000]))
    size = data.draw(st.sampled_from([1, 4, 90, 4096]))
    filling = data.draw(st.sampled_from([b"\0", b"\xff", b"\x55"]))
    overwrite(path, page * 4096 + start, filling * min(size, 4096 - start))
    with right_or_named(folder / "i"):
        use(folder / "i", folder / "out.parquet")


def test_inner_pages_are_damaged_by_name(copy, tmp_path):
    path = copy / "index.sqlite"
    overwrite(path, 4096 * 4, b"\xff" * (path.stat().st_size - 4096 * 4))
    with pytest.raises(SearchError, match=r"index\.sqlite: .*make the index again"):
        use(copy, tmp_path / "out.parquet")


WRONG_ORIGINS = ({"name": 1}, {"identity": None}, {"dim": "8"}, {"dim": True}, {"dim": 9}, {"prompt": 3}, {"more": 1})


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meta SET value = '[1]' WHERE key = 'origin'",
        "UPDATE meta SET value = '{' WHERE key = 'origin'",
        "UPDATE meta SET value = x'ff' WHERE key = 'origin'",
        *(
            f"UPDATE meta SET value = '{json.dumps({'name': 'x', 'identity': 'x', 'dim': DIM} | wrong)}'"
            " WHERE key = 'origin'"
            for wrong in WRONG_ORIGINS
        ),
        "DELETE FROM meta WHERE key = 'origin'",
        "UPDATE meta SET value = 'x' WHERE key = 'rows'",
        "UPDATE meta SET value = '-1' WHERE key = 'rows'",
        "UPDATE meta SET value = 2999 WHERE key = 'rows'",
        "DELETE FROM meta WHERE key = 'rows'",
        "DELETE FROM sentences WHERE row > 2000",
        "UPDATE approximate SET name = '../x'",
        "UPDATE approximate SET rows = 'x'",
        "DROP TABLE languages",
        "DELETE FROM sentences WHERE row < 2900",
        "UPDATE sentences SET text = x'ff'",
        "DELETE FROM languages",
    ],
)
def test_ill_typed_rows_are_one_error(copy, tmp_path, change):
    with closing(sqlite3.connect(copy / "index.sqlite")) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(SearchError, match="make the index again"):
        use(copy, tmp_path / "out.parquet")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_found_when_they_are_read(tmp_path, value):
    make(tmp_path / "i", 60).close()
    path = tmp_path / "i" / "vectors.npy"
    overwrite(path, path.stat().st_size - 4 * DIM * 3, np.float32([value]).tobytes())  # row 57, of "deu"
    with Index.open(tmp_path / "i") as index:
        for read in (
            lambda: index.search(unit(1), 3, languages=["deu"]), lambda: index.search(unit(1), 3),
            lambda: index.vectors([57]), lambda: index.restructure("hnsw"),
        ):  # fmt: skip
            with pytest.raises(SearchError, match=rf"{path.name}: .* not finite"):
                read()
        assert np.isfinite(index.vectors([56])).all()


TRUNCATED = """
import os, sys
sys.path[:0] = {path!r}
from index_parts import unit
from isoglot.core.errors import SearchError
from isoglot.index import Index
with Index.open({folder!r}) as index:
    index.search(unit(2), 5)
    os.truncate({vectors!r}, {size})
    for use in (lambda: index.search(unit(2), 5), lambda: index.search(unit(1), 5, languages="deu"),
                lambda: index.vectors([2999]), lambda: index.restructure("IVF4,Flat")):
        try:
            use()
        except SearchError as error:
            print(error)
"""


@pytest.mark.slow  # a process, which a page that is missing would end
@pytest.mark.parametrize("size", [0, 128, 50_000])
def test_vectors_truncated_in_place_are_an_error(copy, size):
    vectors = str(copy / "vectors.npy")
    code = TRUNCATED.format(path=sys.path, folder=str(copy), vectors=vectors, size=size)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{vectors}: is missing or truncated; make the index again"] * 4


def test_an_analyzed_index_opens(copy, tmp_path):
    with closing(sqlite3.connect(copy / "index.sqlite")) as connection:
        connection.execute("ANALYZE")
    use(copy, tmp_path / "out.jsonl")


@pytest.mark.slow
@given(header=st.binary(min_size=1, max_size=118))
def test_any_header_of_a_shard_is_one_error_or_the_same_vectors(tmp_path_factory, header):
    folder = tmp_path_factory.mktemp("i")
    make(folder / "i", 5).close()
    path = folder / "i" / "vectors.npy"
    overwrite(path, 10, header)
    with right_or_named(path), Index.open(folder / "i") as index:
        assert index.search(unit(1), 1)[0][0].row == 0


def test_a_faiss_file_of_other_dimension_or_without_a_digest(copy, tmp_path):
    import faiss

    with closing(sqlite3.connect(copy / "index.sqlite")) as connection:
        connection.execute("DELETE FROM meta WHERE key LIKE 'sha256 %'")  # as before digests were kept
        connection.commit()
        Index.open(copy).store.close()
        (path,) = (copy / "faiss").iterdir()
        other = faiss.index_factory(4, "HNSW32,Flat", faiss.METRIC_INNER_PRODUCT)
        other.add(unit(ROWS, 4))
        faiss.write_index(other, str(path))
        connection.execute("UPDATE approximate SET bytes = ?", (path.stat().st_size,))
        connection.commit()
    with pytest.raises(SearchError, match="4 dimensions instead of 3000 of 8"):
        Index.open(copy)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "IVF4,Flat"])
def test_more_than_there_is_gives_all_there_is(tmp_path, kind):
    with make(tmp_path / "i", 200, kind) as index:
        for k in (1, 39, 40, 41, 1000, 2**31, 10**30):
            for found in (*index.search(unit(2), k, effort=10**12), *index.search(unit(1), k, languages=["deu"])):
                assert 0 < len({hit.row for hit in found}) == len(found) <= min(k, 200)
            if kind == "flat":
                assert len(index.search(unit(1), k)[0]) == min(k, 200)


def test_another_process_that_adds_is_waited_for_or_refused(tmp_path, toy_static):
    origin = Origin.of(toy_static, "toy")
    with Index.create(tmp_path / "i", origin, model=toy_static) as index:
        with locked_elsewhere(tmp_path / "i"):
            for write in (lambda: index.add([Sentence("a", "cat")]), lambda: Index.create(tmp_path / "i", origin)):
                with pytest.raises(OutputError, match="another process"):
                    write()
            with Index.open(tmp_path / "i") as reader:  # reading is not writing
                assert len(reader) == 0
        assert index.add([Sentence("a", "cat")]).new == 1
    with exclusive(tmp_path / "i"):
        pass


@pytest.mark.slow
def test_an_index_is_opened_and_searched_while_another_adds(tmp_path):
    vectors = unit(400)
    Index.create(tmp_path / "i", ORIGIN, kind="hnsw").store.close()
    errors = []

    def add():
        try:
            with Index.open(tmp_path / "i") as writer:
                for start in range(0, 400, 10):
                    writer.add_vectors(sentences(10, start), vectors[start : start + 10])
                    writer.restructure()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    sizes = []
    while thread.is_alive():
        with Index.open(tmp_path / "i") as index:
            sizes.append(len(index))
            hits = index.search(vectors[:1], 3)[0]
            assert min(3, sizes[-1]) <= len(hits) <= 3
    thread.join()
    assert errors == []
    assert sizes == sorted(sizes)
    assert all(size % 10 == 0 for size in sizes)


LIMITED = """
import resource, sys
sys.path[:0] = {path!r}
from index_parts import sentences, unit
from isoglot.core.errors import OutputError
from isoglot.index import Index
with Index.open({folder!r}) as index:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    try:
        index.add_vectors(sentences({rows}, {first}), unit({rows}))
        index.restructure()
    except OutputError as error:
        print(error)
    print(len(index), len(index.search(unit(1), 5)[0]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "above"), [(6000, "vectors.npy"), (800, "index.sqlite"), (6000, "index.sqlite")])
def test_a_quota_that_is_reached_changes_nothing_and_is_named(tmp_path, rows, above):
    """`above`: the file that may not grow."""
    pytest.importorskip("resource")
    folder = tmp_path / "i"
    with Index.create(folder, ORIGIN) as index:
        index.add_vectors(sentences(50), unit(50))
        if above == "vectors.npy":  # the greater file, then
            index.add_vectors([Sentence(str(row), "") for row in range(9000)], unit(9000))
        first = len(index)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code = LIMITED.format(path=sys.path, folder=str(folder), limit=len(before[above]), rows=rows, first=first)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    problem, after = done.stdout.splitlines()
    assert after == f"{first} 5"
    assert str(folder) in problem
    assert "make room" in problem
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with Index.open(folder) as index:
        index.add_vectors(sentences(rows, first), unit(rows))
        assert len(index) == first + rows


RECURSIVE = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i AS row, '' AS id FROM n"


@pytest.mark.slow  # a process each, since an index that is read without this check never ends
@pytest.mark.parametrize(
    "change",
    [
        f"DROP TABLE sentences; CREATE VIEW sentences AS {RECURSIVE}",
        f"DROP TABLE meta; CREATE VIEW meta AS SELECT 'rows' AS key, max(row) AS value FROM ({RECURSIVE})",
        f"CREATE VIEW more AS {RECURSIVE}",
        f"CREATE TRIGGER t AFTER INSERT ON sentences BEGIN INSERT INTO meta SELECT row, 1 FROM ({RECURSIVE}); END",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON sentences (abs(row))",
        "CREATE VIRTUAL TABLE more USING fts5(x)",
        "ALTER TABLE sentences ADD COLUMN more AS (zeroblob(1000000000))",
        "ALTER TABLE sentences ADD COLUMN more",
        "ALTER TABLE meta RENAME COLUMN value TO content",
        "CREATE TABLE copy AS SELECT * FROM sentences; DROP TABLE sentences; ALTER TABLE copy RENAME TO sentences",
    ],
)
def test_only_the_tables_of_an_index_are_accepted(copy, change):
    with closing(sqlite3.connect(copy / "index.sqlite")) as connection:
        connection.executescript(change)
    code = f"from isoglot.index import Index\nIndex.open({str(copy)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "isoglot.core.errors.SearchError" in done.stderr
    assert str(copy / "index.sqlite") in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="limits are of POSIX systems")
def test_a_part_of_a_structure_that_lacks_its_end_is_not_kept(tmp_path):
    """NumPy's own `save` reports no error for the last bytes of a small array."""
    with make(tmp_path / "i", 80) as index:
        with full_after(3900), pytest.raises(OutputError, match=r"80\.npy: .*make room"):
            index.restructure("ivf")
        assert (len(index), index.kind) == (80, "flat")
        index.restructure("ivf")
        assert len(index.search(unit(1), 80)[0]) == 80


@pytest.mark.parametrize("rows", [0, 50])
def test_a_full_disk_leaves_the_index_as_it_was(tmp_path, monkeypatch, rows):
    def fail(path, at, block, real=write_rows):
        real(path, at, block)
        if len(block):
            raise OutputError(f"{path}: can't be written")

    with Index.create(tmp_path / "i", ORIGIN) as index:
        if rows:
            index.add_vectors(sentences(rows), unit(rows))
            index.delete("s7")
        before = {path.name: path.read_bytes() for path in (tmp_path / "i").iterdir()}
        monkeypatch.setattr("isoglot.index.storage.write_rows", fail)
        with pytest.raises(OutputError, match=f"can't be written; the {len(index)} sentences"):
            index.add_vectors(sentences(7, rows), unit(7))
        assert {path.name: path.read_bytes() for path in (tmp_path / "i").iterdir()} == before
        assert len(index.search(unit(1), 3)[0]) == min(3, rows)
