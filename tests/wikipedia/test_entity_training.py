"""Wikipedia2Vec trained through its library: any dump, entities that nothing links back to, and every refusal."""

import gzip

import numpy as np
import pytest

from conftest import published
from isoglot.core.errors import CorpusError, EncoderError
from isoglot.wikipedia import entity_training
from isoglot.wikipedia.entity_training import Training, train

TINY = Training(dim=4, iterations=1, min_count=1, power=0.0)
WORDS = "the old town lies by a river and has many bridges and a castle on its hill"


def dump(path, pages, *, language="en", end="</mediawiki>", redirects=()):
    """A MediaWiki dump of (title, text) pages and (title, target) redirects."""
    parts = [
        f'<mediawiki xml:lang="{language}"><siteinfo><dbname>{language}wiki</dbname>'
        f"<base>https://{language}.wikipedia.org/wiki/Main</base></siteinfo>"
    ]
    for title, target in redirects:
        parts.append(f'<page><title>{title}</title><ns>0</ns><redirect title="{target}"/><revision><text>x</text>')
        parts.append("</revision></page>")
    for title, text in pages:
        parts.append(f"<page><title>{title}</title><ns>0</ns><revision><text>{text}</text></revision></page>")
    path.write_bytes(gzip.compress("\n".join([*parts, end]).encode()))
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


def test_a_page_that_would_take_the_parser_hours_is_skipped(tmp_path):
    messages = []
    pages = [*PAGES, ("Broken", "&lt;ref>" * 100_000)]
    train([dump(tmp_path / "d.xml.gz", pages)], tmp_path / "model.pkl", TINY, report=messages.append)
    assert any("skipped the article 'Broken' with too many" in message for message in messages)
    assert set(entities(tmp_path / "model.pkl")) == {"Alpha", "Beta", "Gamma"}


def test_several_files_of_one_wikipedia(tmp_path):
    parts = [dump(tmp_path / f"{number}.xml.gz", [page]) for number, page in enumerate(PAGES)]
    train(parts, tmp_path / "model.pkl", TINY)
    assert set(entities(tmp_path / "model.pkl")) == {"Alpha", "Beta", "Gamma"}


def test_entities_without_links_of_their_own(tmp_path):
    """The library alone reads beyond the end of its link graph: Start is no entity, so its links are none."""
    pages = [*PAGES, ("Start", town(*(f"Zeta {number}" for number in range(9))))]
    train([dump(tmp_path / "d.xml.gz", pages)], tmp_path / "model.pkl", TINY)
    assert "Zeta 8" in entities(tmp_path / "model.pkl")


def test_no_entity_that_links_to_another(tmp_path):
    train([dump(tmp_path / "d.xml.gz", [("Start", town("Zeta"))])], tmp_path / "model.pkl", TINY)
    assert set(entities(tmp_path / "model.pkl")) == {"Zeta"}


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
