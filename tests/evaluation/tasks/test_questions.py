"""Questions and paragraphs: the metrics against plain loops, the model's prompts, and what cannot be scored."""

import math

import numpy as np
import pytest
from cases import by_text
from cases_questions import lines
from folders import write

from isoglot.core.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.run import function
from isoglot.evaluation.tasks.questions import judge
from isoglot.evaluation.vectors import in_role
from toys import ToyEncoder


def by_loops(gains, order):
    """nDCG@10, recall@1, recall@10 and MRR@10 of one question, whose paragraphs were found in this order."""
    ndcg, best = 0.0, 0.0
    for place, paragraph in enumerate(order[:10], 1):
        ndcg += gains.get(paragraph, 0) / math.log2(place + 1)
    for place, gain in enumerate(sorted(gains.values(), reverse=True)[:10], 1):
        best += gain / math.log2(place + 1)
    found = [place for place, paragraph in enumerate(order[:10], 1) if gains.get(paragraph, 0) > 0]
    recall_1 = (1 in found) / len(gains)
    return ndcg / best, recall_1, len(found) / len(gains), 1 / found[0] if found else 0.0


def folder_of(root, gold, *, questions, paragraphs):
    """A set of the user: `gold` maps numbers of questions to paragraphs and their relevance."""
    place = root / "questions" / "deu"
    write(place / "queries.jsonl", lines(*({"_id": f"q{i}", "text": text} for i, text in enumerate(questions))))
    write(place / "corpus.jsonl", lines(*({"_id": f"d{i}", "text": text} for i, text in enumerate(paragraphs))))
    rows = "".join(f"q{q}\td{d}\t{score}\n" for q, own in gold.items() for d, score in own.items())
    write(place / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{rows}")
    return root


@pytest.mark.parametrize(
    ("languages", "subsets"),
    [
        *(("", "bem-eng deu eng fon-fra"), ("eng", "eng"), ("deu eng", "deu eng"), ("bem", "bem-eng")),
        *(("fra", ""), ("fon fra", "fon-fra"), ("deu fra", "deu")),
    ],
)
def test_a_pair_belongs_to_the_languages_of_both_sides(tmp_path, languages, subsets):
    """English questions are not those in Bemba whose paragraphs are in English."""
    for code in ("bem-eng", "deu", "eng", "fon-fra"):
        write(tmp_path / f"{code}.questions.jsonl", lines({"id": "q", "text": "a", "gold": ["p"]}))
        write(tmp_path / f"{code}.paragraphs.jsonl", lines({"id": "p", "text": "b"}))
    assert [*TASKS["retrieval/questions"].subsets(tmp_path, languages=languages.split())] == subsets.split()


@pytest.mark.parametrize("name", ["qrels/{}.jsonl", "qrels/{}-00000-of-00001.jsonl.gz", "qrels-{}.jsonl"])
def test_of_several_splits_of_the_relevance_test_is_read(tmp_path, name):
    """MTEB publishes `train`, `dev` and `test` beside each other; read together they are another task."""
    texts = [str(number) for number in range(9)]
    place = folder_of(tmp_path, {}, questions=texts, paragraphs=texts) / "questions" / "deu"
    (place / "qrels" / "test.tsv").unlink()
    own = {"dev": range(2), "train": range(2, 8), "test": range(5, 9)}
    for split, count in (("train", 6), ("dev", 2), ("test", 4)):
        rows = ({"query-id": f"q{row}", "corpus-id": f"d{row}", "score": 1} for row in own[split])
        write(place / name.format(split), lines(*rows))
        (score,) = evaluate(by_text, ["retrieval/questions-own"], data=tmp_path)["retrieval/questions-own", "deu"][:1]
        assert score.n == count


def test_metrics_are_those_of_plain_loops(tmp_path):
    rng = np.random.default_rng(0)
    questions, paragraphs = [f"question {i}" for i in range(60)], [f"paragraph {i}" for i in range(90)]
    counts = rng.integers(1, 15, 60).tolist()
    gold = {
        question: dict(zip(rng.permutation(90)[:count].tolist(), rng.integers(1, 4, count).tolist(), strict=True))
        for question, count in enumerate(counts)
    }
    folder_of(tmp_path, gold, questions=questions, paragraphs=paragraphs)
    cosines = by_text(questions) @ (by_text(paragraphs) / np.linalg.norm(by_text(paragraphs), axis=1)[:, None]).T
    expected = np.array([by_loops(gold[q], np.argsort(-cosines[q]).tolist()) for q in range(60)])
    scores = evaluate(by_text, ["retrieval/questions-own"], data=tmp_path)
    for column, metric in enumerate(("ndcg@10", "recall@1", "recall@10", "mrr@10")):
        (score,) = [score for score in scores if (score.subset, score.metric) == ("deu", metric)]
        assert score.items == pytest.approx(expected[:, column], abs=1e-6)
        assert score.value == pytest.approx(expected[:, column].mean(), abs=1e-6)
    assert 0 < expected.mean() < 1


def test_fewer_paragraphs_than_places_are_judged_as_they_are():
    """Three paragraphs, two of them relevant, the better one last: 3/log2(4) + 1/log2(2) of 3 + 1/log2(3)."""
    found = judge(np.array([[0, 1, 2]]), [{0: 1.0, 2: 3.0}])
    assert found[0] == pytest.approx([(1 + 3 / 2) / (3 + 1 / math.log2(3)), 0.5, 1.0, 1.0])


class Prompted(ToyEncoder):
    """A toy encoder with prompts, its own among them."""

    prompt = "all: "

    def tokenize(self, texts, *, prompt=None):
        return super().tokenize([(self.prompt if prompt is None else prompt) + text for text in texts])


def test_the_prompts_of_the_model_are_those_of_the_role(tmp_path):
    encoder, texts = Prompted(), ["a house", "no"]
    encoder.prompts = {"query": "ask: ", "passage": "answer: "}
    encode = function(encoder, cache=tmp_path)
    for role, prompt in (("query", "ask: "), ("document", "answer: ")):
        assert in_role(encode, role)(texts) == pytest.approx(encoder.encode(texts, prompt=prompt), abs=1e-6)
    assert encode(texts) == pytest.approx(encoder.encode(texts), abs=1e-6)
    assert len(list(tmp_path.iterdir())) == 3  # vectors with and without a prompt are kept apart
    assert encode.seconds > in_role(encode, "query").seconds > 0


def test_a_function_and_a_model_without_prompts_have_no_roles():
    encode = function(ToyEncoder())
    assert in_role(encode, "query") is encode
    assert in_role(by_text, "document") is by_text


class OfAnotherLibrary:
    """Has prompts as sentence-transformers has: only its methods for roles put them."""

    def encode(self, texts):
        return by_text(texts)

    def encode_query(self, texts):
        return by_text([f"ask: {text}" for text in texts])

    def encode_document(self, texts):
        return by_text([text.replace("the answer to", "ask:") for text in texts])


def test_a_model_of_another_library_has_its_own_roles_which_the_task_uses(tmp_path):
    paragraphs = [f"the answer to {i}" for i in range(20)]
    folder_of(tmp_path, {i: {i: 1} for i in range(20)}, questions=[*map(str, range(20))], paragraphs=paragraphs)
    scores = evaluate(OfAnotherLibrary(), ["retrieval/questions-own"], data=tmp_path)
    assert {score.value for score in scores} == {1.0}


def test_questions_without_a_relevant_paragraph_are_left_out_and_mistakes_name_it(tmp_path):
    folder_of(tmp_path, {0: {1: 1}, 1: {1: 0}}, questions=["a", "b", "c"], paragraphs=["a", "b"])
    scores = evaluate(by_text, ["retrieval/questions-own"], data=tmp_path)
    assert {score.n for score in scores if not score.over} == {1}
    (detail,) = scores[0].details
    assert [row[:3] for row in detail.rows] == [("a", "b", "a")]  # what was expected and what was found


@pytest.mark.parametrize(
    ("gold", "missing", "message"),
    [
        ({0: {7: 1}}, "", "test.tsv:2: there is no paragraph 'd7'"),
        ({5: {0: 1}}, "", "test.tsv:2: there is no question 'q5'"),
        ({0: {0: 0}}, "", "no question has a relevant paragraph"),
        ({0: {0: 1}}, "corpus.jsonl", "retrieval/questions-own: .*deu.* has no corpus.jsonl"),
    ],
)
def test_relevance_that_cannot_be_used_and_a_missing_file_are_errors(tmp_path, gold, missing, message):
    folder_of(tmp_path, gold, questions=["a"], paragraphs=["a", "b"])
    if missing:
        (tmp_path / "questions" / "deu" / missing).unlink()
    with pytest.raises(EvaluationError, match=message):
        evaluate(by_text, ["retrieval/questions-own"], data=tmp_path)
