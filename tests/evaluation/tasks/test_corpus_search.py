"""Nearest sentences: the search against a loop, what is no hit, and what cannot be searched."""

import numpy as np
import pytest
from cases import by_last_word, by_text
from folders import write
from search_loops import cosine

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.tasks.corpus_search import CorpusSearch


def nearest(folder, queries, corpus):
    for role, texts in (("queries", queries), ("corpus", corpus)):
        for code, sentences in texts.items():
            write(folder / "nearest" / f"{role}.{code}.txt", "".join(f"{text}\n" for text in sentences))
    return folder


def loop(queries, corpus, encode, top):
    """The best distinct sentences other than the query, with their cosines."""
    found = []
    for query in queries:
        others = [other for other in dict.fromkeys(corpus) if other != query]
        scored = [(cosine(*encode([query, other])), other) for other in others]
        found.append(sorted(scored, key=lambda pair: -pair[0])[:top])
    return found


@pytest.mark.parametrize("top", [1, 3, 5])
def test_equals_the_search_in_a_loop(tmp_path, top):
    queries = [f"text {i}" for i in range(0, 40, 3)]
    corpus = [f"text {i % 30}" for i in range(50)]
    (score, mean) = CorpusSearch(top=top).run(by_text, nearest(tmp_path, {"deu": queries}, {"eng": corpus}))
    expected = loop(queries, corpus, by_text, top)
    (detail,) = score.details
    assert detail.kind == "hits"
    assert [row[:3] for row in detail.rows] == [
        (query, rank, text)
        for query, hits in zip(queries, expected, strict=True)
        for rank, (_, text) in enumerate(hits, 1)
    ]
    np.testing.assert_allclose([row[3] for row in detail.rows], [c for hits in expected for c, _ in hits], atol=1e-5)
    assert score.value == pytest.approx(np.mean([hits[0][0] for hits in expected]), abs=1e-6)
    assert (mean.subset, mean.value, mean.over) == ("mean", score.value, ("deu-eng",))


def test_the_query_itself_is_no_hit_and_a_text_is_one_hit(tmp_path):
    folder = nearest(tmp_path, {"eng": ["a 1", "b 2"]}, {"eng": ["a 1", "c 1", "a 1", "c 1", "d 2", "e 3"]})
    score = CorpusSearch(top=2).run(by_last_word, folder)[0]
    assert score.subset == "eng"
    assert [row[2] for row in score.details[0].rows if row[1] == 1] == ["c 1", "d 2"]
    assert [row[2] for row in score.details[0].rows if row[0] == "a 1"].count("c 1") == 1


def test_only_the_first_queries_are_shown_and_all_are_counted(tmp_path):
    folder = nearest(tmp_path, {"deu": [f"q {i}" for i in range(9)]}, {"eng": [f"c {i}" for i in range(9)]})
    score = CorpusSearch(shown=2).run(by_text, folder)[0]
    assert (score.n, len(score.items), len(score.details[0].rows)) == (9, 9, 6)
    assert len({row[0] for row in score.details[0].rows}) == 2


def test_languages_of_queries_and_corpora(tmp_path):
    texts = {code: [f"{code} {i}" for i in range(4)] for code in ("deu", "eng", "kor")}
    folder = nearest(tmp_path, texts, {code: texts[code] for code in ("deu", "eng")})
    task = CorpusSearch()
    assert task.subsets(folder) == ("deu", "eng-deu", "kor-deu", "deu-eng", "eng", "kor-eng")
    assert task.subsets(folder, languages=["ko"]) == ("kor-eng",)
    assert task.subsets(folder, languages=["en"]) == ("eng",)
    asked = []
    task.run(lambda new: asked.append(new) or by_text(new), folder)
    assert asked.count(texts["kor"]) == 2  # as queries of both corpora
    assert asked.count(texts["deu"]) == 3  # so, and as a corpus once


def test_a_corpus_of_nothing_but_the_query_is_refused(tmp_path):
    folder = nearest(tmp_path, {"eng": ["other", "a"]}, {"eng": ["a", "a"]})
    with pytest.raises(EvaluationError, match=r"nearest eng, queries, language eng: .*queries.eng.txt:2: the corpus"):
        CorpusSearch().run(by_text, folder)
