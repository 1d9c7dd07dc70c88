"""scripts/methods.py: the files that it makes, and a split of the sentences with links that was interrupted."""

import json
from pathlib import Path

import pytest

from conftest import load_script
from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.readers.entities import SENTENCES
from isoglot.data.readers.jsonl import write_jsonl
from isoglot.training.sweep import parse_design
from isoglot.wikipedia.wikitext import Paragraph


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    return load_script("methods")


def design(data):
    """A design of one arm, whose column is scored on `data`."""
    column = {"name": "linked", "task": "linked", "subset": "mean", "metric": "accuracy", "data": data}
    return parse_design({"arms": [{"name": "m", "model": "isoglot-small"}], "columns": [column]})


@pytest.mark.parametrize("done", [(), ("wikipedia-test",)])
def test_an_interrupted_split_is_made_again(script, monkeypatch, tmp_path, done):
    for name in done:
        (tmp_path / name).mkdir()
        (tmp_path / name / SENTENCES).touch()
    calls = []
    monkeypatch.setattr(script, "link_sentences", lambda *arguments: calls.append(arguments))
    script.prepare(design("wikipedia"), tmp_path / "data", tmp_path)
    assert calls == [(tmp_path / "data", tmp_path, "wikipedia")]


def test_sentences_without_their_test_are_an_error(script, tmp_path):
    (tmp_path / "wikipedia").mkdir()
    (tmp_path / "wikipedia" / SENTENCES).touch()
    with pytest.raises(CorpusError, match="no test sentences"):
        script.prepare(design("wikipedia-test"), tmp_path / "data", tmp_path)


@pytest.mark.parametrize("name", ["wikipedia-shuffled", "wikipedia-shuffled-within"])
def test_shuffled_entities_are_those_of_other_sentences(script, tmp_path, name):
    whole = tmp_path / "wikipedia"
    items = [{"text": str(n), "lang": "ab"[n % 2], "entity": f"E{n}", "hard": [n]} for n in range(40)]
    whole.mkdir()
    (whole / script.TABLE).write_text("table")
    (whole / SENTENCES).write_text("".join(json.dumps(item) + "\n" for item in items))
    script.make(Path(name), tmp_path / "data", tmp_path)
    shuffled = [json.loads(line) for line in (tmp_path / name / SENTENCES).read_text().splitlines()]
    assert [(item["text"], item["lang"]) for item in shuffled] == [(item["text"], item["lang"]) for item in items]
    assert sorted(item["entity"] for item in shuffled) == sorted(item["entity"] for item in items)
    assert all(item["entity"] == f"E{item['hard'][0]}" for item in shuffled)
    assert sum(item["entity"] == f"E{item['text']}" for item in shuffled) < 8
    same = sum("ab"[item["hard"][0] % 2] == item["lang"] for item in shuffled)
    assert same == 40 if name.endswith("within") else 10 < same < 30


def test_pairs_have_the_first_sentence_of_each_language(script):
    groups = [
        Group(("a", "b", "c", "d"), ("rus", "fra", "eng", "fra"), key="1"),
        Group(("e", "f"), ("fra", "eng"), key="2"),
    ]
    assert [*script.pair_languages(groups, "fra", "rus")] == [Group(("b", "a"), ("fra", "rus"), key="1")]


def test_names_of_more_entities_come_after_those_of_territories(script, tmp_path):
    for locale, kind, names in (
        ("it", "territories", {"IT": "Italia", "EU": "Unione europea"}),
        ("it", "languages", {"it": "italiano", "it-alt-menu": "lingua  italiana", "xx": "xx"}),
        ("zh-Hant", "languages", {"it": "義大利文"}),
    ):
        path = tmp_path / f"cldr-names/main/{locale}/{kind}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"main": {locale: {"localeDisplayNames": {kind: names}}}}), encoding="utf-8")
    write_jsonl(tmp_path / "cldr-annotations/groups.jsonl.xz", [Group(("dog", "Hund"), ("eng", "deu"))])
    territory = ("it", "Italia", "IT", "territory")
    assert [*script.name_rows(tmp_path, more=False)] == [territory]
    assert [*script.name_rows(tmp_path, more=True)] == [
        territory,
        ("it", "italiano", "language-it", "language"),
        ("it", "lingua italiana", "language-it", "language"),
        ("zh", "義大利文", "language-it", "language"),
        ("eng", "dog", "emoji-0", "emoji"),
        ("deu", "Hund", "emoji-0", "emoji"),
    ]


def test_the_first_sentence_of_a_page_is_none_of_a_table(script):
    cell = Paragraph("|- a cell of a table that is long enough || b", ())
    text = Paragraph("Too short. Italy is a country in the south of Europe. It has Alps.", ())
    assert script.first_sentence([cell, text], "en") == ["Italy is a country in the south of Europe."]
    assert script.first_sentence([], "en") == []
