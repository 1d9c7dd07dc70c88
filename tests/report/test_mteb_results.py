"""MTEB's layout: the files that mteb itself reads, with the main scores that it then shows."""

from __future__ import annotations

import json
import re

import pytest

from isoglot.evaluation.base import Score
from isoglot.report.mteb import _NOT_IN_SIB, MTEB, write_mteb
from isoglot.report.scores import Results

SETTINGS = {"encoder": "0123456789abcdef0123", "max_length": 128}


def bitext(task, subset, way="", *, value=0.5):
    metrics = ("accuracy", "precision", "recall", "f1")
    return [Score(task, subset, f"{name}{way}", value + place / 100, 10) for place, name in enumerate(metrics)]


def correlations(task, subset, kind="", *, value=0.5):
    return [Score(task, subset, f"{name}{kind}", value, 10) for name in ("spearman", "pearson")]


SCORES = (
    *bitext("tatoeba", "cmn-eng", "/xx-en"),
    *bitext("tatoeba", "kor-eng", "/xx-en", value=0.7),
    Score("tatoeba", "kor-eng", "accuracy/en-xx", 0.9, 10),
    Score("tatoeba", "mean", "f1/xx-en", 0.1, 2, ("cmn-eng", "kor-eng")),
    *bitext("bucc/mteb", "zh-en"),
    *bitext("bucc/mteb-v2", "de-en"),
    *(entry for year in range(12, 17) for entry in correlations(f"sts{year}", "eng", "/all")),
    *correlations("sts12", "eng", "/wmean", value=0.1),
    *correlations("sts-b", "eng", "/all"),
    *correlations("sick-r", "eng", "/all"),
    *correlations("sts17", "kor-kor", value=0.25),
    *correlations("sts17", "deu-eng", value=0.75),
    *correlations("sts17", "spa-eng-4b", value=0.9),
    *correlations("sts22", "zho-eng"),
    *correlations("sts22/v1", "ara"),
    *correlations("sts-b-multi", "deu", value=0.5),
    *correlations("sts-b-multi/dev", "de", value=0.9),
    Score("mtop", "de", "accuracy", 0.5, 10),
    Score("mtop", "de", "f1/macro", 0.4, 10),
    Score("sib-200", "arb_Latn", "accuracy", 0.5, 10),
    Score("sib-200", "arb_Arab", "accuracy", 0.9, 10),
    Score("retrieval", "kor-eng", "accuracy/mean", 0.5, 10),
)


def test_names_and_values(tmp_path):
    paths = write_mteb(tmp_path, Results("models/e5", SETTINGS, SCORES))
    inner = tmp_path / "isoglot__e5" / "0123456789abcdef"
    assert {path.name for path in paths} == {f"{task.name}.json" for task in MTEB.values()} | {"model_meta.json"}
    assert set(inner.iterdir()) == set(paths)
    found = json.loads((inner / "Tatoeba.json").read_text())
    entries = {entry["hf_subset"]: entry for entry in found["scores"]["test"]}
    assert entries["cmn-eng"] == {
        "accuracy": 0.5,
        "precision": 0.51,
        "recall": 0.52,
        "f1": 0.53,
        "main_score": 0.53,
        "hf_subset": "cmn-eng",
        "languages": ["cmn-Hans", "eng-Latn"],
    }
    assert set(entries) == {"cmn-eng", "kor-eng"}
    sts17 = json.loads((inner / "STS17.json").read_text())["scores"]["test"]
    assert {entry["hf_subset"]: entry["main_score"] for entry in sts17} == {"ko-ko": 0.25, "en-de": 0.75}
    multi = json.loads((inner / "STSBenchmarkMultilingualSTS.json").read_text())["scores"]
    assert {split: [e["hf_subset"] for e in entries] for split, entries in multi.items()} == {
        "test": ["de"],
        "dev": ["de"],
    }


def test_without_the_main_score_nothing_is_claimed(tmp_path):
    accuracy = Score("tatoeba", "kor-eng", "accuracy/xx-en", 0.5, 10)
    assert write_mteb(tmp_path, Results("m", {}, (accuracy,))) == []
    assert list(tmp_path.iterdir()) == []


def test_the_same_results_give_the_same_bytes(tmp_path):
    paths = [write_mteb(tmp_path / name, Results("m", {}, SCORES)) for name in ("a", "b")]
    for one, other in zip(*paths, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert one.parent.name == "no_revision_available"


@pytest.fixture(scope="module")
def mteb():
    return pytest.importorskip("mteb")


@pytest.mark.parametrize("task", sorted(MTEB))
def test_the_tables_are_those_of_mteb(mteb, task):
    at = MTEB[task]
    metadata = mteb.get_task(at.name).metadata
    assert at.main == metadata.main_score
    assert at.split in metadata.eval_splits
    languages = {name: list(codes) for name, codes in at.subsets.items()}
    theirs = {name: list(dict.fromkeys(codes)) for name, codes in metadata.hf_subsets_to_langscripts.items()}
    if task == "sib-200":
        assert languages == {}
        assert all(codes == [name.replace("_", "-")] for name, codes in theirs.items())
        assert all(re.fullmatch("[a-z]{3}_[A-Z][a-z]{3}", name) for name in theirs)
        assert len(_NOT_IN_SIB) == 8 == 205 - len(theirs)
        assert not set(_NOT_IN_SIB) & set(theirs)
    else:
        assert languages == theirs


@pytest.mark.filterwarnings("ignore:.*Missing:UserWarning")
def test_mteb_reads_the_files(mteb, tmp_path):
    for path in write_mteb(tmp_path, Results("models/e5", SETTINGS, SCORES)):
        if path.name != "model_meta.json":
            result = mteb.TaskResult.from_disk(path)
            main = [entry["main_score"] for entries in result.scores.values() for entry in entries]
            assert result.get_score() == pytest.approx(sum(main) / len(main))
            assert result.task_name == path.stem
            kept = result.validate_and_filter_scores(mteb.get_task(path.stem))  # adds NaN for subsets that lack
            for split, entries in result.scores.items():
                values = {entry["hf_subset"]: entry["main_score"] for entry in kept.scores[split]}
                assert {e["hf_subset"]: e["main_score"] for e in entries}.items() <= values.items()
    tatoeba = mteb.TaskResult.from_disk(tmp_path / "isoglot__e5" / "0123456789abcdef" / "Tatoeba.json")
    assert tatoeba.get_score(languages=["kor"]) == pytest.approx(0.73)


def test_mteb_loads_the_folder_as_its_cache(mteb, tmp_path):
    write_mteb(tmp_path / "results", Results("models/e5", SETTINGS, SCORES))
    loaded = mteb.ResultCache(cache_path=tmp_path).load_results(validate_and_filter=False)
    (model,) = loaded.model_results
    assert (model.model_name, model.model_revision) == ("isoglot/e5", "0123456789abcdef")
    scores = {result.task_name: result.get_score() for result in model.task_results}
    assert set(scores) == {task.name for task in MTEB.values()}
    assert scores["STS17"] == pytest.approx(0.5)
    from mteb.models import ModelMeta

    meta = ModelMeta.model_validate_json(
        (tmp_path / "results" / "isoglot__e5" / "0123456789abcdef" / "model_meta.json").read_text()
    )
    assert (meta.name, meta.max_tokens) == ("isoglot/e5", 128)
