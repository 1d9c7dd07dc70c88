"""Wikipedia2Vec trained through its library: any dump, entities that nothing links back to, and every refusal."""

import gzip

import numpy as np
import pytest
import wiki_dumps

from conftest import published
from isoglot.core.errors import CorpusError, EncoderError
from isoglot.wikipedia import entity_training
from isoglot.wikipedia.entity_training import Training, train

TINY = Training(dim=4, iterations=1, min_count=1, power=0.0)
WORDS = "the old town lies by a river and has many bridges and a castle on its hill"


def dump(path, pages, *, language="en", end="</mediawiki>\n", redirects=()):
    """A packed dump of (title, text) pages and (title, target) redirects."""
    leads = (wiki_dumps.page(title, redirect=target) for title, target in redirects)
    text = wiki_dumps.xml(*leads, *(wiki_dumps.page(*page) for page in pages), wiki=language)
    path.write_bytes(gzip.compress(text.replace("</mediawiki>\n", end).encode()))
    return str(path)


def town(*links):
    return f"{WORDS} near {' and '.join(f'[[{link}]]' for link in links)} . {WORDS}"


PAGES = [("Alpha", town("Beta", "Gamma")), ("Beta", town("Alpha")), ("Gamma", town("Alpha", "Beta"))]


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("wikipedia2vec")


def entities(path):
    import wikipedia2vec

    model = wikipedia2vec.Wikipedia2Vec.load(str(path))
    return {item.title: np.array(model.get_vector(item)) for item in model.dictionary.entities()}


def test_a_dump_in_any_packing_and_cut_short_trains_a_model(tmp_path):
    told = []
    path = dump(tmp_path / "d.xml.gz", PAGES, end="<page><title>Cut", redirects=[("Alfa", "Alpha")])
    code = train([path], tmp_path / "made" / "model.pkl", TINY, report=told.append)
    assert code == "en"
    found = entities(tmp_path / "made" / "model.pkl")
    assert set(found) == {"Alpha", "Beta", "Gamma"}
    assert all(vector.shape == (4,) and np.isfinite(vector).all() and vector.any() for vector in found.values())
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["model.pkl"]
    assert any("3 words" in line or "entities; training" in line for line in told)
    assert any("the XML is cut short" in line for line in told)


@pytest.mark.slow
def test_a_page_that_would_take_the_parser_hours_is_skipped(tmp_path):
    messages = []
    pages = [*PAGES, ("Broken", "<ref>" * 100_000)]
    train([dump(tmp_path / "d.xml.gz", pages)], tmp_path / "model.pkl", TINY, report=messages.append)
    assert any("skipped the article 'Broken' with too many" in message for message in messages)
    assert set(entities(tmp_path / "model.pkl")) == {"Alpha", "Beta", "Gamma"}


ZETAS = [f"Zeta {number}" for number in range(9)]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([[page] for page in PAGES], ["Alpha", "Beta", "Gamma"]),
        # The library alone reads beyond the end of its link graph: Start is no entity, so its links are none.
        ([[*PAGES, ("Start", town(*ZETAS))]], ["Alpha", "Beta", "Gamma", *ZETAS]),
        ([[("Start", town("Zeta"))]], ["Zeta"]),
    ],
    ids=["several files", "entities without links of their own", "no entity that links to another"],
)
@pytest.mark.slow
def test_entities_are_the_pages_that_are_linked(tmp_path, files, found):
    parts = [dump(tmp_path / f"{number}.xml.gz", pages) for number, pages in enumerate(files)]
    train(parts, tmp_path / "model.pkl", TINY)
    assert sorted(entities(tmp_path / "model.pkl")) == found


def test_what_cannot_be_trained_on_is_refused_and_nothing_is_left(tmp_path):
    path = dump(tmp_path / "d.xml.gz", PAGES)
    german = dump(tmp_path / "de.xml.gz", PAGES, language="de")
    out = tmp_path / "out"
    with pytest.raises(CorpusError, match=r"no entity or no word occurs 500 times; lower min-count"):
        train([path], out / "model.pkl", Training(dim=4, min_count=500))
    with pytest.raises(CorpusError, match="de and en"):
        train([path, german], out / "model.pkl", TINY)
    (tmp_path / "no.xml").write_text("no dump")
    with pytest.raises(CorpusError, match="not well-formed XML"):
        train([str(tmp_path / "no.xml")], out / "model.pkl", TINY)
    assert not list(out.iterdir())
    with pytest.raises(ValueError, match="must be at least 1"):
        Training(dim=0)


def test_a_language_whose_tokenizer_is_not_installed(tmp_path, monkeypatch):
    real = entity_training.wikipedia2vec

    class Absent:
        @staticmethod
        def get_default_tokenizer(_language):
            raise ImportError("No module named 'MeCab'")

    monkeypatch.setattr(entity_training, "wikipedia2vec", lambda p="": Absent if p == "utils.tokenizer" else real(p))
    path = dump(tmp_path / "ja.xml.gz", PAGES, language="ja")
    with pytest.raises(EncoderError, match=r"tokenizer for 'ja' .*pip install \"wikipedia2vec\[mecab\]\""):
        train([path], tmp_path / "model.pkl", TINY)


@pytest.mark.slow
def test_a_real_dump(tmp_path):
    path = published("wiki-minidumps/en/wiki.xml.bz2")
    train([str(path)], tmp_path / "model.pkl", Training(dim=16, iterations=2, min_count=2, power=0.0))
    found = entities(tmp_path / "model.pkl")
    assert len(found) > 500
    assert all(np.isfinite(vector).all() for vector in found.values())
