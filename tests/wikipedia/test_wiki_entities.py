"""Entities from Wikidata and from tables, and the file that finds them: redirects, who comes first, labels, types."""

import gzip
import json
from contextlib import closing

import pytest
from wiki_dumps import names

from conftest import published
from isoglot.core.errors import CorpusError
from isoglot.wikipedia.entities import (
    Entity,
    entity_lines,
    find,
    find_labels,
    find_types,
    has_types,
    make_tables,
    open_tables,
    read_entity,
    title_rows,
    type_rows,
    wikidata_lines,
)
from isoglot.wikipedia.titles import Names

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
    warnings = []
    lines = list(wikidata_lines(path, warnings.append))
    return [read_entity(line) for line in entity_lines(lines, path, WIKIS)], warnings


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


def test_wikipedias_that_wikidata_calls_by_another_name():
    line = json.dumps({"id": "Q1", "sitelinks": {"be_x_oldwiki": {"title": "A"}, "zh_min_nanwiki": {"title": "B"}}})
    wikis = {code: Names(code, {}) for code in ("be-tarask", "zh-min-nan")}
    [entity] = map(read_entity, entity_lines([(1, line)], "dump", wikis))
    assert entity.titles == {"be-tarask": "A", "zh-min-nan": "B"}


def test_a_dump_that_is_cut(tmp_path):
    path = tmp_path / "d.json"
    path.write_text("[\n" + ITEMS[0] + ",\n" + ITEMS[2][:-20])
    found, warnings = entities(path)
    assert [entity.id for entity in found] == ["Q1"]
    assert warnings == [f"{path}:3: ends inside an entity; the complete part was read"]
    packed = gzip.compress("\n".join(["[", *(line + "," for line in ITEMS * 6000)]).encode(), 1)
    path.write_bytes(packed[: len(packed) // 2])
    found, warnings = entities(path)
    assert 1000 < len(found) < 12_000
    assert len(warnings) == 1
    assert "compressed data end too early" in warnings[0]


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
        (entities, "<xml>\n", "table:1: not a Wikidata JSON dump: '<xml>'"),
        (entities, "[\n]\n", "table: "),
        (entities, "{broken\n", "table: "),
        (entities, f'[\n{ITEMS[0]},\n"enwiki",\n{ITEMS[2]}\n]', "table:3: "),
        (lambda path: title_rows(path, WIKIS), "en\tA\n", "table:1: a line must be: language, tab, title, tab, id"),
        (lambda path: title_rows(path, WIKIS), "en\tA\tQ1\n\nen\t\tQ2\n", "table:3: a line must be"),
        (lambda path: title_rows(path, WIKIS), "nonsense\tA\tQ1\n", "table:1: unknown language 'nonsense'"),
        (type_rows, "Q1\n", "table:1: a line must be: id, tab, ids of its types"),
    ],
)
def test_wrong_files_name_the_line(tmp_path, read, text, words):
    path = tmp_path / "table"
    path.write_text(text)
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert words in str(caught.value)


def test_titles_redirects_labels_and_types(tmp_path):
    entities = [
        Entity("Q1", {"en": "A", "de": "Ä"}, ("T1", "T2"), "Ä"),
        Entity("Q2", {"en": "A"}, (), "second"),
        Entity("Q1", {}, ("T2", "T3"), "A", english=True),
        Entity("Q3", {"en": "R"}, (), "R"),
    ]
    redirects = [("en", *pair) for pair in [("B", "A"), ("C", "B"), ("D", "E"), ("E", "D"), ("F", "none"), ("R", "A")]]
    path = tmp_path / "tables.sqlite"
    make_tables(path, entities, redirects)
    with closing(open_tables(path)) as base:
        found = {title: find(base, "en", title) for title in "ABCDEFRX"}
        assert found == {"A": "Q1", "B": "Q1", "C": "Q1", "D": None, "E": None, "F": None, "R": "Q1", "X": None}
        assert find(base, "de", "Ä") == "Q1"
        assert find(base, "de", "A") is None
        assert find_types(base, ["Q1", "Q2", "Q9"]) == {"Q1": ("T1", "T2", "T3")}
        assert find_labels(base, ["Q1", "Q2", "Q9"]) == {"Q1": "A", "Q2": "second"}
        assert has_types(base)
    assert [p.name for p in tmp_path.iterdir()] == ["tables.sqlite"]


@pytest.mark.slow
@pytest.mark.data
def test_entities_of_the_wikidata_sample():
    path = published("wikidata-entities/entities")
    warnings: list[str] = []
    lines = list(wikidata_lines(path, warnings.append))
    wikis = {wiki: Names(wiki, {}) for wiki in ("ja", "en")}
    found = {one.id: one for one in map(read_entity, entity_lines(lines, path, wikis))}
    assert (len(lines), warnings) == (49, [])
    assert sum(bool(one.types) for one in found.values()) == 40
    assert found["Q64"].titles == {"ja": "ベルリン", "en": "Berlin"}
    assert found["Q64"].types[:2] == ("Q1901835", "Q200250")
