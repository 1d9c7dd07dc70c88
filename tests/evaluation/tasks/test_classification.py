"""Probes: sampling, scores, layers and features against loops and against MTEB's evaluator."""

import unicodedata
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from cases import by_last_word, by_text, random_vector, value
from cases_classification import mldoc_data, mtop_data, pawsx_data, put, sib_data, xnli_data
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Row, Rows
from isoglot.evaluation import TASKS
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.sets import sources
from isoglot.evaluation.tasks.classification import (
    STRENGTHS,
    Outcome,
    choose_strength,
    clean,
    combine,
    logistic,
    score_topics,
    undersample,
)
from isoglot.evaluation.tasks.linear import BATCHES, RATES, SEEDS, apply, best_layers, fit

MTOP, SIB, SIB_ZERO, MLDOC, MLDOC_RAW, XNLI, PAWSX = (
    TASKS[name] for name in ("mtop", "sib-200", "sib-200/zero-shot", "mldoc", "mldoc/raw", "xnli", "paws-x")
)


def rows_of(task, folder, split, code):
    return sources(task.name, task.reads, folder)[split, code].read("t")


def noisy(texts, noise=2.5):
    """Something of the last word, much of the text: neither chance nor perfect."""
    return (by_last_word(texts) + noise * by_text(texts)).astype(np.float32)


def sampled_in_loops(labels, experiments, per_label, seed):
    order = list(range(len(labels)))
    draws = []
    for _ in range(experiments):
        generator = np.random.RandomState(seed)
        generator.shuffle(order)
        counted, draw = {}, []
        for row in order:
            counted[labels[row]] = counted.get(labels[row], 0) + 1
            if counted[labels[row]] <= per_label:
                draw.append(row)
        draws.append(draw)
    return draws


@settings(max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=20) | st.lists(st.integers(0, 2), min_size=30, max_size=60))
def test_sampling_equals_the_protocol_in_loops(labels):
    draws = undersample(labels)
    assert draws == sampled_in_loops(labels, 10, 8, 42)
    for draw in draws:
        assert Counter(labels[row] for row in draw) == {n: min(8, count) for n, count in Counter(labels).items()}


@settings(max_examples=15)
@given(st.integers(2, 5), st.integers(1, 30), st.integers(1, 4), st.integers(0, 10**6))
def test_scores_equal_loops(classes, count, runs, seed):
    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(0, classes, count), rng.integers(0, classes, (runs, count))
    outcome = Outcome(tuple(range(classes)), gold, predicted, np.zeros((count, classes), np.float32))
    right, f1 = 0.0, 0.0
    for run in predicted:
        right += sum(a == b for a, b in zip(run, gold, strict=True)) / count
        each = []
        for label in set(gold) | set(run):
            hits = sum(a == b == label for a, b in zip(run, gold, strict=True))
            each.append(2 * hits / (list(run).count(label) + list(gold).count(label)))
        f1 += sum(each) / len(each)
    score, macro, *_ = score_topics("t", "s", outcome, Rows(Row(("",), ("",), label) for label in gold))
    assert score.value == pytest.approx(right / runs)
    assert score.items.mean() == pytest.approx(right / runs, abs=1e-6)
    assert (macro.metric, macro.value) == ("f1/macro", pytest.approx(f1 / runs))


def test_mistakes_are_the_most_confident_first_and_ten_at_most():
    texts = tuple(f"text {i}" for i in range(30))
    gold = np.zeros(30, np.int64)
    wrong = np.linspace(0.2, 0.95, 30, dtype=np.float32)
    answer = np.stack([1 - wrong, wrong], axis=1)
    examples = Rows(Row((text,), (text,), "ab"[i % 2], name=("", "Bee")[i % 2]) for i, text in enumerate(texts))
    outcome = combine(("a", "b"), gold, [(answer.argmax(axis=1), answer)])
    (detail,) = next(score_topics("t", "s", outcome, examples)).details
    assert detail.columns == ("text", "gold", "predicted", "probability")
    assert [row[:3] for row in detail.rows] == [(f"text {i}", "a", "Bee") for i in range(29, 19, -1)]
    assert detail.rows[0][3] == pytest.approx(0.95)
    right = combine(("a", "b"), gold, [(gold, answer[::-1] * [1, 0])])
    assert next(score_topics("t", "s", right, examples)).details == ()


