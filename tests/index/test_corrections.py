"""Entries that are updated and deleted: an index is a dict of units, whatever its kind and whoever is killed."""

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_parts import ORIGIN, make, sentences, unit

from conftest import SENTENCES
from isoglot.core.errors import OutputError, SearchError
from isoglot.index import Index, Origin, Sentence, index, storage, table
from isoglot.index.origin import encode_sentences

pytest.importorskip("faiss")

SIDES = st.lists(st.sampled_from([(text, code) for text in SENTENCES[:5] for code in ("deu", "eng")]), min_size=1,
                 max_size=3, unique=True)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.dictionaries(st.sampled_from("abcdefgh"), SIDES, min_size=1, max_size=5),
        st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=4),
        st.none(),
    ),
    max_size=7,
)


def best_units(units, query, k, vector_of, code=None):
    """(score, number of ids) of the k nearest contents, one by one."""
    scores, counts = {}, {}
    for sides in units.values():
        found = [float(vector_of(text) @ query) for text, language in sides if code in (None, language)]
        if found:
            content = frozenset(sides)
            scores[content], counts[content] = max(found), counts.get(content, 0) + 1
    return sorted(((score, counts[content]) for content, score in scores.items()), reverse=True)[:k]


@pytest.fixture
def vector_of(toy_static):
    return cache(lambda text: encode_sentences(toy_static, [text])[0])


@pytest.mark.parametrize("kind", ["flat", pytest.param("hnsw", marks=pytest.mark.slow)])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, in_memory=st.booleans(), k=st.integers(1, 6))
def test_an_index_is_a_dict_of_units(tmp_path_factory, toy_static, vector_of, kind, steps, in_memory, k):
    """Updates, deletions, and a new opening, each followed by searches in one language and in all."""
    units = {}
    folder = None if in_memory else tmp_path_factory.mktemp("i") / "x"
    with pytest.MonkeyPatch.context() as patch:
        for module, name, rows in ((index, "_WASTE", 3), (table, "ROWS", 3), (table, "BLOCK", 4)):
            patch.setattr(module, name, rows)
        made = Index.create(folder, Origin.of(toy_static, "toy"), kind=kind, model=toy_static)
        for step in steps:
            if step is None and folder:
                made.close()
                made = Index.open(folder, toy_static)
            elif isinstance(step, dict):
                made.update(Sentence(key, text, code) for key, sides in step.items() for text, code in sides)
                units |= step
            elif step and step - {*units}:
                with pytest.raises(SearchError, match="contains no entry with the id"):
                    made.delete(step)
            elif step:
                assert made.delete(step) == sum(len(units.pop(key)) for key in step)
            assert len(made) == sum(map(len, units.values()))
            queries = np.stack([vector_of(SENTENCES[0]), vector_of("cat dog")])
            for code in (None, "deu"):
                found = made.search(queries, k, languages=code or (), effort=1000)
                for query, hits in zip(queries, found, strict=True):
                    expected = best_units(units, query, k, vector_of, code)
                    np.testing.assert_allclose([hit.score for hit in hits], [score for score, _ in expected], atol=1e-6)
                    contents = [frozenset(units[hit.id]) for hit in hits]
                    assert len({*contents}) == len(contents)
                    for hit, content in zip(hits, contents, strict=True):
                        assert (hit.text, hit.language) in content
                        assert hit.count == sum(frozenset(sides) == content for sides in units.values())
        assert {key: {(one.text, one.language) for one in rows.values()}
                for key, rows in made.store.by_id([*"abcdefgh"]).items()} == {
                    key: {*sides} for key, sides in units.items()}  # fmt: skip
        made.close()


def test_only_what_changed_is_encoded(toy_static, monkeypatch):
    made = Index.build(toy_static, [Sentence("a", "cat", "eng"), Sentence("a", "Katze", "deu"), Sentence("b", "dog")])
    encoded = []
    monkeypatch.setattr("isoglot.index.index.encode_lists", lambda _, lists: (encode(texts) for texts in lists))

    def encode(texts):
        encoded.extend(texts)
        return encode_sentences(toy_static, texts)

    unit = [Sentence("a", "cat", "eng"), Sentence("a", "der Hund", "deu"), Sentence("b", "dog"), Sentence("c", "mat")]
    added = made.update(unit)
    assert encoded == ["der Hund", "mat"]
    assert (added.new, added.known, added.updated) == (1, 1, 2)
    assert [made.search(text, 1)[0].id for text in ("cat", "der Hund", "dog")] == ["a", "a", "b"]
    np.testing.assert_array_equal(made.vectors([3]), encode_sentences(toy_static, ["cat"]))


