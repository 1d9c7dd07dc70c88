"""BUCC as MTEB scores it: against loops and against MTEB's own code, from MTEB's copies and from the files of BUCC."""

from __future__ import annotations

import json

import bucc_loops as loops
import numpy as np
import pytest
from cases import by_last_word, random_vector
from folders import write
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bucc import numbered, split_files, value

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.bucc_mteb import BITEXT

TASKS = {task.name: task for task in BITEXT}
METRICS = ("accuracy", "precision", "recall", "f1")
EVERY, GOLD = "bucc/mteb", "bucc/mteb-v2"


def noisy(texts):
    """Translations lie near each other; a third of them not near enough."""
    return np.array([random_vector(t.split()[-1], 8) + 0.8 * random_vector(t, 8) for t in texts], np.float32)


def whole(folder, sources, targets, gold, subset="zh-en"):
    """MTEB's first version: one record that holds everything, gold numbered from 1."""
    places = [{key: row + 1 for row, (key, _) in enumerate(side)} for side in (sources, targets)]
    record = {
        "sentence1": [text for _, text in sources],
        "sentence2": [text for _, text in targets],
        "gold": [[places[0][a], places[1][b]] for a, b in gold],
    }
    write(folder / "BUCC" / subset / "test.jsonl", json.dumps(record) + "\n")
    return record


def rows(folder, sources, targets, gold, path="bucc-bitext-mining/test/zh-en.jsonl.gz"):
    """MTEB's second version: one gold pair a record."""
    texts = dict([*sources, *targets])
    records = [{"sentence1": texts[a], "sentence2": texts[b], "lang": "zh-en"} for a, b in gold]
    write(folder / path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return records


def answers(queries, corpus):
    """For each query the row of greatest cosine; of equal texts the first."""
    found = []
    for query in noisy(queries):
        cosines = [loops.cosine(query.tolist(), other.tolist()) for other in noisy(corpus)]
        found.append(corpus.index(corpus[int(np.argmax(cosines))]))
    return found


def shuffled(seed, count=25, gold=15):
    """Twelve texts on many lines, so that labels and answers repeat."""
    rng = np.random.default_rng(seed)
    sides = [[(f"{code}-{i}", f"{code} {rng.integers(12)}") for i in range(count)] for code in ("zh", "en")]
    places = zip(rng.permutation(count)[:gold], rng.integers(count, size=gold), strict=True)
    return *sides, [(f"zh-{i}", f"en-{j}") for i, j in places]


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_equals_the_metrics_in_loops(tmp_path_factory, seed):
    folder, split = tmp_path_factory.mktemp("b"), shuffled(seed)
    split_files(folder, "zh-en.training", *split)
    texts = dict([*split[0], *split[1]])
    queries, corpus = [texts[a] for a, _ in split[2]], [text for _, text in split[1]]
    places = {key: row for row, (key, _) in enumerate(split[1])}
    expected = {
        EVERY: loops.weighted([places[b] for _, b in split[2]], answers(queries, corpus)),
        GOLD: loops.weighted(range(len(queries)), answers(queries, [texts[b] for _, b in split[2]])),
    }
    for name, wanted in expected.items():
        scores = TASKS[name].run(noisy, folder)
        assert [value(scores, metric) for metric in METRICS] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_equals_mteb(tmp_path, seed):
    """The task of MTEB's package itself, on its own copy, with its own evaluator."""
    pytest.importorskip("mteb")
    from mteb.tasks.bitext_mining.multilingual.bucc_bitext_mining import BUCCBitextMining
    from mteb.timing import TimingStack

    class Model:
        def encode(self, inputs, **_):
            return noisy([text for batch in inputs for text in batch["text"]])

        def similarity(self, a, b):
            a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (a, b))
            return a @ b.T

    # No text twice in the corpus, where MTEB leaves open which is found; some targets belong to two queries.
    sources, targets, gold = numbered(30 + 5 * seed, 20 + 5 * seed)
    record = whole(tmp_path, sources, targets, [*gold, *[(a, "en-0") for a, _ in gold[1:5]]])
    theirs = BUCCBitextMining()
    theirs.dataset = {"zh-en": {"test": {name: [part] for name, part in record.items()}}}
    theirs.dataset_transform()
    wanted = theirs._evaluate_subset(
        Model(),
        theirs.dataset["zh-en"]["test"],
        hf_split="test",
        hf_subset="zh-en",
        encode_kwargs={},
        timer=TimingStack(),
    )
    scores = TASKS[EVERY].run(noisy, tmp_path)
    assert 0.1 < wanted["accuracy"] < 1
    assert {metric: value(scores, metric) for metric in METRICS} == pytest.approx(
        {metric: wanted[metric] for metric in METRICS}, abs=1e-6
    )


