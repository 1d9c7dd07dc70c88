"""BUCC: mining and search against loops and against MTEB's own code, ties and repeated sentences included."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from itertools import pairwise

import bucc_loops as loops
import cases
import numpy as np
import pytest
from cases import by_last_word, noisy
from folders import write
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from search_loops import cosine

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.tasks.bucc import BITEXT, MINING
from isoglot.search import mine, quality, tune

TASKS = {task.name: task for task in MINING}

# The protocols as the papers state them, apart from the code: (k, margin, direction, score > 0 only, identical merged)
PROTOCOLS = {
    "bucc/xtreme": (4, "ratio", "max", True, True),
    "bucc/oracle": (4, "ratio", "max", True, False),
    "bucc/moco": (3, "distance", "max", False, True),
    "bucc/ease": (1, "absolute", "forward", False, True),
    "bucc/dev-split": (4, "ratio", "max", True, True),
}


DEV_ONLY = ("bucc/oracle", "bucc/dev-split")


def split_files(folder, stem, sources, targets, gold):
    """Write one split: sides as (id, text), gold as (id, id)."""
    for suffix, rows in (("zh", sources), ("en", targets), ("gold", gold)):
        write(folder / f"{stem}.{suffix}", "".join("\t".join(row) + "\n" for row in rows))


def numbered(count, gold):
    """`gold` pairs that mean the same, and sentences on both sides that mean nothing else does."""
    sides = [
        [(f"{code}-{i}", f"{code} {i if i < gold else f'{code}{i}'}") for i in range(count)] for code in ("zh", "en")
    ]
    return *sides, [(f"zh-{i}", f"en-{i}") for i in range(gold)]


def value(scores, metric):
    return cases.value(scores, "zh-en", metric)


def table(scores, kind):
    (detail,) = [detail for detail in scores[0].details if detail.kind == kind]
    return [dict(zip(detail.columns, row, strict=True)) for row in detail.rows]


@st.composite
def splits(draw):
    """A split whose sentences come from a few texts, so that many stand twice and many scores are equal."""
    sides = []
    for language in ("zh", "en"):
        texts = draw(st.lists(st.integers(0, 9), min_size=1, max_size=14))
        sides.append([(f"{language}-{i}", f"{language} {text}") for i, text in enumerate(texts)])
    pair = st.tuples(*(st.sampled_from([key for key, _ in side]) for side in sides))
    # Pairs of equal meaning first, or hardly anything would ever be right.
    same = [(a, b) for a, s in sides[0] for b, t in sides[1] if s.split()[1] == t.split()[1]]
    gold = st.sampled_from(same) | pair if same else pair
    return *sides, draw(st.lists(gold, min_size=1, max_size=10))


def signs(seed):
    """Vectors of equal length with exact cosines, so that ties are ties in any arithmetic; means of three are not."""
    return lambda text: np.random.default_rng([int(text.split()[1]), seed]).choice([-1.0, 1.0], 4)


def gaussian(seed):
    """No ties but those of equal texts; translations lie near each other."""

    def vector(text):
        language, word = text.split()
        meaning = np.random.default_rng([int(word), seed]).standard_normal(6)
        return meaning + np.random.default_rng([int(word), seed, ord(language[0])]).standard_normal(6)

    return vector


def expected(name, dev, test, vector, *, exact):
    """F1, precision and recall, by the loops.

    A dev pair whose score is the threshold may stand in the test split too; if products are not exact, its score there
    differs in the last bit, and it is on either side: such cases say nothing.
    """
    k, margin, direction, positive, merged = PROTOCOLS[name]
    how = {"k": k, "margin": margin, "direction": direction, "positive": positive, "merged": merged}
    items, gold = loops.mine(dev[0], dev[1], vector, **how), set(dev[2])
    if name == "bucc/oracle":
        return loops.measure(loops.above(items, loops.walk(items, gold)), gold)
    if name == "bucc/dev-split":
        predicted = set()
        half = lambda key: sha256(key.encode()).digest()[0] % 2  # noqa: E731
        for scored in (0, 1):
            tuned = loops.walk([i for i in items if half(i[1]) != scored], {p for p in gold if half(p[0]) != scored})
            predicted |= loops.above([i for i in items if half(i[1]) == scored], tuned)
        return loops.measure(predicted, gold)
    scored = loops.mine(test[0], test[1], vector, **how)
    threshold = loops.walk(items, gold)
    if not exact or k == 3:
        near = [score for score, *_ in items if abs(score - threshold) < 1e-6]
        assume(set(near) <= {threshold} and all(abs(score - threshold) > 1e-6 for score, *_ in scored))
    return loops.measure(loops.above(scored, threshold), set(test[2]))


@pytest.mark.parametrize("vectors", [signs, pytest.param(gaussian, marks=pytest.mark.slow)])  # signs have ties
@pytest.mark.parametrize(
    "name", [min(PROTOCOLS), *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(PROTOCOLS)[1:])]
)
@given(dev=splits(), test=splits(), seed=st.integers(0, 10_000))
def test_equals_the_protocol_in_loops(tmp_path_factory, name, vectors, dev, test, seed):
    folder, vector = tmp_path_factory.mktemp("b"), vectors(seed)
    split_files(folder, "zh-en.dev", *dev)
    split_files(folder, "zh-en.test", *test)
    encode = lambda texts: np.array([vector(text) for text in texts])  # noqa: E731
    if name == "bucc/dev-split" and len({sha256(a.encode()).digest()[0] % 2 for a, _ in dev[2]}) == 1:
        with pytest.raises(EvaluationError, match=r"bucc/dev-split zh-en: one half .* no gold"):
            TASKS[name].run(encode, folder)
        return
    scores = TASKS[name].run(encode, folder)
    wanted = expected(name, dev, test, vector, exact=vectors is signs)
    found = tuple(value(scores, metric) for metric in ("f1", "precision", "recall"))
    assert found == pytest.approx(wanted, abs=1e-12)
    assert len(scores[0].items) == scores[0].n == len((dev if name in DEV_ONLY else test)[0])
    assert STATISTICS["f1"](scores[0].items) == pytest.approx(wanted[0], abs=1e-12)


def test_the_protocols_are_those_that_are_registered():
    assert set(TASKS) == set(PROTOCOLS)
    for name, (k, margin, direction, positive, merged) in PROTOCOLS.items():
        task = TASKS[name]
        assert (task.k, task.margin, task.direction) == (k, margin, direction)
        assert (task.floor is not None, task.repeated == "merged") == (positive, merged)
        assert task.floor is None or task.floor / 2 == 0  # the smallest number above 0


nearer = partial(noisy, dim=12, noise=0.7)


def test_a_mined_list_cut_at_that_threshold_reaches_the_f1_of_xtreme(tmp_path):
    """The functions a user mines with, on the same vectors, without the task."""
    dev, test = numbered(80, 40), numbered(130, 50)
    split_files(tmp_path, "zh-en.dev", *dev)
    split_files(tmp_path, "zh-en.test", *test)
    scores = TASKS["bucc/xtreme"].run(nearer, tmp_path)
    lists = [mine(*(nearer([text for _, text in side]) for side in split[:2])) for split in (dev, test)]
    tuned = tune(lists[0], {(i, i) for i in range(40)})
    result = quality(lists[1].above(tuned.threshold), {(i, i) for i in range(50)})
    assert 0.2 < result.f1 < 0.98
    for metric in ("f1", "precision", "recall"):
        assert value(scores, metric) == getattr(result, metric)
    (row,) = table(scores, "mining")
    assert (row["threshold"], row["f1 tuned"], row["gold"]) == (tuned.threshold, tuned.f1, 50)
    assert (row["tuned on"], row["scored on"], row["margin"], row["k"]) == ("dev", "test", "ratio", 4)


def test_mistakes_are_the_best_scored_wrong_pairs_with_what_was_expected(tmp_path):
    split_files(tmp_path, "zh-en.dev", *numbered(80, 40))
    split_files(tmp_path, "zh-en.test", *numbered(130, 50))
    rows = table(TASKS["bucc/ease"].run(nearer, tmp_path), "mistakes")
    assert len(rows) == 10
    assert all(above["score"] >= below["score"] for above, below in pairwise(rows))
    for row in rows:
        number = row["source"].split()[1]
        assert row["expected"] == (f"en {number}" if number.isdigit() else "")
        assert row["found"] != row["expected"]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_nothing_right_to_tune_on_keeps_nothing(tmp_path, name):
    """On the sample every source is nearest to another one's translation."""
    sources, targets, _ = numbered(8, 8)
    for stem, shift in (("zh-en.dev", 3), ("zh-en.test", 0)):
        split_files(tmp_path, stem, sources, targets, [(f"zh-{i}", f"en-{(i + shift) % 8}") for i in range(8)])
    scores = TASKS[name].run(by_last_word, tmp_path)
    assert {score.value for score in scores} == {0.0}
    assert all(row["threshold"].startswith("none") and row["kept"] == 0 for row in table(scores, "mining"))


