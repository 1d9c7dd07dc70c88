"""Files into an index: what is read, that adding is repeatable, and that only its own model may ask it."""

import json
import re
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import SENTENCES
from isoglot.core.errors import CorpusError, OutputError
from isoglot.data.readers import read_tmx
from isoglot.encoders import StaticEncoder
from isoglot.index import Index, Origin, SearchError, Sentence, read_sentences, table
from isoglot.index.origin import encode_lists, encode_queries, encode_sentences
from isoglot.mining import MinedPair, formats

pytest.importorskip("faiss")


def lines(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / name)


def read(source, **options):
    """The sentences of a file, and for each the place of the first one with the same id."""
    sentences = list(read_sentences(source, **options))
    ids = [one.id for one in sentences]
    return [replace(one, id=str(ids.index(one.id))) for one in sentences]


PAIR = [Sentence("0", "One", "eng", "Eins", "deu"), Sentence("0", "Eins", "deu", "One", "eng")]


@pytest.mark.parametrize(
    ("name", "text", "code", "columns", "expected"),
    [
        ("a.txt", "eins\n\n \nzwei\u2028drei\n", "de=", None, [("eins", "deu"), ("zwei\u2028drei", "deu")]),
        ("a.txt", "eins\n", "", None, [("eins", "und")]),
        ("de=x.txt", "eins\n", "", None, [("eins", "und")]),
        ("t.tsv", "eng\tde\nOne\tEins\nTwo\t\n", "", None, [*PAIR, ("Two", "eng")]),
        ("p.tsv", "id\ttext\tlanguage\na\tOne\ten\nb\tZwei\t\n", "de=", None, [("One", "eng"), ("Zwei", "deu")]),
        ("o.jsonl", '{"english": "One", "de": "Eins", "fr": "Un"}', "", {"english": "en", "de": "de"}, PAIR),
        ("s.tsv", "id\ten\tde\nHalo\tHi\tHallo\n", "", {"id": "ind", "en": "en"},
         [Sentence("0", "Halo", "ind", "Hi", "eng"), Sentence("0", "Hi", "eng", "Halo", "ind")]),
        ("a.po", 'msgid ""\nmsgstr "Project-Id-Version: a\\n"\n\nmsgid "One"\nmsgstr "Eins"\n', "en,de=", None, PAIR),
    ],
)  # fmt: skip
def test_sentences_have_the_languages_of_their_file_or_those_given(tmp_path, name, text, code, columns, expected):
    if name.endswith("po"):
        pytest.importorskip("polib")
    sentences = [one if isinstance(one, Sentence) else Sentence(str(at), *one) for at, one in enumerate(expected)]
    assert read(f"{code}{lines(tmp_path, name, text)}", columns=columns) == sentences


def test_objects_bring_ids_and_languages(tmp_path):
    objects = [{"text": "One\tline\nor two", "id": 7, "language": "en"}, {"text": " "}, {"text": "Zwei"}]
    path = lines(tmp_path, "o.jsonl", "\n".join(json.dumps(one) for one in objects) + "\n\n")
    first, second = read_sentences(path, language="deu")
    assert first == Sentence("7", "One\tline\nor two", "eng")
    assert replace(second, id="") == Sentence("", "Zwei", "deu")


def test_ids_are_those_of_the_file_or_digests_that_do_not_depend_on_the_place(tmp_path):
    table = lines(tmp_path, "t.tsv", "id\teng\tdeu\nu1\tOne\tEins\n\tTwo\tZwei\n")
    first, second, third, fourth = (one.id for one in read_sentences(table))
    assert first == second == "u1"
    assert third == fourth != "u1"
    moved = lines(tmp_path, "moved.tsv", "deu\teng\nZwei\tTwo\n")
    assert {one.id for one in read_sentences(moved)} == {third}
    assert {one.id for one in read_sentences(table, content_ids=True)} > {third}
    assert "u1" not in {one.id for one in read_sentences(table, content_ids=True)}
    plain = lines(tmp_path, "p.tsv", "id\ttext\tlanguage\na\tOne\ten\nb\tZwei\t\n")
    assert [one.id for one in read_sentences(plain)] == ["a", "b"]
    short = lines(tmp_path, "short.tsv", "id\ten\tde\nHalo\tHello\tHallo\n")
    assert {one.id for one in read_sentences(short, columns={"id": "id", "en": "en"})} == {"Halo"}


