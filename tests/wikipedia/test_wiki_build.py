"""The whole way from dumps to sentences, on a small world: what is written, switches, processes, killed runs."""

import json
import os
import signal
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
from killed import tree
from wiki_dumps import page, write
from wiki_world import FOREIGN, IDS, KINDS, make, world

from isoglot.core.errors import CorpusError, IsoglotError, RecipeError
from isoglot.data.readers.entities import read_entities
from isoglot.wikipedia import Choice, Limits, Sources, build
from oracle import hard_negatives_allowed

pytest.importorskip("mwparserfromhell", reason="needs the extra `wikipedia`")
pytest.importorskip("sentencex", reason="needs the extra `wikipedia`")

MODULE = sys.modules["isoglot.wikipedia.build"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The sources, and what the defaults make of them."""
    folder = tmp_path_factory.mktemp("world")
    sources = world(folder)
    return sources, folder, make(sources, folder / "out")


def marks(title):
    """How the world writes links to a title."""
    return [f"[[{lead}{title}{end}" for lead in ("", "r ", "R ") for end in "]|"]


def test_rows_are_true(made):
    _, folder, (rows, entities, report) = made
    titles = {wiki: {IDS[name]: title for name, title in named.items()} for wiki, named in FOREIGN.items()}
    counts = {name: int(count) for name, count, _ in entities}
    assert {row["lang"] for row in rows} == {"eng", "jpn"}
    for row in rows:
        assert list(row) == ["text", "lang", "entity", "hard", "page", "start", "end"]
        surface, wiki = row["text"][row["start"] : row["end"]], {"eng": "en", "jpn": "ja"}[row["lang"]]
        title = titles[wiki][row["entity"]]
        assert surface in (title, title[0].lower() + title[1:], f"r {title}", f"R {title}", "その名前")
        assert row["page"] in FOREIGN[wiki].values()
        assert "{" not in row["text"]
        assert "[" not in row["text"]
        assert row["text"].count("。") + row["text"].count(".") == 1
    assert set(counts) == {name for row in rows for name in [row["entity"], *row["hard"]]}
    assert [int(count) for _, count, _ in entities] == sorted(counts.values(), reverse=True)
    assert all(count > 3 for count in counts.values())
    assert {name: label for name, _, label in entities}.items() <= {IDS[name]: name for name in IDS}.items()
    assert json.loads((folder / "out" / "report.json").read_text()) == report
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".")) == []


def test_the_reader_takes_the_folder(made):
    _, folder, (rows, entities, _) = made
    groups = list(read_entities(folder / "out"))
    assert [group.texts for group in groups] == [(row["text"],) for row in rows]
    assert [entities[int(group.extras["entity"])][0] for group in groups] == [row["entity"] for row in rows]
    for group, row in zip(groups, rows, strict=True):
        assert entities[group.extras["hard_entities"][0]][0] in row["hard"]


def test_counts_are_all_links_of_all_dumps(made):
    """Each linked occurrence in running text, through redirects, on every article."""
    sources, _, (_, entities, report) = made
    texts = [Path(name).read_text(encoding="utf-8") for name in sources.dumps]
    counts = Counter()
    for text, named in zip(texts, FOREIGN.values(), strict=True):
        text = text.replace("[[Town 1]]</text>", "")  # of the talk page
        for name, title in named.items():
            counts[IDS[name]] += sum(text.count(mark) for mark in marks(title))
    assert {name: int(count) for name, count, _ in entities}.items() <= counts.items()
    en = report["dumps"][0]
    assert (en["pages"], en["redirects"], en["others"], en["articles"]) == (67, 24, 1, 42)
    assert sum(dump["links to an entity"] for dump in report["dumps"]) == sum(counts.values())


def test_hard_negatives_keep_to_the_rule(made):
    sources, _, (rows, _, _) = made
    linked = pages_linked(sources)
    for row in rows:
        allowed = hard_negatives_allowed(row["entity"], KINDS, linked[row["lang"], row["page"]])
        assert row["hard"]
        assert any(set(row["hard"]) <= one for one in allowed)
    shared = {}
    for row in rows:  # drawn once an entity: what one page leaves out another may have, but nothing else
        shared.setdefault(row["entity"], set()).update(row["hard"])
    assert all(len(found) <= 10 for found in shared.values())


def pages_linked(sources):
    """What each page links, by reading the markup with nothing but `find`."""
    linked = {}
    for file, (wiki, named) in zip(sources.dumps, FOREIGN.items(), strict=True):
        for part in Path(file).read_text(encoding="utf-8").split("<page>")[1:]:
            title, text = part.split("<title>")[1].split("</title>")[0], part.split("<text")[1]
            found = {IDS[name] for name, t in named.items() if any(mark in text for mark in marks(t))}
            linked[{"en": "eng", "ja": "jpn"}[wiki], title] = found
    return linked


def test_tables_give_the_same_as_wikidata(made, tmp_path):
    sources, folder, (rows, entities, _) = made
    tables = replace(sources, wikidata=None, titles=folder / "titles.tsv", types=folder / "types.tsv")
    assert make(tables, tmp_path / "out")[:2] == (rows, entities)


def test_without_types_there_are_no_hard_negatives_and_nothing_is_dropped(made, tmp_path):
    sources, folder, (rows, _, report) = made
    bare = replace(sources, wikidata=None, titles=folder / "titles.tsv")
    found, entities, _ = make(bare, tmp_path / "out")
    assert all(row["hard"] == [] for row in found)
    lonely = sum(counts.get("without hard negative", 0) for counts in report["instances"].values())
    assert len(found) == len(rows) + lonely
    assert {name for name, _, _ in entities} == {row["entity"] for row in found}


def test_switches(made, tmp_path):
    sources, _, (rows, entities, report) = made

    def count(choice, name):
        return make(sources, tmp_path / name, choice=choice)

    lonely = sum(counts.get("without hard negative", 0) for counts in report["instances"].values())
    assert len(count(Choice(min_links=3, keep_lonely=True), "lonely")[0]) == len(rows) + lonely
    everywhere = count(Choice(min_links=3, all_pages=True), "pages")[0]
    assert {row["page"] for row in everywhere} > {row["page"] for row in rows}
    assert any(row["page"].startswith("Other") for row in everywhere)
    english = count(Choice(min_links=3, count_language="eng"), "english")[1]
    assert sum(int(n) for _, n, _ in english) < sum(int(n) for _, n, _ in entities)
    assert count(Choice(min_links=10_000), "none")[0] == []
    few = [row["hard"] for row in count(Choice(min_links=3, candidates=2), "two")[0]]
    assert max(map(len, few)) == 2
    assert count(Choice(min_links=3, seed=1), "seed")[0] != rows
    wide = make(replace(sources, limits=Limits(45, 500)), tmp_path / "wide")[0]
    assert 0 < len(wide) < len(rows)


def test_caps(made, tmp_path):
    sources, _, (rows, _, _) = made
    capped = make(sources, tmp_path / "share", choice=Choice(min_links=3, share=2))[0]
    most = Counter((row["lang"], row["entity"]) for row in rows)
    found = Counter((row["lang"], row["entity"]) for row in capped)
    assert found == {key: min(2, count) for key, count in most.items()}
    sampled = make(sources, tmp_path / "size", choice=Choice(min_links=3, size=7))[0]
    assert Counter(row["lang"] for row in sampled) == {"eng": 7, "jpn": 7}
    assert all(row in rows for row in [*capped, *sampled])


def test_a_dump_that_is_named_twice_gives_each_sentence_once(made, tmp_path):
    sources = made[0]
    twice = replace(sources, dumps=(*sources.dumps, sources.dumps[0]))
    found = make(twice, tmp_path / "out", choice=Choice(min_links=6, all_pages=True))[0]
    once = make(sources, tmp_path / "one", choice=Choice(min_links=0, all_pages=True))[0]
    keys = [(row["lang"], row["page"], row["text"], row["start"]) for row in found]
    assert len(set(keys)) == len(keys)
    assert set(keys) <= {(row["lang"], row["page"], row["text"], row["start"]) for row in once}


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(made, tmp_path):
    sources, folder, _ = made
    make(sources, tmp_path / "out", workers=2)
    assert tree(tmp_path / "out") == tree(folder / "out")


def victim(sources, folder, words, when):
    """Kills itself as soon as it is told of so much of a pass."""

    def progress(name, done, _total):
        if name == words and done >= when:
            os.kill(os.getpid(), signal.SIGKILL)

    make(sources, folder / "again", progress=progress)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the victim is a fork of this process")
@pytest.mark.slow
def test_killed_at_any_pass_it_goes_on_and_writes_the_same_bytes(made, tmp_path, monkeypatch):
    sources, folder, _ = made
    monkeypatch.setattr(MODULE, "write_shards", partial(MODULE.write_shards, size=8))
    moments = [("redirects", 1), ("entities", 8), ("tables", 0), ("articles", 20), ("articles", 60)]
    for words, when in [*moments, ("writing the sentences", 0)]:
        process = get_context("fork").Process(target=victim, args=(sources, tmp_path, words, when))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (tmp_path / "again").exists()
    monkeypatch.setattr(MODULE, "read_articles", lambda *_, **__: pytest.fail("every article was read before"))
    make(sources, tmp_path / "again")
    assert tree(tmp_path / "again") == tree(folder / "out")


def test_other_settings_of_the_choice_read_no_article_again(made, tmp_path, monkeypatch):
    sources, folder, _ = made
    monkeypatch.setattr(MODULE, "read_articles", lambda *_, **__: pytest.fail("read"))
    build(sources, tmp_path / "out", work=folder / "work", choice=Choice(min_links=5, seed=9))


def test_a_cut_dump_is_a_warning_also_when_resumed(made, tmp_path):
    sources, folder, _ = made
    text = Path(sources.dumps[0]).read_text()
    (tmp_path / "cut.xml").write_text(text[: len(text) * 3 // 4])
    wikidata = (folder / "wikidata.json").read_text()
    (tmp_path / "cut.json").write_text(wikidata[: len(wikidata) * 3 // 4])
    cut = Sources((str(tmp_path / "cut.xml"),), wikidata=tmp_path / "cut.json")
    for name in ("one", "two"):
        told = []
        report = build(cut, tmp_path / name, work=tmp_path / "work", report=told.append)
        assert len(told) == 2
        assert told == report["warnings"]
        assert "the XML is cut short" in told[0]
        assert "cut.json:" in told[1]


def test_mistakes_are_one_line(made, tmp_path):
    sources, folder, _ = made
    for wrong, error, words in [
        (replace(sources, wikidata=None), RecipeError, r"--wikidata"),
        (replace(sources, titles=folder / "titles.tsv"), RecipeError, "--wikidata.*--titles"),
        (replace(sources, dumps=()), RecipeError, "no dump"),
        (replace(sources, dumps=(str(folder / "titles.tsv"),)), CorpusError, "not well-formed XML"),
        (replace(sources, wikidata=folder / "titles.tsv"), CorpusError, "not a Wikidata JSON dump"),
        (replace(sources, wikidata=folder / "none.json"), CorpusError, "no such file"),
    ]:
        with pytest.raises(error, match=words):
            build(wrong, tmp_path / "out", work=tmp_path / "work")
    with pytest.raises(RecipeError, match=r"count_language: .*'fr'.*: en, ja"):
        build(sources, tmp_path / "out", work=folder / "work", choice=Choice(count_language="fr"))
    assert not (tmp_path / "out").exists()
    with pytest.raises(IsoglotError, match="out: already exists"):
        build(sources, folder / "out", work=tmp_path / "work")


def test_a_missing_library_is_named(made, tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "_PARSERS", ("mwparserfromhell", "no-such-package"))
    with pytest.raises(IsoglotError, match=r'needs no-such-package: pip install "isoglot\[wikipedia\]"'):
        build(made[0], tmp_path / "out", work=tmp_path / "work")


def test_a_redirect_in_one_part_of_a_wikipedia_leads_into_another(tmp_path):
    text = "The [[old name]] lies near the river and the sea."
    old, new = page("Old name", redirect="New name"), page("New name", text)
    parts = [write(tmp_path / "1", old), write(tmp_path / "2", new)]
    (tmp_path / "t.tsv").write_text("en\tNew name\tQ1\n")
    sources = Sources(tuple(map(str, parts)), titles=tmp_path / "t.tsv")
    rows = make(sources, tmp_path / "out", choice=Choice(min_links=0))[0]
    assert [(row["entity"], row["page"], row["start"], row["end"]) for row in rows] == [("Q1", "New name", 4, 12)]


def test_links_in_tables_and_templates_bar_hard_negatives_but_do_not_count(tmp_path):
    text = "The [[a|first]] of them lives near the sea. {{box|[[b]]}}\n{|\n| [[c]]\n|}"
    (tmp_path / "t.tsv").write_text("".join(f"en\t{name}\tQ{name}\n" for name in "ABCD"))
    (tmp_path / "y.tsv").write_text("".join(f"Q{name}\tQ9\n" for name in "ABCD"))
    others = page("X", "Here are [[a]], [[b]], [[c]] and [[d]] in one line.")
    path = write(tmp_path / "dump", page("A", text), others)
    sources = Sources((str(path),), titles=tmp_path / "t.tsv", types=tmp_path / "y.tsv")
    rows, entities, _ = make(sources, tmp_path / "out", choice=Choice(min_links=0))
    assert [(row["entity"], row["hard"]) for row in rows] == [("QA", ["QD"])]
    assert {name: count for name, count, _ in entities} == {"QA": "2", "QD": "1"}


def test_what_is_skipped_is_counted_by_kind_and_reported(tmp_path):
    (tmp_path / "t.tsv").write_text("en\tA\tQ1\n")
    long = page("Long", "The [[a]] lies near the river, they say. " * 1_000)
    texts = [page("A", "The [[a]] lies near the river and the sea."), page("B", "<ref>" * 9_000), long]
    path = write(tmp_path / "dump", *texts)
    messages = []
    sources = Sources((str(path),), titles=tmp_path / "t.tsv")
    rows, _, report = make(sources, tmp_path / "out", choice=Choice(min_links=0), report=messages.append)
    counts = report["dumps"][0]
    assert counts["articles"] == 3
    assert counts["articles with too many elements that do not end"] == counts["paragraphs too long"] == 1
    assert "articles that cannot be parsed" not in counts
    assert [message.partition(": ")[2] for message in messages] == [
        "1 articles with too many elements that do not end skipped",
        "1 paragraphs too long skipped",
    ]
    assert messages == report["warnings"]
    assert [row["page"] for row in rows] == ["A"]
    assert counts["links in text"] == 1_001
