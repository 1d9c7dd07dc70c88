"""Titles in normal form, and what a link leads to."""

import pytest
from wiki_dumps import names

from isoglot.core.errors import CorpusError
from isoglot.wikipedia.titles import ARTICLE, HIDDEN, OTHER, Names, find_language, make_key, normal, resolve


@pytest.mark.parametrize(
    "link, kind, title",
    [
        ("berlin", ARTICLE, "Berlin"),
        (" new_york  City ", ARTICLE, "New york City"),
        ("Berlin#History", ARTICLE, "Berlin"),
        ("Berlin&nbsp;wall", ARTICLE, "Berlin wall"),
        ("Caf%C3%A9", ARTICLE, "Café"),
        ("100%", ARTICLE, "100%"),
        ("50%ff", ARTICLE, "50%ff"),
        ("\u200eBerlin\u200f", ARTICLE, "Berlin"),
        (":berlin", ARTICLE, "Berlin"),
        ("Star Trek: Discovery", ARTICLE, "Star Trek: Discovery"),
        ("ß", ARTICLE, "ß"),
        ("straße", ARTICLE, "Straße"),
        ("éclair", ARTICLE, "Éclair"),
        ("東京", ARTICLE, "東京"),
        ("File:A.png", HIDDEN, ""),
        ("Image:A.png", HIDDEN, ""),
        ("画像:A.JPG", HIDDEN, ""),
        ("Category:Towns", HIDDEN, ""),
        (":Category:Towns", OTHER, ""),
        (":File:A.png", OTHER, ""),
        ("de:Berlin", HIDDEN, ""),
        ("zh-min-nan:Berlin", HIDDEN, ""),
        (":de:Berlin", OTHER, ""),
        ("wikt:house", OTHER, ""),
        ("User talk:Me", OTHER, ""),
        ("Help:Me", OTHER, ""),
        ("#Section", OTHER, ""),
        ("", OTHER, ""),
    ],
)
def test_where_a_link_leads(link, kind, title):
    assert resolve(link, names()) == (kind, title)


def test_names_of_the_wikipedia_itself_and_the_english_ones():
    assert resolve("Datei:A", names("de"))[0] == resolve("file:A", names("de"))[0] == HIDDEN
    assert resolve("kategorie:A", names("de"))[0] == HIDDEN
    assert resolve("Datei:A", names("en")) == (ARTICLE, "Datei:A")


def test_first_letter():
    assert normal("istanbul", Names("tr", {})) == "İstanbul"
    assert normal("თბილისი", Names("ka", {})) == "თბილისი"
    assert normal("house", Names("en", {}, first_letter=False)) == "house"


def test_codes_of_wikipedias_are_not_always_codes_of_languages():
    codes = {"als": "gsw", "simple": "eng", "zh-yue": "yue", "ja": "jpn", "no": "nor"}
    assert {code: find_language(code) for code in codes} == codes
    assert make_key("deu") == make_key("DE") == make_key("de")
    assert make_key("simple") != make_key("en")
    assert make_key("zh-min-nan") == make_key("nan")
    assert make_key("be-tarask") == make_key("be-x-old") != make_key("be")
    with pytest.raises(CorpusError, match=r"t\.tsv:3: unknown language 'nonsense'"):
        make_key("nonsense", file="t.tsv", line=3)
