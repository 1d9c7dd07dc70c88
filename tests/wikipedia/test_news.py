"""A clustering set from a made dump of Wikinews."""

import importlib.util
from pathlib import Path

import pytest
import wiki_dumps

from isoglot.core.errors import CorpusError
from isoglot.evaluation import TASKS

_SPEC = importlib.util.spec_from_file_location("mewsc", Path(__file__).parents[2] / "scripts" / "mewsc.py")
mewsc = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(mewsc)
build_news, read_categories = mewsc.build_news, mewsc.read_categories

pytest.importorskip("mwparserfromhell")
pytest.importorskip("sentencex")


def dump(folder, pages):
    path = wiki_dumps.write(folder / "news.xml", *pages, wiki="de")
    path.write_text(path.read_text().replace("dewiki", "dewikinews").replace("wikipedia.org", "wikinews.org"))
    return str(path)


def page(number, *categories, text="'''Bonn''' – Erster Satz der Meldung {}. Zweiter Satz."):
    links = "".join(f"[[{category}]]" for category in categories)
    return wiki_dumps.page(f"Meldung {number}", text.format(number) + "\n\n" + links)


def test_the_first_sentence_of_pages_with_one_topic(tmp_path):
    pages = [page(n, "Kategorie:Sport", "Kategorie:Veröffentlicht") for n in range(3)]
    pages += [page(n, "category:themenportal_Politik|Bonn") for n in range(3, 5)]
    pages += [
        page(5, "Kategorie:Sport", "Kategorie:Themenportal Politik"),  # of two topics
        page(6, "Kategorie:Veröffentlicht"),  # of none
        page(7, "Kategorie:Wetter"),  # of a topic with one page
        page(8, "Kategorie:Sport", text="Ja."),
        wiki_dumps.page("Kategorie:Bonn", "Ein Satz. [[Kategorie:Sport]]", ns=14),
        wiki_dumps.page("Weg", "#WEITERLEITUNG [[Meldung 1]] [[Kategorie:Sport]]", redirect="Meldung 1"),
    ]
    topics = {"de": {"Sport", "Themenportal Politik", "Wetter"}}
    made = build_news([dump(tmp_path, pages)], topics, tmp_path / "set", least=2)
    assert made == {"deu": {"Sport": 3, "Themenportal Politik": 2}}
    texts = (tmp_path / "set" / "de_sentences.txt").read_text().splitlines()
    assert texts == [f"Bonn – Erster Satz der Meldung {n}." for n in range(5)]
    labels = (tmp_path / "set" / "de_categories.txt").read_text().splitlines()
    assert labels == ["Sport"] * 3 + ["Themenportal Politik"] * 2
    assert TASKS["mewsc-16"].subsets(tmp_path / "set") == ("de",)
    assert read_categories(tmp_path / "set") == {"de": {"Sport", "Themenportal Politik"}}


def test_tables_of_categories(tmp_path):
    table = tmp_path / "topics.tsv"
    table.write_text("de\tSport\nde\tWetter\nen\tSports\n")
    assert read_categories(table) == {"de": {"Sport", "Wetter"}, "en": {"Sports"}}
    table.write_text("de\tSport\nde\n")
    with pytest.raises(CorpusError, match=r"topics\.tsv:2: "):
        read_categories(table)
    with pytest.raises(CorpusError, match="_categories"):
        read_categories(tmp_path)


def test_what_cannot_be_made_is_refused(tmp_path):
    news = dump(tmp_path, [page(1, "Kategorie:Sport")])
    with pytest.raises(CorpusError, match=r"news\.xml: .*deu"):
        build_news([news], {"en": {"Sports"}}, tmp_path / "set")
    with pytest.raises(CorpusError, match=r"news\.xml: "):
        build_news([news], {"de": {"Sport"}}, tmp_path / "set")
    (tmp_path / "news.xml").write_text((tmp_path / "news.xml").read_text().replace("wikinews", "wikipedia"))
    with pytest.raises(CorpusError, match=r"de\.wikipedia\.org"):
        build_news([news], {"de": {"Sport"}}, tmp_path / "set")
    assert not (tmp_path / "set").exists()
