"""`isoglot index`, `search` and `export` as a user meets them."""

import io
import json
import sys
from pathlib import Path

import pytest
import typer
from command_line import as_function

from index_folder import LINES, make_index
from isoglot.cli.index import _mark_words
from isoglot.cli.index import export as export_verb
from isoglot.cli.index import index as index_verb
from isoglot.cli.index import search as search_verb
from isoglot.core.errors import CorpusError
from isoglot.index import Index, SearchError

export = as_function(export_verb)
search = as_function(search_verb)
index = as_function(index_verb)

pytest.importorskip("faiss")


@pytest.fixture
def folder(tmp_path, toy_static, capsys):
    made = make_index(tmp_path, toy_static)
    capsys.readouterr()
    return made


def lines_of(capsys):
    return capsys.readouterr().out.splitlines()


def test_a_sentence_of_the_index_is_found_first(folder, capsys):
    search(folder, [LINES["ara"][0]], k=3)
    rows = [line.split("\t") for line in lines_of(capsys)]
    assert [row[1] for row in rows] == ["1", "2", "3"]
    assert [*rows[0][:4], *rows[0][5:]] == [LINES["ara"][0], "1", "1.000000", "ara", LINES["ara"][0], ""]


def test_a_search_without_hits_says_so_beside_the_output(folder, capsys):
    for languages in ({"languages": "swa"}, {"exclude": "ara,de,en,tha"}):
        search(folder, ["cat"], **languages)
        out, err = capsys.readouterr()
        assert (out, "no hits for 'cat'" in err) == ("", True)
    search(folder, ["cat"], languages="swa", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"query": "cat", "hits": []}


def test_columns_of_csv_are_translations(tmp_path, toy_static):
    toy_static.save(tmp_path / "model")
    (tmp_path / "a.csv").write_text('source text;german\n"The cat; the dog";Die Katze\n', encoding="utf-8")
    words = [str(tmp_path / "model"), str(tmp_path / "a.csv")]
    index(words, tmp_path / "index", columns="source text=en,german=de")
    with Index.open(tmp_path / "index") as made:
        assert [(hit.text, hit.translation) for hit in made.search("Die Katze", k=1)] == [
            ("Die Katze", "The cat; the dog")
        ]


def test_an_index_is_updated_with_its_own_model(tmp_path, toy_static, capsys):
    toy_static.save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("The cat\n", encoding="utf-8")
    index([str(tmp_path / "model"), str(tmp_path / "a.txt")], tmp_path / "index")
    (tmp_path / "a.txt").write_text("The cat\nThe dog\n", encoding="utf-8")
    index([str(tmp_path / "a.txt")], tmp_path / "index")  # not with the default model
    assert "1 sentences added, 1 already there; 2 in the index" in capsys.readouterr().err


def from_stdin(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_queries_come_from_stdin_and_answers_are_json(folder, capsys, monkeypatch):
    from_stdin(monkeypatch, "cat\r\n\n  \n\u2028dog\n".encode())
    search(folder, [], k=20, languages="de,en", as_json=True)
    found = [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]
    assert [one["query"] for one in found] == ["cat", "\u2028dog"]
    for one in found:
        assert {hit["language"] for hit in one["hits"]} == {"eng", "deu"}
        assert len(one["hits"]) == 5
        scores = [hit["score"] for hit in one["hits"]]
        assert scores == sorted(scores, reverse=True)
    from_stdin(monkeypatch, b"cat\n\xff\n")
    with pytest.raises(CorpusError, match=r"stdin:2: is not UTF-8"):
        search(folder, [])


def test_queries_may_be_objects(folder, capsys, monkeypatch):
    from_stdin(monkeypatch, b'\xef\xbb\xbf{"query": "A dog\\nruns"}\r\nthe cat\n')  # Windows may begin with a BOM
    search(folder, [], k=1, as_json=True)
    assert [json.loads(line)["query"] for line in lines_of(capsys)] == ["A dog\nruns", "the cat"]
    from_stdin(monkeypatch, b'{"query": "A dog"}\n')
    search(folder, [], k=1)
    assert lines_of(capsys)[0].startswith('{"query": "A dog"}\t1\t')  # without --json a line is what it is


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "is not JSON"),
        (b'{"query": 3}', "must be"),
        (b'{"text": "cat"}', "must be"),
        (b'{"query": "cat", "k": 3}', "without other keys"),
        (b'{"query": " "}', "is blank"),
        (b'{"query": "\\ud800"}', "UTF-8"),
        (b"{" + b'"a":[' * 100_000, "is not JSON"),
    ],
)
def test_wrong_objects_are_named_with_their_line(folder, monkeypatch, line, message):
    from_stdin(monkeypatch, b"the cat\n" + line)
    with pytest.raises(CorpusError, match=f"stdin:2: {message}|stdin:2: .*{message}"):
        search(folder, [], as_json=True)


@pytest.mark.parametrize(("query", "message"), [("", "query:2: .*blank"), ("\udcff", "query:2: .* UTF-8")])
def test_queries_that_are_none_are_refused(folder, query, message):
    with pytest.raises(CorpusError, match=message):
        search(folder, ["cat", query])