def test_columns_that_do_not_exist_are_named(tmp_path):
    table = lines(tmp_path, "t.tsv", "english\tgerman\nOne\tEins\n")
    with pytest.raises(CorpusError, match=":1: has no column 'germna'"):
        read(table, columns={"english": "en", "germna": "de"})
    mined = lines(tmp_path, "m.tsv", "1.2\tOne\tEins\n")
    with pytest.raises(CorpusError, match="none is called en"):
        read(mined, columns={"en": "en"})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "eng\teng\na\tb\n", ":1: two columns"),
        ("a.tsv", "en\tid\nHello\tHalo\n", ':1: "id" may be ids or Indonesian'),
        ("a.csv", "No,en,de\n1,Hello,Hallo\n", ":2: the column No would be Norwegian, and has ids such as '1'"),
        ("a.jsonl", '{"no": "1", "en": "Hello"}\n', ":1: the column no would be Norwegian, and has ids such as '1'"),
        ("a.jsonl", '{"en": "Hello", "id": "Halo"}\n', ':1: "id" may be ids or Indonesian'),
        ("a.tsv", "eng\tnonsense\na\tb\n", ":1: has the columns eng, nonsense, and 'nonsense' is not a language"),
        ("a.tsv", "text\tlanguage\na\tqqqq\n", ":2: unknown language 'qqqq'"),
        ("a.jsonl", '{"text": 3}\n', ':1: "text" and'),
        ("a.jsonl", '{"id": "x"}\n', ":1: "),
        ("a.jsonl", '{"text": "a", "translation": 3}\n', ':1: "translation" and'),
        ("a.jsonl", '{"eng": "a", "nonsense": "b"}\n', ":1: "),
        ("a.jsonl", '{"text": "a", "id": [1]}\n', ':1: "id" must'),
        ("a.jsonl", '{"text": "a", "language": "xx-nonsense"}\n', ":1: unknown language"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, text, message):
    """What an index expects beyond the readers, whose errors are in tests/data/readers/test_wrong_files.py."""
    path = lines(tmp_path, name, text)
    with pytest.raises(CorpusError) as error:
        list(read_sentences(path))
    assert f"{path}{message}" in str(error.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [("nothing=x.txt", "'nothing' is not a lang"), ("deu=x.txt", "no such file"), ("de,en=a.txt", "one language")],
)
def test_a_source_is_a_file_with_one_language_or_none(tmp_path, monkeypatch, source, message):
    lines(tmp_path, "a.txt", "eins\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorpusError, match=message):
        list(read_sentences(source))


def test_a_translation_memory_is_read_by_units(tmp_path):
    seg = "<tuv xml:lang='{}'><seg>{}</seg></tuv>".format
    units = [[("de", "Hallo"), ("en-GB", "Hello"), ("ko", "안녕")], [("de", "Ja"), ("de", "Jawohl")], [("en", "Alone")]]
    keys = [" tuid='greeting'", "", ""]
    body = "".join(f"<tu{key}>{''.join(seg(*one) for one in unit)}</tu>" for key, unit in zip(keys, units, strict=True))
    path = lines(tmp_path, "memory.TMX", f"<tmx version='1.4'><header/><body>{body}</body></tmx>")
    assert read(path) == [
        Sentence("0", "Hallo", "deu", "Hello", "eng"),
        Sentence("0", "Hello", "eng", "Hallo", "deu"),
        Sentence("0", "안녕", "kor", "Hallo", "deu"),
        Sentence("3", "Ja", "deu", "Jawohl", "deu"),
        Sentence("3", "Jawohl", "deu", "Ja", "deu"),
        Sentence("5", "Alone", "eng"),
    ]
    assert [one.id for one in read_sentences(path)][:3] == ["greeting"] * 3


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20).map(str.strip)


