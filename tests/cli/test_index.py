"""`isoglot index`, `search` and `export` as a user meets them."""

from __future__ import annotations

import io
import json
import sys

import pytest
from index_folder import LINES, make_index

from isoglot.cli import index as verb
from isoglot.cli import search
from isoglot.encoders import StaticEncoder
from isoglot.errors import CorpusError
from isoglot.index import Index, SearchError

pytest.importorskip("faiss")


@pytest.fixture
def folder(tmp_path, toy_static):
    return make_index(tmp_path, toy_static)


def lines_of(capsys):
    return capsys.readouterr().out.splitlines()


def test_a_sentence_of_the_index_is_found_first(folder, capsys):
    capsys.readouterr()
    search.run(folder, [LINES["ara"][0]], k=3)
    rows = [line.split("\t") for line in lines_of(capsys)]
    assert [row[1] for row in rows] == ["1", "2", "3"]
    assert rows[0] == [LINES["ara"][0], "1", "1.000000", "ara", f"{folder.parent / 'ara.txt'}:1", LINES["ara"][0]]


def test_queries_come_from_stdin_and_answers_are_json(folder, capsys, monkeypatch):
    capsys.readouterr()
    stdin = io.TextIOWrapper(io.BytesIO("cat\r\n\n  \n\u2028dog\n".encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    search.run(folder, [], k=20, languages=["de", "en"], as_json=True)
    found = [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]
    assert [one["query"] for one in found] == ["cat", "\u2028dog"]
    for one in found:
        assert {hit["language"] for hit in one["hits"]} == {"eng", "deu"}
        assert len(one["hits"]) == 5
        scores = [hit["score"] for hit in one["hits"]]
        assert scores == sorted(scores, reverse=True)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"cat\n\xff\n")))
    with pytest.raises(CorpusError, match=r"stdin:2: is not UTF-8"):
        search.run(folder, [])


def test_tabs_and_line_ends_in_a_text_do_not_break_lines(folder, capsys, tmp_path):
    (tmp_path / "more.jsonl").write_text(json.dumps({"text": "a\tb\nc\rd", "id": "odd"}) + "\n")
    verb.run(str(tmp_path / "model"), [str(tmp_path / "more.jsonl")], folder)
    capsys.readouterr()
    search.run(folder, ["a\tb\nc\rd"], k=1)
    assert lines_of(capsys) == ["a b c d\t1\t1.000000\tund\todd\ta b c d"]


def test_adding_is_repeatable_and_says_so(folder, capsys, tmp_path):
    sources = [f"{code}={tmp_path / code}.txt" for code in LINES]
    with (tmp_path / "tha.txt").open("a", encoding="utf-8") as stream:
        stream.write("สุนัขวิ่ง\n")
    capsys.readouterr()
    verb.run(str(tmp_path / "model"), sources, folder)
    out, err = capsys.readouterr()
    assert out.strip() == str(folder)
    assert "1 sentences added, 8 were there; 9 in the index (flat)" in err
    verb.run(str(tmp_path / "model"), sources, folder, kind="hnsw")
    assert "0 sentences added, 9 were there; 9 in the index (hnsw)" in capsys.readouterr().err


def test_another_model_or_another_prompt_is_refused(folder, tmp_path, toy_tokenizer):
    StaticEncoder.create(toy_tokenizer, 8, seed=5).save(tmp_path / "other")
    source = str(tmp_path / "eng.txt")
    with pytest.raises(SearchError, match="is not the model of this index"):
        verb.run(str(tmp_path / "other"), [source], folder)
    with pytest.raises(SearchError, match="is not the model of this index"):
        search.run(folder, ["cat"], model=str(tmp_path / "other"))
    with pytest.raises(SearchError, match="made with --prompt None, not 'x'"):
        verb.run(str(tmp_path / "model"), [source], folder, prompt="x")
    (tmp_path / "model").rename(tmp_path / "moved")
    search.run(folder, ["cat"], model=str(tmp_path / "moved"))


def test_prompts_are_remembered(tmp_path, toy_static, capsys):
    toy_static.save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("The cat\n")
    where = (str(tmp_path / "model"), [str(tmp_path / "a.txt")], tmp_path / "i")
    verb.run(*where, prompt="A dog ", query_prompt="A dog runs ")
    verb.run(*where)
    assert "0 sentences added, 1 were there" in capsys.readouterr().err
    search.run(tmp_path / "i", ["The cat"])
    assert float(lines_of(capsys)[0].split("\t")[2]) < 0.9999
    with Index.open(tmp_path / "i") as index:
        assert (index.origin.prompt, index.origin.query_prompt) == ("A dog ", "A dog runs ")


@pytest.mark.parametrize(
    ("options", "message"), [({"kind": "nonsense"}, "FAISS knows no"), ({"language": "qqqq"}, "unknown language")]
)
def test_wrong_options_make_nothing(tmp_path, toy_static, options, message):
    toy_static.save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("The cat\n")
    with pytest.raises((SearchError, CorpusError), match=message):
        verb.run(str(tmp_path / "model"), [str(tmp_path / "a.txt")], tmp_path / "i", **options)
    assert not (tmp_path / "i").exists()


def test_export_writes_every_row(folder, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    verb.export(folder, tmp_path / "out.parquet")
    assert "8 sentences" in capsys.readouterr().err
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table["text"].to_pylist() == [text for lines in LINES.values() for text in lines]