def test_tabs_and_line_ends_in_a_text_do_not_break_lines(folder, capsys, tmp_path):
    (tmp_path / "more.jsonl").write_text(json.dumps({"text": "a\tb\nc\rd", "id": "odd"}) + "\n")
    index([str(tmp_path / "model"), str(tmp_path / "more.jsonl")], folder)
    capsys.readouterr()
    search(folder, ["a\tb\nc\rd"], k=1)
    assert lines_of(capsys) == ["a b c d\t1\t1.000000\tund\todd\ta b c d\t"]


def test_adding_is_repeatable_and_says_so(folder, capsys, tmp_path):
    sources = [f"{code}={tmp_path / code}.txt" for code in LINES]
    with (tmp_path / "tha.txt").open("a", encoding="utf-8") as stream:
        stream.write("สุนัขวิ่ง\n")
    index([str(tmp_path / "model"), *sources], folder)
    out, err = capsys.readouterr()
    assert out.strip() == str(folder)
    assert "1 sentences added, 8 already there; 9 in the index (flat)" in err
    index([str(tmp_path / "model"), *sources], folder, kind="hnsw")
    assert "0 sentences added, 9 already there; 9 in the index (hnsw, recall@10 1.00)" in capsys.readouterr().err
    for effort, said in (({}, True), ({"effort": 9}, False)):
        search(folder, ["cat"], **effort)
        assert ("hnsw: finds 100% of the ten nearest" in capsys.readouterr().err) is said


MEMORY = "id\teng\tdeu\nu1\tThe cat\tDie Kaze\nu2\tA dog runs\tEin Hund rennt\nu3\tA mat\tEine Matte\n"


def test_entries_are_corrected_and_removed(tmp_path, toy_static, capsys, monkeypatch):
    toy_static.save(tmp_path / "model")
    words = [str(tmp_path / "model"), str(tmp_path / "memory.tsv")]
    for change in (("", ""), ("Kaze", "Katze")):
        (tmp_path / "memory.tsv").write_text(MEMORY.replace(*change), encoding="utf-8")
        index(words, tmp_path / "i")
    assert "0 sentences added, 2 updated, 4 already there; 6 in the index" in capsys.readouterr().err
    search(tmp_path / "i", ["The cat"], k=5, as_json=True)
    (found,) = map(json.loads, lines_of(capsys))
    first, *_ = found["hits"]
    assert len(found["hits"]) == 3
    assert [first[name] for name in ("id", "translation", "percent", "count")] == ["u1", "Die Katze", 100, 1]
    with pytest.raises(SearchError, match="contains no entry with the id 'u9'; nothing was deleted"):
        index(None, tmp_path / "i", remove=["u1", "u9"])
    (tmp_path / "ids.txt").write_text("u3\n\n")
    index(None, tmp_path / "i", remove=["u1"], remove_file=tmp_path / "ids.txt")
    assert "4 sentences removed; 2 in the index (flat)" in capsys.readouterr().err
    from_stdin(monkeypatch, b"u2\n")
    index(None, tmp_path / "i", remove_file=Path("-"))
    assert "2 sentences removed; 0 in the index (flat)" in capsys.readouterr().err
    with pytest.raises(typer.BadParameter):
        index(None, tmp_path / "i")


def test_files_with_running_numbers_as_ids(tmp_path, toy_static):
    toy_static.save(tmp_path / "model")
    for name, text in (("a", "The cat"), ("b", "A dog")):
        (tmp_path / f"{name}.tsv").write_text(f"id\ttext\n1\t{text}\n2\t{text} runs\n")
    words = [str(tmp_path / "model"), str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")]
    with pytest.raises(SearchError, match=r"'1' belongs to 'The cat' \(und\) and to 'A dog' .*--content-ids"):
        index(words, tmp_path / "i")
    index(words, tmp_path / "j", content_ids=True)
    with Index.open(tmp_path / "j") as made:
        assert len(made) == 4


@pytest.mark.parametrize(
    ("query", "sides", "marked"),
    [
        ("The CAT sat.", ("the cat", "die Katze"), ["the", "cat"]),
        ("Katze in Berlin", ("a cat in Berlin", "die Katze in Berlin"), ["Katze", "in", "Berlin"]),
        ("Straße", ("STRASSE!", ""), ["STRASSE"]),
        ("x", ("the cat", "die Katze"), []),
    ],
)
def test_words_of_the_query_are_mark_words_in_the_side_of_its_language(query, sides, marked):
    texts = _mark_words(query, *sides)
    assert [text.plain for text in texts] == [*sides]
    assert [text.plain[span.start : span.end] for text in texts for span in text.spans] == marked


def test_a_terminal_shows_percentages_and_how_often(tmp_path, toy_static, capsys, monkeypatch):
    (tmp_path / "a.tsv").write_text("id\ttext\nu1\tThe cat\nu2\tThe cat\n")
    toy_static.save(tmp_path / "model")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    search(tmp_path / "a.tsv", ["The cat"], model=str(tmp_path / "model"))
    shown = capsys.readouterr().out
    assert "match" in shown
    assert "100 %" in shown
    assert "u1 (2 times)" in shown
