"""MTEB's layout: the files that mteb itself reads, with the main scores that it then shows."""

import json

import pytest

from isoglot.evaluation.base import Score
from isoglot.evaluation.mteb import MTEB, write_mteb
from isoglot.evaluation.scores import Scores

SETTINGS = {"encoder": "0123456789abcdef0123", "max_length": 128}


def bitext(task, subset, n, ending="", *, value=0.5):
    """The metrics that a task gives to MTEB's tools, with a value of its own for each."""
    names = ("accuracy", "f1", "precision", "recall")
    return [Score(task, subset, f"{name}{ending}", value + place / 100, n) for place, name in enumerate(names)]


def correlations(task, subset, n, kind="", *, value=0.5):
    return [Score(task, subset, f"{name}{kind}", value, n) for name in ("spearman", "pearson")]


SCORES = (
    *bitext("tatoeba", "cmn-eng", 1000, "/xx-en"),
    *bitext("tatoeba", "kor-eng", 1000, "/xx-en", value=0.7),
    Score("tatoeba", "kor-eng", "accuracy/en-xx", 0.9, 1000),
    Score("tatoeba", "mean", "f1/xx-en", 0.1, 2, ("cmn-eng", "kor-eng")),
    *bitext("bucc/mteb", "zh-en", 1899),
    *bitext("bucc/mteb-v2", "de-en", 9580),
    *(
        entry
        for year, n in {12: 3108, 13: 1500, 14: 3750, 15: 3000, 16: 1186}.items()
        for entry in correlations(f"sts{year}", "eng", n, "/all")
    ),
    *correlations("sts12", "eng", 3108, "/wmean", value=0.1),
    *correlations("sts-b", "eng", 1379, "/all"),
    *correlations("sts-b/mteb", "eng", 1379, "/all", value=0.25),
    *correlations("sick-r", "eng", 4927, "/all"),
    *correlations("sick-r/mteb", "eng", 9927, "/all"),
    *correlations("sts17", "kor-kor", 2846, value=0.25),
    *correlations("sts17", "deu-eng", 250, value=0.75),
    *correlations("sts17", "spa-eng-4b", 250, value=0.9),
    *correlations("sts22", "zho-eng", 161),
    *correlations("sts22/v1", "ara", 195),
    *correlations("sts-b-multi", "deu", 1379, value=0.5),
    *correlations("sts-b-multi/dev", "de", 1500, value=0.9),
    Score("mtop", "de", "accuracy", 0.5, 3549),
    Score("mtop", "de", "f1/macro", 0.4, 3549),
    Score("sib-200", "arb_Latn", "accuracy", 0.5, 204),
    Score("sib-200", "arb_Arab", "accuracy", 0.9, 204),
    Score("retrieval", "kor-eng", "accuracy/mean", 0.5, 10),
)


def test_names_and_values(tmp_path):
    paths = write_mteb(tmp_path, Scores(SCORES, "models/e5", SETTINGS))
    inner = tmp_path / "isoglot__e5" / "0123456789abcdef"
    assert {path.name for path in paths} == {f"{task.name}.json" for task in MTEB.values()} | {"model_meta.json"}
    assert set(inner.iterdir()) == set(paths)

    def entries(task, split="test"):
        return json.loads((inner / f"{task}.json").read_text())["scores"][split]

    chinese, korean = entries("Tatoeba")
    metrics = {"accuracy": 0.5, "f1": 0.51, "main_score": 0.51}
    assert chinese == metrics | {"hf_subset": "cmn-eng", "languages": ["cmn-Hans", "eng-Latn"]}
    assert korean["hf_subset"] == "kor-eng"
    assert {entry["hf_subset"]: entry["main_score"] for entry in entries("STS17")} == {"ko-ko": 0.25, "en-de": 0.75}
    assert [entry["main_score"] for entry in entries("STSBenchmark")] == [0.25]  # of the text that MTEB has
    for split in ("test", "dev"):
        assert [entry["hf_subset"] for entry in entries("STSBenchmarkMultilingualSTS", split)] == ["de"]