def test_the_sides_of_a_unit_are_one_hit(toy_static):
    pairs = [("the cat", "le chat"), ("the dog", "le chien"), ("a mat", "un tapis")]
    sides = [
        side
        for key, (one, other) in enumerate(pairs)
        for side in (Sentence(str(key), one, "eng", other, "fra"), Sentence(str(key), other, "fra", one, "eng"))
    ]
    made = Index.build(toy_static, sides)
    for texts in zip(*pairs, strict=True):
        for key, text in enumerate(texts):
            hits = made.search(text, 10)
            assert len(hits) == 3
            assert (hits[0].id, hits[0].text, {text, hits[0].translation}) == (str(key), text, {*pairs[key]})


def test_an_id_with_two_contents_in_one_call_is_an_error(toy_static, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 1)
    given = [Sentence("1", "cat"), Sentence("2", "mat"), Sentence("1", "dog")]
    for updating in (False, True):
        made = Index.build(toy_static, ["the cat"])
        with pytest.raises(SearchError, match=r"'1' belongs to 'cat' \(und\) and to 'dog'"):
            (made.update if updating else made.add)(given)
    made = Index.build(toy_static, given[:1])
    for _ in range(2):  # the first piece is as the index has it, at each call
        with pytest.raises(SearchError, match=r"'1' belongs to 'cat' \(und\) and to 'dog'"):
            made.update(given)
    with pytest.raises(SearchError, match="has more than 10,000 sentences"):
        Index.build(toy_static, [Sentence("1", str(number)) for number in range(10_001)])


def test_many_duplicates_leave_room_for_others(tmp_path):
    """More equal rows than candidates of the first look."""
    vectors = np.concatenate([np.repeat(unit(1), 200, axis=0), unit(5, seed=1)])
    with Index.create(tmp_path / "i", ORIGIN, kind="IVF2,Flat") as made:
        made.add_vectors([Sentence(f"s{row}", f"t{max(row, 199)}") for row in range(205)], vectors)
        for _ in range(2):
            hits = made.search(unit(1), 6, effort=300)[0]
            assert [(hit.text, hit.count) for hit in hits[:1]] == [("t199", 200)]
            assert {hit.text for hit in hits} == {f"t{number}" for number in range(199, 205)}
            made.restructure()


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "PCA4,IVF4,Flat"])
def test_an_approximate_index_finds_others_where_many_are_deleted(tmp_path, kind):
    vectors = unit(700)
    with make(tmp_path / "i", kind=kind, vectors=vectors) as made:
        nearest = [hit.id for hit in made.search(vectors[:1], 300, effort=1000)[0]]
        made.delete(nearest[:250])
        assert made._view.structure.ntotal == 700
        left = made.search(vectors[:1], 10, effort=1000)[0]
        expected = [row for row in np.argsort(-vectors @ vectors[0]).tolist() if f"s{row}" not in nearest[:250]][:10]
        assert [hit.row for hit in left] == expected


@pytest.mark.parametrize("kind", ["flat", "hnsw", "IVF64,Flat"])
def test_a_reader_and_another_writer_see_what_is_compacted(tmp_path, kind, monkeypatch):
    """A structure that can't be trained with what is left stays as it is."""
    monkeypatch.setattr(index, "_WASTE", 10)
    with make(tmp_path / "i", 300, kind) as writer, Index.open(tmp_path / "i") as reader:
        writer.delete([f"s{row}" for row in range(260)])
        is_compact = kind != "IVF64,Flat"
        assert writer._view.files.rows == (40 if is_compact else 300)
        assert (tmp_path / "i" / "vectors.npy").exists() != is_compact
        for one in (reader, writer):
            hits = one.search(unit(300)[260:], 1, effort=64)
            assert [hit[0].id for hit in hits] == [f"s{row}" for row in range(260, 300)]
            assert len(one) == sum(one.languages().values()) == 40
        reader.add_vectors(sentences(1, 300), unit(1, seed=5))
        assert writer.search(unit(1, seed=5), 1)[0][0].id == "s300"
        writer.save(tmp_path / "saved")
        with Index.open(tmp_path / "saved") as copy:
            assert [hit.id for hit in copy.search(unit(1), 50, languages="deu")[0]] == [
                hit.id for hit in writer.search(unit(1), 50, languages="deu")[0]]  # fmt: skip
        writer.delete([f"s{row}" for row in range(260, 301)])
        assert (len(reader), reader.search(unit(1)), reader.kind) == (0, [[]], kind)