@pytest.mark.parametrize("name", ["x.tmx", "x.xlsx"])  # no sentence has a translation; another format
def test_an_export_that_cannot_be(tmp_path, toy_static, name):
    with pytest.raises(OutputError, match=name):
        Index.build(toy_static, ["a cat", "a dog"]).export(tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("name", ["m.tsv", "m.jsonl", "m.tmx", "m.parquet", "m.de-en"])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(TEXT, TEXT).filter(all), min_size=1, max_size=4))
def test_what_mine_writes_can_be_indexed(tmp_path, name, ids, pairs):
    """In every format and with every text, the two sides of a pair with each other as translations."""
    mined = [MinedPair(1.5 - at, *pair, f"s{at}", f"t{at}") for at, pair in enumerate(pairs)]
    path = tmp_path / name
    formats.write(path, formats.format_of(path), mined, languages=("de", "en"), ids=ids)
    mine = [(one.text, one.language, one.translation, one.translation_language)
            for one in read_sentences(f"de,en={path}")]  # fmt: skip
    clean = (lambda text: " ".join(re.split("[ \t\r\n]+", text))) if name.endswith("tmx") else str
    expected = [(clean(a), clean(b)) for a, b in pairs]
    assert mine == [row for a, b in expected for row in ((a, "deu", b, "eng"), (b, "eng", a, "deu"))]


