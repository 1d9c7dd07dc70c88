"""Tatoeba, BUCC and the similarity sets against the tasks of the package `mteb`, with its own evaluators.

Both sides get the same texts and the same vectors; nothing is fetched. (`bucc/mteb` and the classification tasks are
held against `mteb` in their own test files.)
"""

import cases_sts
import numpy as np
import pytest
from cases import noisy, random_vector
from folders import tatoeba
from test_bucc import numbered, split_files

from conftest import DATA, published
from isoglot.evaluation import TASKS
from isoglot.evaluation.tasks.sts import read_pairs

pytestmark = pytest.mark.slow  # importing mteb takes as long as a hundred tests


class Model:
    """Vectors of a function, with the cosines of `mteb` itself."""

    mteb_model_meta = None

    def __init__(self, function):
        self.function = function

    def encode(self, inputs, **_):
        return np.concatenate([self.function(batch["text"]) for batch in inputs])

    def similarity(self, first, second):
        from mteb.similarity_functions import cos_sim

        return cos_sim(first, second)

    def similarity_pairwise(self, first, second):
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(first, second)


def theirs(mteb, name, function, rows):
    """MTEB's scores of a task of its own whose data are `rows`: subset -> column -> values."""
    from datasets import Dataset

    task = mteb.get_task(name)
    split = task.metadata.eval_splits[-1]
    tables = {subset: {split: Dataset.from_dict(columns)} for subset, columns in rows.items()}
    task.dataset, task.data_loaded = tables.get("default", tables), True
    return task.evaluate(Model(function), split, list(rows), encode_kwargs={"batch_size": 64})


def ours(task, function, folder, metrics, **options):
    """Our scores under the same names: subset -> metric -> value; averages left out."""
    found = {}
    for score in TASKS[task].run(function, folder, **options):
        if score.metric in metrics and not score.over:
            found.setdefault(score.subset, {})[metrics[score.metric]] = score.value
    return found


BITEXT = {name: name for name in ("accuracy", "precision", "recall", "f1")}
CORRELATIONS = {"spearman": "cosine_spearman", "pearson": "cosine_pearson"}


def pairs(table):
    """Rows as MTEB's columns; pairs of translations have no score."""
    columns = [list(column) for column in zip(*table, strict=True)]
    return dict(zip(("sentence1", "sentence2", "score"), columns, strict=False))


def same(found, expected, names):
    """`names` are our subsets under MTEB's names; both sides have them all, and no value differs."""
    assert set(found) == set(names.values())
    for theirs_, ours_ in names.items():
        assert found[ours_] == pytest.approx({key: expected[theirs_][key] for key in found[ours_]}, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_tatoeba(mteb, tmp_path, seed):
    table = {code: [(f"{code} {seed} {i}", f"english {seed} {i}") for i in range(40)] for code in ("kor", "deu")}
    tatoeba(tmp_path, table)
    expected = theirs(mteb, "Tatoeba", noisy, {f"{code}-eng": pairs(rows) for code, rows in table.items()})
    found = ours("tatoeba", noisy, tmp_path, {"accuracy/xx-en": "accuracy", "f1/xx-en": "f1"})
    assert all(0.1 < found[subset]["f1"] < found[subset]["accuracy"] < 1 for subset in found)
    same(found, expected, {name: name for name in expected})


@pytest.mark.parametrize("seed", range(3))
def test_bucc_version_2(mteb, tmp_path, seed):
    """The English side is the English sentences of gold and no others."""
    sources, targets, gold = numbered(40 + seed, 25 + seed)
    split_files(tmp_path, "zh-en.training", sources, targets, gold)
    texts = dict([*sources, *targets])
    rows = {"zh-en": pairs([(texts[one], texts[other]) for one, other in gold])}
    found = ours("bucc/mteb-v2", noisy, tmp_path, BITEXT)
    assert 0.1 < found["zh-en"]["f1"] < 1
    same(found, theirs(mteb, "BUCC.v2", noisy, rows), {"zh-en": "zh-en"})


@pytest.mark.parametrize(
    ("task", "name", "write", "scale"),
    [("sts17", "STS17", cases_sts.sts17, (0, 5)), ("sts22", "STS22.v2", cases_sts.sts22, (1, 4))],
)
def test_similarity_in_several_languages(mteb, tmp_path, task, name, write, scale):
    write(tmp_path)
    subsets = {"en-ar": "ara-eng", "es-es": "spa-spa"} if task == "sts17" else {"zh-en": "zho-eng", "de": "deu"}
    rows = {subset: pairs(cases_sts.rows(subset, scale=scale)) for subset in subsets}
    found = ours(task, noisy, tmp_path, CORRELATIONS)
    same({subset: found[subset] for subset in subsets.values()}, theirs(mteb, name, noisy, rows), subsets)


def test_english_similarity_is_one_correlation_over_all_corpora(mteb, tmp_path):
    cases_sts.english("sts13")(tmp_path)
    table = [row for corpus in cases_sts.CORPORA["sts13"] for row in cases_sts.rows(corpus, cases_sts.PAIRS // 3)]
    found = ours("sts13", noisy, tmp_path, {f"{kind}/all": name for kind, name in CORRELATIONS.items()})
    same(found, theirs(mteb, "STS13", noisy, {"default": pairs(table)}), {"default": "eng"})


def spelled(texts):
    """Means of a vector for each three letters: near where words or names are shared, as real encoders' are."""
    triples = [[text[at : at + 3] for at in range(max(1, len(text) - 2))] for text in texts]
    return np.array([np.mean([random_vector(part, 128) for part in parts], axis=0) for parts in triples], np.float32)


def published_rows(task, subset):
    """The rows of a subset in the shared data, as MTEB calls their columns."""
    folder = {"tatoeba": "tatoeba-laser", "sts16": "senteval-en", "sts17": "sts17-official"}.get(task, "stsb-multi-mt")
    published(folder)
    if task == "tatoeba":
        names = [f"tatoeba.{subset}.{code}" for code in subset.split("-")]
        texts = [(DATA / folder / "v1" / name).read_text(encoding="utf-8").split("\n")[:-1] for name in names]
        return pairs(zip(*texts, strict=True))
    found = read_pairs(TASKS[task], DATA, subset)
    return pairs(zip(found.texts(0), found.texts(1), found.labels, strict=True))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("task", "name", "subset", "of_mteb", "language", "metrics"),
    [
        ("tatoeba", "Tatoeba", "tzl-eng", "tzl-eng", "tzl", {"accuracy/xx-en": "accuracy", "f1/xx-en": "f1"}),
        ("tatoeba", "Tatoeba", "ina-eng", "ina-eng", "ina", {"accuracy/xx-en": "accuracy", "f1/xx-en": "f1"}),
        ("sts16", "STS16", "eng", "default", "eng", {f"{kind}/all": name for kind, name in CORRELATIONS.items()}),
        ("sts17", "STS17", "tur-eng", "en-tr", "tur", CORRELATIONS),
        ("sts-b-multi", "STSBenchmarkMultilingualSTS", "deu", "de", "deu", CORRELATIONS),
    ],
)
def test_on_the_published_pairs(mteb, task, name, subset, of_mteb, language, metrics):
    rows = published_rows(task, subset)
    found = ours(task, spelled, DATA, metrics, languages=[language])
    assert all(0.02 < value < 1 for value in found[subset].values())
    same({subset: found[subset]}, theirs(mteb, name, spelled, {of_mteb: rows}), {of_mteb: subset})