def test_without_the_main_score_nothing_is_claimed(tmp_path):
    accuracy = Score("tatoeba", "kor-eng", "accuracy/xx-en", 0.5, 1000)
    assert write_mteb(tmp_path, Scores((accuracy,), "m")) == []
    assert list(tmp_path.iterdir()) == []


def test_only_scores_of_as_many_items_as_mteb_has_are_written(tmp_path):
    scores = [*bitext("tatoeba", "kor-eng", 999, "/xx-en"), *bitext("tatoeba", "amh-eng", 168, "/xx-en")]
    scores += [*correlations("sts12", "eng", 3107, "/all"), *correlations("sts17", "kor-kor", 250)]
    assert {path.name for path in write_mteb(tmp_path, Scores(scores, "m"))} == {"Tatoeba.json", "model_meta.json"}
    (tatoeba,) = tmp_path.rglob("Tatoeba.json")
    assert [entry["hf_subset"] for entry in json.loads(tatoeba.read_text())["scores"]["test"]] == ["amh-eng"]


def test_files_of_an_earlier_evaluation_go_and_those_of_others_stay(tmp_path):
    def of(task):
        return tuple(score for score in SCORES if score.task == task)

    write_mteb(tmp_path, Scores(SCORES, "models/other", SETTINGS))
    first = write_mteb(tmp_path, Scores(of("sts17"), "models/e5", SETTINGS))[0].parent
    assert not (tmp_path / "isoglot__other").exists()
    theirs = {
        first / "STS13.json": {"dataset_revision": "7e90", "mteb_version": "2.26.24", "task_name": "STS13"},
        first / "notes.json": ["mine"],
        tmp_path / "isoglot__own" / "abc" / "model_meta.json": {"name": "isoglot/own", "framework": ["PyTorch"]},
        tmp_path / "other__model" / "x" / "STS17.json": json.loads((first / "STS17.json").read_text()),
    }
    for path, content in theirs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    (first / "broken.json").write_text("{")
    now = write_mteb(tmp_path, Scores(of("tatoeba"), "models/e5", SETTINGS))
    assert {path.name for path in now} == {"Tatoeba.json", "model_meta.json"}
    assert set(tmp_path.rglob("*.json")) == {*now, *theirs, first / "broken.json"}
    assert write_mteb(tmp_path, Scores(of("retrieval"), "models/e5", SETTINGS)) == []
    assert set(tmp_path.rglob("*.json")) == {*theirs, first / "broken.json"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Missing:UserWarning")
def test_mteb_reads_the_files(mteb, tmp_path):
    for path in write_mteb(tmp_path, Scores(SCORES, "models/e5", SETTINGS)):
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
    assert tatoeba.get_score(languages=["kor"]) == pytest.approx(0.71)


@pytest.mark.slow
def test_mteb_loads_the_folder_as_its_cache(mteb, tmp_path):
    write_mteb(tmp_path / "results", Scores(SCORES, "models/e5", SETTINGS))
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


@pytest.mark.parametrize(
    ("model", "settings", "folder"),
    [
        ("runs/mpcl/model", SETTINGS, "isoglot__mpcl/0123456789abcdef"),  # a trained model is called by its run
        ("model", {}, "isoglot__model/no_revision_available"),
        *((name, SETTINGS, "isoglot__e5/0123456789abcdef") for name in ("e5", "org/e5")),
        ("made/v.npy", {"vectors": "a" * 32}, f"isoglot__v.npy/{'a' * 16}"),  # vectors made elsewhere
    ],
)
def test_a_model_has_a_name_and_a_revision(tmp_path, model, settings, folder):
    paths = write_mteb(tmp_path, Scores(SCORES, model, settings))
    assert {path.parent for path in paths} == {tmp_path / folder}
