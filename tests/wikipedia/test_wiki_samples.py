"""The dump samples and the Wikidata sample as they are: what is in them is known."""

import pytest

from conftest import published
from isoglot.wikipedia.dump import open_dump, pages
from isoglot.wikipedia.entities import entity_lines, read_entity, wikidata_lines
from isoglot.wikipedia.titles import Names

SAMPLES = {
    "wiki-xml-samples/bgwiki-latest-pages-articles-shortened.xml.bz2": ("bul", 3, 0),  # UTF-16
    "wiki-xml-samples/smallwiki-latest-pages-articles.xml.xz": ("ltg", 2004, 0),
    "wiki-xml-samples/enwiki-table-markup.xml.bz2": ("eng", 5, 0),  # without a head
    "wiki-it-sample/misc/wikipedia-small-test.xml.bz2": ("ita", 3, 0),  # of 2011
    "wiki-xml-7lang/jawiki-truncated-100k.xml.xz": ("jpn", 238, 1),  # cut
}


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", SAMPLES)
def test_pages_of_the_samples(name):
    warnings: list[str] = []
    dump = open_dump(str(published(name)))
    found = list(pages(dump, warnings.append))
    assert (dump.lang, len(found), len(warnings)) == SAMPLES[name]
    assert all(one.title for one in found)
    assert sum(one.namespace == 0 and one.redirect is None for one in found) > 0


@pytest.mark.slow
@pytest.mark.data
def test_entities_of_the_wikidata_sample():
    path = published("wikidata-entities/entities")
    warnings: list[str] = []
    lines = list(wikidata_lines(path, warnings.append))
    names = {wiki: Names(wiki, {}) for wiki in ("ja", "en")}
    found = {one.id: one for one in map(read_entity, entity_lines(lines, path, names))}
    assert (len(lines), warnings) == (49, [])
    assert sum(bool(one.types) for one in found.values()) == 40
    assert found["Q64"].titles == {"ja": "ベルリン", "en": "Berlin"}
    assert found["Q64"].types[:2] == ("Q1901835", "Q200250")