@pytest.mark.parametrize("name", ["x.tsv", "x.jsonl", "x.parquet"])
def test_what_is_exported_can_be_indexed_again(index, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    sentences = [
        Sentence("a", "Hallo", "deu", "Hello", "eng"),
        Sentence("b", "Hello <&", "eng", "Hallo", "und"),
        Sentence("c", "Alone", "und"),
    ]
    index.add(sentences)
    assert index.export(tmp_path / name) == 3
    assert list(read_sentences(str(tmp_path / name))) == sentences


def test_an_exported_memory_has_each_pair_once(index, tmp_path):
    index.add([
        Sentence("a", "Hallo\tdu", "deu", "Hello", "eng"),
        Sentence("b", "Hello", "eng", "Hallo\tdu", "deu"),
        Sentence("c", "Alone", "und"),
        Sentence("d", "안녕", "kor", "<Hi> & \x01bye", "und"),
    ])  # fmt: skip
    assert index.export(tmp_path / "x.tmx") == 2
    found = [(group.key, group.texts, group.langs) for group in read_tmx(tmp_path / "x.tmx", keep_ids=True)]
    assert found == [("a", ("Hallo du", "Hello"), ("deu", "eng")), ("d", ("안녕", "<Hi> & bye"), ("kor", "und"))]
    index.update([Sentence("a", "Hallo", "deu", "Hello", "eng"), Sentence("a", "Hello", "eng", "Hallo", "deu")])
    index.export(tmp_path / "y.tmx")
    assert [group.texts for group in read_tmx(tmp_path / "y.tmx")][1:] == [("안녕", "<Hi> & bye"), ("Hallo", "Hello")]


@pytest.fixture
def index(tmp_path, toy_static):
    with Index.create(tmp_path / "i", Origin.of(toy_static, "toy", query_prompt="cat "), model=toy_static) as made:
        yield made


def some(texts=SENTENCES):
    return [Sentence(f"s{number}", text) for number, text in enumerate(texts)]


def test_adding_again_adds_only_what_is_new(index):
    assert index.add(some()[:4]).new == 4
    added = index.add([*some(), *some()[-2:]])
    assert (added.new, added.known, len(index)) == (6, 6, 10)
    with pytest.raises(SearchError, match=r"'s1' belongs to 'A dog.*`update`"):
        index.add([Sentence("s1", "Another text")])


def test_queries_have_their_prompt(index, toy_static):
    expected = encode_sentences(toy_static, ["cat dog"])
    np.testing.assert_allclose(encode_queries(toy_static, ["dog"], index.origin), expected, atol=1e-6)
    assert not np.allclose(encode_sentences(toy_static, ["dog"]), expected)


def test_another_model_is_refused(index, toy_tokenizer):
    other = StaticEncoder.create(toy_tokenizer, 8, seed=2)
    with pytest.raises(SearchError, match="is not the model of this index"):
        Index.open(index.folder, other).add(some())
    assert len(index) == 0


@pytest.mark.parametrize("text", ["\0", "a\0b", "😀" * 5000, "\u202eabc\u2066", "x" * 100_000, "\ufffe"])
def test_strange_texts_change_nobody_elses_vector(index, toy_static, text):
    index.add([*some()[:5], Sentence("strange", text), *some()[5:]])
    assert [one.text for one in index.store.by_id(["strange"])["strange"].values()] == [text]
    assert len(index.search(text, 5)) == 5
    kept = [row for row in range(11) if row != 5]
    np.testing.assert_allclose(index.vectors(kept), encode_sentences(toy_static, SENTENCES), atol=1e-6)


def test_export_holds_everything(index, toy_static, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    index.add(some())
    assert index.export(tmp_path / "x.parquet") == 10
    table = parquet.read_table(tmp_path / "x.parquet")
    assert table.column_names == ["id", "text", "language", "vector"]
    assert table["text"].to_pylist() == SENTENCES
    assert table["id"].to_pylist() == [f"s{i}" for i in range(10)]
    assert set(table["language"].to_pylist()) == {"und"}
    assert (np.asarray(table["vector"].to_pylist(), np.float32) == index.vectors(range(10))).all()
    assert table.schema.metadata[b"isoglot.identity"].decode() == index.origin.identity


def test_a_run_that_was_cut_off_is_finished_by_running_it_again(tmp_path, toy_static, monkeypatch):
    monkeypatch.setattr(table, "ROWS", 4)
    everything = some([f"{text} {number}" for number in range(3) for text in SENTENCES])

    def cut_off():
        yield from everything[:21]
        raise KeyboardInterrupt

    origin = Origin.of(toy_static, "toy")
    with Index.create(tmp_path / "cut", origin, kind="hnsw", model=toy_static) as index:
        with pytest.raises(KeyboardInterrupt):
            index.add(cut_off())
        assert len(index) == 20
        assert index.add(everything).new == 10
        found = index.search(index.vectors(range(30)), 3)
    with Index.create(tmp_path / "whole", origin, kind="hnsw", model=toy_static) as index:
        index.add(everything)
        assert index.search(index.vectors(range(30)), 3) == found
    assert (tmp_path / "cut/vectors.npy").read_bytes() == (tmp_path / "whole/vectors.npy").read_bytes()


def test_on_an_accelerator_the_next_piece_is_encoded_while_one_is_stored(monkeypatch):
    begun = {name: threading.Event() for name in ("a", "b", "c")}

    def stub(encoder, texts):
        begun[texts[0]].set()
        if texts == ["c"]:
            raise SearchError("c")
        return texts

    monkeypatch.setattr("isoglot.index.origin.encode_sentences", stub)
    pieces = encode_lists(SimpleNamespace(device=torch.device("meta")), iter([["a"], ["b"], ["c"]]))
    assert next(pieces) == ["a"]
    assert begun["b"].wait(10)
    assert next(pieces) == ["b"]
    assert begun["c"].wait(10)
    with pytest.raises(SearchError, match="c"):
        next(pieces)