def test_a_split_without_gold_leaves_only_the_tasks_that_do_without_it(tmp_path):
    """As XTREME publishes it: the text of the training split, and no gold."""
    split_files(tmp_path, "zh-en.dev", *numbered(12, 10))
    split_files(tmp_path, "zh-en.test", *numbered(12, 10))
    (tmp_path / "zh-en.test.gold").unlink()
    there = {task.name for task in MINING if task.subsets(tmp_path)}
    assert there == set(DEV_ONLY)
    assert all("training" in task.needs for task in MINING if task.name not in there)


SEARCHES = {task.name: task for task in BITEXT}
METRICS = ("accuracy", "precision", "recall", "f1")
EVERY, GOLD = "bucc/mteb", "bucc/mteb-v2"


def whole(folder, sources, targets, gold):
    """MTEB's first version: one record that contains everything, gold numbered from 1."""
    places = [{key: row + 1 for row, (key, _) in enumerate(side)} for side in (sources, targets)]
    record = {
        "sentence1": [text for _, text in sources],
        "sentence2": [text for _, text in targets],
        "gold": [[places[0][a], places[1][b]] for a, b in gold],
    }
    write(folder / "BUCC/zh-en/test.jsonl", json.dumps(record) + "\n")
    return record


def rows(folder, sources, targets, gold):
    """MTEB's second version: one gold pair a record."""
    texts = dict([*sources, *targets])
    records = [{"sentence1": texts[a], "sentence2": texts[b], "lang": "zh-en"} for a, b in gold]
    write(folder / "bucc-bitext-mining/test/zh-en.jsonl.gz", "".join(f"{json.dumps(record)}\n" for record in records))