@pytest.mark.slow
def test_mtop_and_sib_equal_the_evaluator_of_mteb(tmp_path):
    pytest.importorskip("mteb")
    mtop_data(tmp_path, sizes={"train": 30, "test": 20})
    sib_data(tmp_path)
    for task, name, codes in (
        (MTOP, "MTOPDomainClassification", ("de", "fr")),
        (SIB, "SIB200Classification", ("kor_Hang",)),
    ):
        ours = task.run(noisy, tmp_path)
        theirs = mteb_scores(name, task, tmp_path, codes)
        for code in codes:
            assert 0.15 < value(ours, code, "accuracy") < 0.95
            assert value(ours, code, "accuracy") == pytest.approx(theirs[code]["accuracy"], abs=1e-12)
            assert value(ours, code, "f1/macro") == pytest.approx(theirs[code]["f1"], abs=1e-12)


def mteb_scores(name, ours, folder, codes):
    """MTEB's own scores of its task, on our texts and vectors instead of those of a hub."""
    import mteb
    from datasets import Dataset, DatasetDict
    from test_against_mteb import Model

    task = mteb.get_task(name)
    task.dataset, task.data_loaded = {}, True
    for code in codes:
        parts = {split: rows_of(ours, folder, split, code) for split in ("train", "test")}
        classes, column = sorted(set(parts["train"].labels)), task.label_column_name
        tables = {
            split: {"text": part.texts(), column: [classes.index(label) for label in part.labels]}
            for split, part in parts.items()
        }
        task.dataset[code] = DatasetDict({split: Dataset.from_dict(table) for split, table in tables.items()})
    return task.evaluate(Model(noisy), "test", list(codes), encode_kwargs={"batch_size": 512})


def test_only_sampled_training_texts_are_encoded(tmp_path):
    mtop_data(tmp_path, codes=("de",), sizes={"train": 200, "test": 2})
    asked = []
    MTOP.run(lambda texts: asked.extend(texts) or by_text(texts), tmp_path)
    assert len([text for text in asked if " train " in text]) <= 10 * 8 * 11


def test_a_strength_is_chosen_on_training_data_alone_and_never_parts_a_group():
    rng = np.random.default_rng(0)
    gold = np.repeat([0, 1], 60)
    vectors = (rng.standard_normal((120, 8)) * 0.01 + gold[:, None] * 0.01).astype(np.float32)
    assert choose_strength(vectors, gold, list(range(120))) in STRENGTHS[1:]  # small vectors need a great C
    assert choose_strength(vectors, gold, ["one"] * 60 + ["two"] * 60) == 1.0  # a class would be lost: none is chosen


def adamw_in_loops(train, dev, *, classes, batch, rate, seed):
    """One layer in float64, the update of AdamW (without decay) written out."""
    draw = torch.Generator().manual_seed(seed)
    (vectors, gold), bound = train, train[0].shape[1] ** -0.5
    weights = torch.empty(classes, vectors.shape[1]).uniform_(-bound, bound, generator=draw).double().numpy()
    biases = torch.empty(classes).uniform_(-bound, bound, generator=draw).double().numpy()
    layer = np.concatenate([weights, biases[:, None]], axis=1)
    first, second, step = np.zeros_like(layer), np.zeros_like(layer), 0
    total, best, kept = 5 * int(np.ceil(len(gold) / batch)), -1, None
    for _ in range(5):
        order = torch.randperm(len(gold), generator=draw).tolist()
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            gradient = np.zeros_like(layer)
            for row in rows:
                extended = np.append(vectors[row].astype(np.float64), 1)
                scores = np.exp(layer @ extended)
                share = scores / scores.sum() - (np.arange(classes) == gold[row])
                gradient += np.outer(share, extended) / len(rows)
            gradient *= min(1, 1 / (np.sqrt((gradient**2).sum()) + 1e-6))
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            falling = rate * (1 - step / total)
            step += 1
            layer = layer - falling * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            if step % 10 == 0 or step == total:
                right = np.mean([(layer[:, :-1] @ v + layer[:, -1]).argmax() == g for v, g in zip(*dev, strict=True)])
                if right > best:
                    best, kept = right, layer
    return best, kept


@pytest.mark.parametrize(("batch", "rate", "seed"), [(32, 0.1, 0), (64, 0.01, 1), (16, 0.1, 2)])
def test_the_linear_layer_equals_adamw_in_loops(batch, rate, seed):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((3, 6))
    sets = []
    for count in (150, 60):
        gold = rng.integers(0, 3, count)
        sets.append(((centres[gold] + 2 * rng.standard_normal((count, 6))).astype(np.float32), gold))
    settings = {"classes": 3, "batch": batch, "rate": rate, "seed": seed}
    right, (weights, biases) = fit(*sets, **settings)
    expected, layer = adamw_in_loops(*sets, **settings)
    assert 0.2 < right == expected < 1
    np.testing.assert_allclose(np.column_stack([weights, biases]), layer, atol=2e-4)