@pytest.mark.parametrize("name", [EVERY, GOLD])
def test_copies_of_mteb_and_files_of_bucc_give_the_same(tmp_path, name):
    split = numbered(40, 25)
    split_files(tmp_path / "files", "zh-en.test", *split)
    (whole if name == EVERY else rows)(tmp_path / "copy", *split)
    files, copy = (TASKS[name].run(noisy, tmp_path / folder) for folder in ("files", "copy"))
    assert files == copy
    assert [score.details for score in files] == [score.details for score in copy]
    assert 0 < value(files, "accuracy") < 1
    assert TASKS[name].subsets(tmp_path / "copy", languages=["cmn"]) == ("zh-en",)
    assert TASKS[name].subsets(tmp_path / "copy", languages=["de"]) == ()
    (whole if name == EVERY else rows)(tmp_path / "files", *numbered(20, 9))
    assert TASKS[name].run(noisy, tmp_path / "files") == files  # the publisher's files come first


@pytest.mark.parametrize("name", [EVERY, GOLD])
def test_parquet_is_read_too(tmp_path, name):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    split = numbered(20, 10)
    if name == EVERY:
        table, folder = [whole(tmp_path / "x", *split)], "BUCC/zh-en"
    else:
        table, folder = rows(tmp_path / "x", *split), "bucc-bitext-mining/zh-en"
    (tmp_path / folder).mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(table), tmp_path / folder / "test-00000-of-00001.parquet")
    assert value(TASKS[name].run(by_last_word, tmp_path), "accuracy") == 1


def test_the_first_of_equal_sentences_is_found(tmp_path):
    targets = [("en-0", "en 0"), ("en-1", "en 1"), ("en-2", "en 0")]
    split_files(
        tmp_path, "zh-en.test", [("zh-0", "zh 0"), ("zh-1", "zh 1")], targets, [("zh-0", "en-2"), ("zh-1", "en-1")]
    )
    scores = TASKS[EVERY].run(by_last_word, tmp_path)
    assert scores[0].items.tolist() == [0, 1]
    (detail,) = scores[0].details
    assert detail.rows == (("zh 0", "en 0", "en 0", pytest.approx(1, abs=1e-6)),)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (EVERY, {"gold": [[1, 0]]}, r"gold has \[1, 0\] for 4 and 4 sentences, numbered from 1"),
        (EVERY, {"gold": [[5, 1]]}, r"gold has \[5, 1\]"),
        (EVERY, {"gold": []}, r"has no gold pair"),
        (EVERY, {"gold": [3]}, r"gold has 3 for 4 and 4 sentences"),
        (EVERY, {"gold": [["1", "2"]]}, r"gold has \['1', '2'\] for 4 and 4 sentences"),
        (EVERY, {"sentence2": ["en 0", None, "en 2", "en 3"]}, r"number 2 of sentence2 is no sentence"),
        (EVERY, {"sentence1": "zh 0"}, r"is no single record of three lists"),
        (GOLD, {"sentence2": " "}, r":1: sentence1 or sentence2 is no sentence"),
        (GOLD, {"sentence1": ["zh 0"]}, r":1: sentence1 or sentence2 is no sentence"),
    ],
)
def test_damaged_copies_are_refused(tmp_path, name, change, message):
    record = whole(tmp_path, *numbered(4, 3)) if name == EVERY else rows(tmp_path, *numbered(4, 3))[0]
    folder = "BUCC" if name == EVERY else "bucc-bitext-mining"
    for path in (tmp_path / folder).rglob("*.jsonl*"):
        path.unlink()
    write(tmp_path / folder / "zh-en" / "test.jsonl", json.dumps({**record, **change}) + "\n")
    with pytest.raises(EvaluationError, match=rf"^{name} zh-en: .*test.jsonl.*{message}"):
        TASKS[name].run(by_last_word, tmp_path)