def answers(queries, corpus):
    """For each query the row of greatest cosine; of equal texts the first."""
    found = []
    for query in noisy(queries):
        cosines = [cosine(query.tolist(), other.tolist()) for other in noisy(corpus)]
        found.append(corpus.index(corpus[int(np.argmax(cosines))]))
    return found


def shuffled(seed):
    """Twelve texts on many lines, so that labels and answers repeat."""
    rng = np.random.default_rng(seed)
    sides = [[(f"{code}-{i}", f"{code} {rng.integers(12)}") for i in range(25)] for code in ("zh", "en")]
    places = zip(rng.permutation(25)[:15], rng.integers(25, size=15), strict=True)
    return *sides, [(f"zh-{i}", f"en-{j}") for i, j in places]


@pytest.mark.slow
@settings(max_examples=25)
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
        scores = SEARCHES[name].run(noisy, folder)
        assert [value(scores, metric) for metric in METRICS] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_equals_mteb(tmp_path, seed):
    """The task of MTEB's package itself, on its own copy, with its own evaluator."""
    pytest.importorskip("mteb")
    from mteb.tasks.bitext_mining.multilingual.bucc_bitext_mining import BUCCBitextMining
    from mteb.timing import TimingStack
    from test_against_mteb import Model

    # No text twice in the corpus, where MTEB leaves open which is found; some targets belong to two queries.
    sources, targets, gold = numbered(30 + 5 * seed, 20 + 5 * seed)
    record = whole(tmp_path, sources, targets, [*gold, *[(a, "en-0") for a, _ in gold[1:5]]])
    theirs = BUCCBitextMining()
    theirs.dataset = {"zh-en": {"test": {name: [part] for name, part in record.items()}}}
    theirs.dataset_transform()
    settings = {"hf_split": "test", "hf_subset": "zh-en", "encode_kwargs": {}, "timer": TimingStack()}
    wanted = theirs._evaluate_subset(Model(noisy), theirs.dataset["zh-en"]["test"], **settings)
    scores = SEARCHES[EVERY].run(noisy, tmp_path)
    assert 0.1 < wanted["accuracy"] < 1
    assert [value(scores, metric) for metric in METRICS] == pytest.approx([wanted[one] for one in METRICS], abs=1e-6)


@pytest.mark.parametrize("name", [EVERY, GOLD])
def test_copies_of_mteb_and_files_of_bucc_give_the_same(tmp_path, name):
    split = numbered(40, 25)
    split_files(tmp_path / "files", "zh-en.test", *split)
    (whole if name == EVERY else rows)(tmp_path / "copy", *split)
    files, copy = (SEARCHES[name].run(noisy, tmp_path / folder) for folder in ("files", "copy"))
    assert files == copy
    assert [score.details for score in files] == [score.details for score in copy]
    assert 0 < value(files, "accuracy") < 1
    assert SEARCHES[name].subsets(tmp_path / "copy", languages=["cmn"]) == ("zh-en",)
    assert SEARCHES[name].subsets(tmp_path / "copy", languages=["de"]) == ()
    (whole if name == EVERY else rows)(tmp_path / "files", *numbered(20, 9))
    assert SEARCHES[name].run(noisy, tmp_path / "files") == files  # the publisher's files come first