@pytest.mark.slow
def test_the_grid_is_chosen_by_the_mean_dev_accuracy_of_the_seeds():
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 3, 200)
    vectors = (np.eye(3)[gold] + rng.standard_normal((200, 3))).astype(np.float32)
    train, dev = (vectors[:140], gold[:140]), (vectors[140:], gold[140:])
    table = {
        (batch, rate): np.mean([fit(train, dev, classes=3, batch=batch, rate=rate, seed=s)[0] for s in SEEDS])
        for batch in BATCHES
        for rate in RATES
    }
    batch, rate = max(table, key=table.get)
    for layer, seed in zip(best_layers(train, dev, classes=3), SEEDS, strict=True):
        np.testing.assert_array_equal(layer[0], fit(train, dev, classes=3, batch=batch, rate=rate, seed=seed)[1][0])


def with_threads(count):
    """Weights, probabilities and predictions of a linear layer and of logistic regression by `count` threads."""
    draw = np.random.default_rng(0)
    tables = []
    for rows, width, classes in ((701, 384, 7), (99, 384, 7), (1000, 384, 7), (88, 768, 11), (1000, 768, 11)):
        gold = np.arange(rows) % classes
        vectors = draw.standard_normal((classes, width))[gold] + 6 * draw.standard_normal((rows, width))
        tables.append((vectors.astype(np.float32), gold))
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            _, layer = fit(tables[0], tables[1], classes=7, batch=64, rate=0.01, seed=0)
            answers = [apply(layer, tables[2][0]), logistic(*tables[3])(tables[4][0])]
    finally:
        torch.set_num_threads(before)
    return [*layer, *(probability for _, probability in answers)], [predicted for predicted, _ in answers]


def test_the_number_of_threads_changes_no_byte():
    one, two = (with_threads(count) for count in (1, 2))
    assert [[part.tobytes() for part in kind] for kind in one] == [[part.tobytes() for part in kind] for kind in two]


def cleaned_in_loops(text):
    """The steps of EASE's reader one after the other: runs, the line of Reuters, case, blanks, marks, composition."""
    text = text.rstrip()
    kept = "".join(sign for i, sign in enumerate(text) if sign not in " \u3000" or text[i - 1 : i] != sign)
    notice, bare = "(c) Reuters Limited ", ""
    while kept:
        year = kept[len(notice) : len(notice) + 4]
        cut = len(notice) + 4 if kept.startswith(notice) and len(year) == 4 and year.isdigit() else 0
        bare, kept = bare + ("" if cut else kept[0]), kept[cut or 1 :]
    spaced = ""
    for sign in bare.lower():
        if not sign.isspace():
            spaced += sign
        elif not spaced.endswith(" "):
            spaced += " "
    letters = [sign for sign in unicodedata.normalize("NFD", spaced) if unicodedata.category(sign) != "Mn"]
    return unicodedata.normalize("NFC", "".join(letters))


NOTICES = ("(c) Reuters Limited 1997", "(c)  Reuters Limited 96", "(c) ", "Reuters Limited ", "1997")


@given(st.lists(st.sampled_from([*NOTICES, *"AÉが한й \u0301\u3000\xa0\u2028\n"]), max_size=12))
def test_cleaning_equals_the_steps_of_ease_in_loops(pieces):
    assert clean("".join(pieces)) == cleaned_in_loops("".join(pieces))


@pytest.mark.slow
def test_mldoc_cleans_and_its_raw_form_does_not(tmp_path):
    mldoc_data(tmp_path)
    for task, expected in ((MLDOC, "eng train.1000 0 ccat"), (MLDOC_RAW, "CCAT")):
        asked = []
        task.run(lambda texts, asked=asked: asked.extend(texts) or by_text(texts), tmp_path)
        assert asked[0].endswith(expected)


@pytest.mark.slow
def test_the_layer_is_learnt_in_english_only(tmp_path):
    """Vectors of German that are turned round: an English layer is wrong everywhere, one learnt in German is not."""
    sib_data(tmp_path)
    two = {"geography": (1, "a"), "health": (-1, "a"), "sports": (1, "b"), "travel": (-1, "b")}

    def turned(texts):
        ways = [(*two[text.split()[-1]], -1 if text.startswith("deu") else 1) for text in texts]
        return np.array([sign * turn * random_vector(word) for sign, word, turn in ways])

    found = SIB_ZERO.run(turned, tmp_path)
    assert [value(found, code, "accuracy") for code in ("eng_Latn", "kor_Hang", "deu_Latn")] == [1, 1, 0]
    assert value(SIB.run(turned, tmp_path), "deu_Latn", "accuracy") == 1


