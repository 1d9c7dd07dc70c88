"""Entities from Wikidata and from tables."""

from __future__ import annotations

import gzip
import json

import pytest
from wiki_dumps import names

from isoglot.errors import CorpusError
from isoglot.wikipedia.entities import Entity, entity_lines, entity_of, title_rows, type_rows, wikidata_lines

WIKIS = {"en": names("en"), "de": names("de")}


def item(name, links, types=(), labels=None):
    claims = [{"mainsnak": {"datavalue": {"value": {"id": kind}}}} for kind in types] + [{"mainsnak": {}}]
    sites = {site: {"site": site, "title": title} for site, title in links.items()}
    labels = {"en": {"value": "wrong label"}} | (labels or {})
    return json.dumps({"id": name, "labels": labels, "sitelinks": sites or [], "claims": {"P31": claims}})


ITEMS = [
    item("Q1", {"enwiki": "Apple", "dewiki": "Apfel", "frwiki": "Pomme"}, ["Q10", "Q11", "Q10"]),
    item("Q2", {"frwiki": "Poire"}, ["Q10"]),
    item("Q3", {"dewiki": "Birne", "enwikiquote": "Pear"}),
    item("Q4", {}),
]


def entities(path):
    remarks = []
    lines = list(wikidata_lines(path, remarks.append))
    return [entity_of(line) for line in entity_lines(lines, WIKIS)], remarks


@pytest.mark.parametrize("end", ["\n]\n", ",\n", "\n", ""])
def test_titles_are_sitelinks_and_all_types_are_kept(tmp_path, end):
    path = tmp_path / "d.json"
    path.write_text("[\n" + ",\n".join(ITEMS) + end)
    assert entities(path) == (
        [
            Entity("Q1", {"en": "Apple", "de": "Apfel"}, ("Q10", "Q11"), "Apple", english=True),
            Entity("Q3", {"de": "Birne"}, (), "Birne"),
        ],
        [],
    )


def test_a_dump_that_is_cut(tmp_path):
    path = tmp_path / "d.json"
    path.write_text("[\n" + ITEMS[0] + ",\n" + ITEMS[2][:-20])
    found, remarks = entities(path)
    assert [entity.id for entity in found] == ["Q1"]
    assert remarks == [f"{path}:3: ends inside an entity; the complete part was read"]
    packed = gzip.compress("\n".join(["[", *(line + "," for line in ITEMS * 6000)]).encode(), 1)
    path.write_bytes(packed[: len(packed) // 2])
    found, remarks = entities(path)
    assert 1000 < len(found) < 12_000
    assert len(remarks) == 1
    assert "compressed data end too early" in remarks[0]


@pytest.mark.parametrize(
    "text, words",
    [
        ("<xml>\n", "d.json:1: not a Wikidata JSON dump: '<xml>'"),
        ("[\n]\n", "d.json: "),
        ("{broken\n", "d.json: "),
        (f'[\n{ITEMS[0]},\n"enwiki",\n{ITEMS[2]}\n]', "d.json:3: "),
    ],
)
def test_what_is_no_wikidata(tmp_path, text, words):
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(CorpusError) as caught:
        entities(path)
    assert words in str(caught.value)


def test_tables_of_titles_and_types(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("eng\tnew_York#x\tNY\nde-AT\tNew York\tNY\nfr\tNew York\tNY\nsimple\tYork\tY\n\n")
    assert list(title_rows(path, {"de": names("de")})) == [
        Entity("NY", {}, (), "new_York#x", english=True),
        Entity("NY", {"de": "New York"}, (), "New York"),
    ]
    assert [entity.titles for entity in title_rows(path, {"en": names("en")})] == [{"en": "New York"}]
    path.write_text("NY\tcity state\nY\tcity,town\ttown\n")
    assert [(e.id, e.types) for e in type_rows(path)] == [("NY", ("city", "state")), ("Y", ("city", "town", "town"))]


@pytest.mark.parametrize(
    "read, text, words",
    [
        (title_rows, "en\tA\n", "t.tsv:1: a line must be: language, tab, title, tab, id"),
        (title_rows, "en\tA\tQ1\n\nen\t\tQ2\n", "t.tsv:3: a line must be"),
        (title_rows, "nonsense\tA\tQ1\n", "t.tsv:1: unknown language 'nonsense'"),
        (lambda path, _: type_rows(path), "Q1\n", "t.tsv:1: a line must be: id, tab, ids of its types"),
    ],
)
def test_wrong_rows(tmp_path, read, text, words):
    path = tmp_path / "t.tsv"
    path.write_text(text)
    with pytest.raises(CorpusError) as caught:
        list(read(path, WIKIS))
    assert words in str(caught.value)
