"""Dumps in every packing, cut, damaged, or no dump at all."""

import bz2
import gzip
import lzma
from time import process_time

import pytest
from wiki_dumps import head, page, write, xml

from conftest import published
from isoglot.core.errors import CorpusError
from isoglot.wikipedia.dump import Page, open_dump, pages

PAGES = [page("A", "one & <b>two</b>"), page("B", redirect="A"), page("C", "東京\nx", ns=4), page("D")]
READ = [
    Page("A", 0, None, "one & <b>two</b>"),
    Page("B", 0, "A", ""),
    Page("C", 4, None, "東京\nx"),
    Page("D", 0, None, ""),
]


def read(path):
    warnings = []
    return list(pages(open_dump(str(path)), warnings.append)), warnings


PACKS = {
    "xml": bytes,
    "bz2": lambda text: bz2.compress(text, 1),
    "gz": gzip.compress,
    "xz": lambda text: lzma.compress(text, preset=0),
}


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_packings_and_encodings(tmp_path, pack, encoding):
    path = tmp_path / "dump"
    path.write_bytes(PACKS[pack](xml(*PAGES).encode(encoding)))
    assert read(path) == (READ, [])


def test_the_head(tmp_path):
    dump = open_dump(str(write(tmp_path / "d", *PAGES, wiki="de")))
    assert (dump.names.wiki, dump.lang, dump.names.first_letter) == ("de", "deu", True)
    assert dump.names.namespaces["kategorie"] == 14


@pytest.mark.parametrize("pack", PACKS)
def test_a_dump_that_is_cut_gives_its_whole_pages_and_one_warning(tmp_path, pack):
    body = "".join(page(f"T{i}", " ".join(str(i * j * 7919 % 10007) for j in range(900))) for i in range(100))
    packed = PACKS[pack]((head() + body).encode())
    path = tmp_path / "dump"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    found, warnings = read(path)
    assert 10 < len(found) < 100
    assert [p.title for p in found] == [f"T{i}" for i in range(len(found))]
    assert len(warnings) == 1
    assert str(path) in warnings[0]
    assert "the complete part was read" in warnings[0]


GERMAN = xml(page("Ä", "x"), wiki="de")
DAMAGED = xml(page("A", "x\n" * 300_000), page("B", "y")).replace("<title>B", "<titel>B")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"<html><body>sorry</body></html>", ".* not a MediaWiki XML dump: its first element is <html>"),
        (b"id\ttitle\n", ".*not well-formed XML"),
        (b"\x00\x01\x02\x03", ".*not well-formed XML"),
        (b"", ".*no text"),
        (b"   \n", r".*the XML is cut short \(no element found\)"),
        (xml(*PAGES).replace("en.wikipedia", "www.wikidata").encode(), ".*is a dump of www.wikidata.org"),
        (b"<mediawiki><page><title>A</title></page></mediawiki>", ".*de=FILE"),
        (DAMAGED.encode(), r"\d+: not well-formed XML.* \(mismatched tag\)"),
        (GERMAN.encode("latin-1"), rf"{GERMAN.partition('Ä')[0].count(chr(10)) + 1}: .* not in its encoding"),
    ],
    ids=range(9),
)
def test_what_is_no_dump_is_one_line(tmp_path, content, words):
    path = tmp_path / "d"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=f"^{path}:{words}"):
        read(path)


def test_a_missing_file_and_a_code_before_a_file(tmp_path):
    with pytest.raises(CorpusError, match="no such file"):
        open_dump(str(tmp_path / "none.xml"))
    path = write(tmp_path / "d=e.xml", *PAGES)
    assert open_dump(str(path)).names.wiki == "en"
    dump = open_dump(f"zh-yue={path}")
    assert (dump.names.wiki, dump.lang, dump.path) == ("zh-yue", "yue", path)
    with pytest.raises(CorpusError, match="unknown language 'nonsense'"):
        open_dump(f"nonsense={path}")


def test_a_dump_without_a_head_is_of_the_language_of_its_first_element(tmp_path):
    path = tmp_path / "d"
    path.write_text(f'<mediawiki xml:lang="bg">{PAGES[0]}</mediawiki>')
    assert open_dump(str(path)).lang == "bul"


def test_old_dumps_tell_namespaces_and_redirects_in_their_own_way(tmp_path):
    path = tmp_path / "d"
    old = [
        page("Kategorie:X", "x"),
        page("B", "#WEITERLEITUNG [[Ä#y]]").replace("<id>1</id>", "<id>1</id><redirect />"),
        page("C", "#redirect [[Ä]]"),
        page("D", "# [[Ä]]"),
        page("Re: E", "e"),
    ]
    path.write_text(xml(*old, wiki="de").replace("<ns>0</ns>", ""), encoding="utf-8")
    found = [(one.title, one.namespace, one.redirect) for one in read(path)[0]]
    assert found == [("Kategorie:X", 14, None), ("B", 0, "Ä"), ("C", 0, "Ä"), ("D", 0, None), ("Re: E", 0, None)]


def test_a_redirect_to_nothing_takes_linear_time(tmp_path):
    """With two adjacent patterns of spaces, 100,000 of them took a minute."""
    path = write(tmp_path / "dump", page("A", "#redirect" + " " * 100_000), page("B", "#redirect : [[A]]"))
    begun = process_time()
    assert [one.redirect for one in pages(open_dump(str(path)), print)] == [None, "A"]
    assert process_time() - begun < 5


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
    found, warnings = read(published(name))
    assert (open_dump(str(published(name))).lang, len(found), len(warnings)) == SAMPLES[name]
    assert all(one.title for one in found)
    assert sum(one.namespace == 0 and one.redirect is None for one in found) > 0