def test_a_language_without_training_texts_is_named_and_a_set_without_any_is_not_there(tmp_path):
    sib_data(tmp_path)
    (tmp_path / "annotated/kor_Hang/train.tsv").unlink()
    with pytest.raises(EvaluationError, match=r"sib-200 kor_Hang, split train: .* has no train split for kor_Hang"):
        SIB.run(by_text, tmp_path, languages=["ko"])
    for path in tmp_path.glob("annotated/*/train.tsv"):
        path.unlink()
    with pytest.raises(EvaluationError, match=r"sib-200: no data in .*; it needs files .*/train.tsv"):
        evaluate(by_text, [SIB], data=tmp_path)


def probe_in_loops(train, gold, groups, test):
    """Every strength tried on the groups drawn apart, the first best one refitted on everything."""
    from sklearn.linear_model import LogisticRegression

    names = np.unique(groups)
    apart_names = set(names[np.random.RandomState(0).permutation(len(names))[: int(np.ceil(0.2 * len(names)))]])
    apart = np.array([group in apart_names for group in groups])
    best = (-1.0, None)
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=200).fit(train[~apart], gold[~apart])
        right = sum(int(p == g) for p, g in zip(model.predict(train[apart]), gold[apart], strict=True)) / apart.sum()
        if right > best[0]:
            best = (right, strength)
    return LogisticRegression(C=best[1], max_iter=200).fit(train, gold).predict(test)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_xnli_equals_the_protocol_in_loops(tmp_path):
    xnli_data(tmp_path, codes=("en", "de"), premises=60)
    encode = partial(noisy, noise=3)

    def table(split, code):
        pairs = rows_of(XNLI, tmp_path, split, code)
        rows = []
        for one, two in zip(encode(pairs.texts(0)), encode(pairs.texts(1)), strict=True):
            rows.append(np.concatenate([one, two, abs(one - two), one * two]))
        return np.array(rows), np.array([sorted(set(pairs.labels)).index(x) for x in pairs.labels]), pairs.texts(0)

    (train, gold, groups), (test, expected, _) = table("dev", "en"), table("test", "de")
    right = probe_in_loops(train, gold, np.array(groups), test) == expected
    scores = XNLI.run(encode, tmp_path, languages=["de"])
    assert 0.4 < value(scores, "de", "accuracy") == pytest.approx(right.mean())
    assert scores[0].items.tolist() == right.tolist()


def test_a_label_that_is_wrong_is_the_mistake_with_both_sentences(tmp_path):
    pawsx_data(tmp_path)
    path = tmp_path / "test-de.tsv"
    lines = path.read_text().splitlines()
    first, second, label = lines[6].split("\t")
    put(path, [*lines[:6], f"{first}\t{second}\t{1 - int(label)}", *lines[7:]])
    scores = {score.subset: score for score in PAWSX.run(partial(noisy, noise=0.3), tmp_path)}
    (detail,) = scores["de"].details
    assert detail.kind == "mistakes"
    assert detail.columns == ("sentence 1", "sentence 2", "gold", "predicted", "probability")
    assert [row[:4] for row in detail.rows] == [(first, second, "1", "0")]
    assert 0.5 < detail.rows[0][4] <= 1
    assert scores["ko"].details == scores["en"].details == scores["mean"].details == ()


def test_splits_that_lack_labels_or_english_to_learn_from_are_no_subsets(tmp_path):
    pawsx_data(tmp_path)
    lines = (tmp_path / "test-ko.tsv").read_text().splitlines()
    put(tmp_path / "test-ko.tsv", [line.rpartition("\t")[0] for line in lines])
    assert PAWSX.subsets(tmp_path) == ("de", "en")
    (tmp_path / "dev-en.tsv").unlink()
    assert PAWSX.subsets(tmp_path) == ()
    assert PAWSX.run(by_text, tmp_path) == []


def test_products_beyond_single_precision_are_refused(tmp_path):
    xnli_data(tmp_path)
    with pytest.raises(EvaluationError, match=r"^xnli en, split dev: .*dev-en.tsv:1: the product of the pair's"):
        XNLI.run(lambda texts: by_text(texts) * 1e30, tmp_path)