def test_rows_that_others_add_and_delete_meanwhile_are_not_in_a_state():
    made = Index.create(None, ORIGIN)
    made.add_vectors(sentences(5), unit(5))
    before = made.store.files()
    made.add_vectors(sentences(5, 5), unit(5, seed=1))
    made.delete("s7")
    made._load(before)
    assert made._view.live.tolist() == [True] * 5


def test_a_full_disk_leaves_deleted_rows_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "_WASTE", 10)
    with Index.create(tmp_path / "i", ORIGIN) as made:
        made.add_vectors(sentences(60), unit(60))

        def fail(path, at, block):
            path.write_bytes(b"")
            raise OutputError(f"{path}: can't be written")

        monkeypatch.setattr(storage, "write_rows", fail)
        assert made.delete([f"s{row}" for row in range(40)]) == 40
        assert [path.name for path in (tmp_path / "i").glob("vectors*")] == ["vectors.npy"]
        monkeypatch.undo()
        monkeypatch.setattr(index, "_WASTE", 10)
        made.delete("s40")
        assert [path.name for path in (tmp_path / "i").glob("vectors*")] == ["vectors-3.npy"]
        assert made.search(unit(60)[59:], 1)[0][0].id == "s59"


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
from index_parts import make, unit
from isoglot.index import Index, Sentence, index
index._WASTE = 10
folder, kind = sys.argv[1:]

def correct(made):
    if "s0" in made.store.by_id(["s0"]):
        made.delete([f"s{{row}}" for row in range(30)])
    (row, before), = made.store.by_id(["s59"])["s59"].items()
    if before.text != "corrected":
        made._apply(index._Changes([Sentence("s59", "corrected")], [1], deleted=[row]), unit(1, seed=7))
    made._compact()
    made.restructure()

def content(place):
    with Index.open(place) as made:
        rows = [(one.id, one.text) for sentences, _, vectors in made._pieces(100) for one in sentences]
        near = [[(hit.id, hit.text) for hit in hits] for hits in made.search(unit(5, seed=1), 5)]
        return rows, near, sum(path.is_file() for path in Path(place).rglob("*"))

make(f"{{folder}}/before", 60, kind).close()
states = []
for at in range(-1, 1000):
    shutil.copytree(f"{{folder}}/before", f"{{folder}}/i")
    pid = os.fork()
    if not pid:
        met = []
        def watch(*_):
            met.append(1)
            if len(met) == at:
                os.kill(os.getpid(), signal.SIGKILL)
        made = Index.open(f"{{folder}}/i")
        made.store._connection.set_trace_callback(watch)
        sync = os.fsync
        def synced(descriptor):
            watch()
            sync(descriptor)
            watch()
        os.fsync = synced
        sys.addaudithook(lambda event, _: watch() if event in ("os.rename", "os.remove") else None)
        correct(made)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if at < 0:
        whole = content(f"{{folder}}/i")
    else:
        rows, near, _ = content(f"{{folder}}/i")
        ids = [key for key, _ in rows]
        assert ids in ([f"s{{row}}" for row in range(60)], [f"s{{row}}" for row in range(30, 60)]), (at, ids)
        states.append(len(ids))
        with Index.open(f"{{folder}}/i") as made:
            correct(made)
        assert content(f"{{folder}}/i") == whole, at
    shutil.rmtree(f"{{folder}}/i")
    if at > 0 and os.WIFEXITED(status):
        break
assert {{*states}} == {{30, 60}}
print(at)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process for each moment")
@pytest.mark.parametrize("kind", ["flat", "hnsw", "IVF1,Flat"])
def test_killed_at_any_moment_an_entry_is_there_as_it_was_or_corrected(tmp_path, kind):
    """Before each statement of the database, around each sync, and before each renaming and removing of a file."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(path=sys.path), str(tmp_path), kind], capture_output=True, text=True,
        check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30
