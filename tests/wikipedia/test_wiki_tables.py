"""Titles to entities: redirects, who comes first, labels and types."""

from __future__ import annotations

from contextlib import closing

from isoglot.wikipedia.entities import (
    Entity,
    entity_of,
    find,
    has_types,
    labels_of,
    make_tables,
    open_tables,
    types_of,
)


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
        assert types_of(base, ["Q1", "Q2", "Q9"]) == {"Q1": ("T1", "T2", "T3")}
        assert labels_of(base, ["Q1", "Q2", "Q9"]) == {"Q1": "A", "Q2": "second"}
        assert has_types(base)
    assert [p.name for p in tmp_path.iterdir()] == ["tables.sqlite"]


def test_what_a_killed_run_left_is_written_over(tmp_path):
    path = tmp_path / "tables.sqlite"
    path.with_suffix(".tmp").write_text("half")
    make_tables(path, [Entity("Q1", {"en": "A"})], [])
    with closing(open_tables(path)) as base:
        assert find(base, "en", "A") == "Q1"
        assert not has_types(base)


def test_an_entity_is_one_line_of_json():
    entity = Entity("Q1", {"ja": "猫"}, ("Q2",), "a\nb", english=True)
    assert entity.line().count("\n") == 1
    assert entity_of(entity.line()) == entity
