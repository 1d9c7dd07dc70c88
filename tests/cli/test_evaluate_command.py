"""The command `evaluate` when a task fails: what was finished before it is kept, and the error still ends the run."""

import signal

import pytest
from cases import by_text
from command_line import as_function

import isoglot
from isoglot.cli import evaluation as verb
from isoglot.cli.evaluation import tasks as show_list
from isoglot.core.errors import EvaluationError
from isoglot.evaluation.scores import read_results
from isoglot.evaluation.tasks.sts import Sts


@pytest.fixture
def data(tmp_path):
    for side in ("deu", "eng"):
        (tmp_path / f"tatoeba.deu-eng.{side}").write_text(f"{side} one\n{side} two\n", encoding="utf-8")
    (tmp_path / "retrieval.tsv").write_text("deu\teng\na\tb\nc\td\te\n", encoding="utf-8")
    (tmp_path / "sts.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t2\ne\tf\t3\n", encoding="utf-8")
    return tmp_path


evaluate_verb = as_function(verb.evaluate)


def evaluate(data, *tasks):
    evaluate_verb(output=data / "scores", data=data, function="cases:by_text", tasks=",".join(tasks))


def test_a_broken_file_loses_the_scores_of_no_earlier_task(data, capsys):
    with pytest.raises(EvaluationError, match=r"^retrieval: .*retrieval.tsv:3"):
        evaluate(data, "retrieval", "tatoeba")
    assert not (data / "scores").exists()
    with pytest.raises(EvaluationError, match=r"^retrieval: .*retrieval.tsv:3: a cell too many"):
        evaluate(data, "tatoeba", "retrieval", "similarity")
    assert list(read_results(data / "scores")) == isoglot.evaluate(by_text, ["tatoeba"], data=data)
    assert "finished: tatoeba; the next task failed" in capsys.readouterr().err


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyboardInterrupt(), SystemExit(3)])
def test_what_stops_a_function_loses_no_finished_scores_either(data, capsys, monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(Sts, "run", broken)
    with pytest.raises(type(error)):
        evaluate(data, "tatoeba", "sts")
    assert {score.task for score in read_results(data / "scores")} == {"tatoeba"}
    assert "finished: tatoeba; the next task failed" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_loses_no_finished_scores(data, monkeypatch, run_main, number, code):
    before = signal.getsignal(number)
    monkeypatch.setattr(Sts, "run", lambda *_, **__: signal.raise_signal(number))
    words = ("--function", "cases:by_text", "--tasks", "tatoeba,sts", "--data", data, "-o", data / "scores")
    ended, _, err = run_main("evaluate", *words)
    assert ended == code
    assert err.splitlines()[-1].startswith("isoglot: interrupted")
    assert {score.task for score in read_results(data / "scores")} == {"tatoeba"}
    assert signal.getsignal(number) is before


def test_a_copy_that_cannot_be_told_names_the_task(data, capsys):
    for revision in ("aa", "bb"):
        folder = data / "datasets--mteb--sickr-sts/snapshots" / revision
        folder.mkdir(parents=True)
        (folder / "test.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"^sick-r/mteb: .*snapshots: 2 revisions"):
        evaluate(data, "tatoeba", "sick-r/mteb")
    assert (data / "scores" / "results.json").exists()
    capsys.readouterr()
    show_list(data)
    shown = " ".join(capsys.readouterr().out.split())
    assert "tatoeba (1 subsets" in shown
    assert "2 revisions of the set" in shown


def test_results_are_written_though_the_page_fails(data, monkeypatch):
    def broken(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr("isoglot.report.page.write_page", broken)
    with pytest.raises(OSError, match="no room"):
        evaluate(data, "tatoeba")
    assert read_results(data / "scores")


def test_a_number_that_lacks_scores_names_them_and_the_command(data, capsys):
    evaluate(data, "mpcl")
    out = " ".join(capsys.readouterr().out.split())
    command = f"isoglot data get MTOPDomainClassification --data {data}"
    assert f"missing: MTOP: no mtop mtop-6 accuracy; get it with: {command}" in out
    assert out.count(command) == 1
    text = (data / "scores" / "results.md").read_text(encoding="utf-8")
    assert "- mean: mean of the columns BUCC, Tatoeba-14" in text
    assert "\n- missing: BUCC: no bucc/xtreme de-en fr-en ru-en zh-en f1; " in text


def test_results_for_mteb_are_in_the_folder_of_that_name(data):
    lines = "".join(f"line {i}\n" for i in range(1000))  # as many as MTEB has
    for side in ("deu", "eng"):
        (data / f"tatoeba.deu-eng.{side}").write_text(lines, encoding="utf-8")
    evaluate(data, "tatoeba")
    assert [path.stem for path in (data / "scores" / "mteb").rglob("T*.json")] == ["Tatoeba"]


def test_a_task_named_beside_a_suite_is_shown_too(data, capsys):
    evaluate(data, "mpcl")
    alone = capsys.readouterr().out
    evaluate(data, "mpcl", "sts")
    both = capsys.readouterr().out
    assert both.startswith(alone)
    assert "spearman" in both.removeprefix(alone)
    evaluate(data, "quick")
    once = capsys.readouterr().out.count("accuracy/xx-en")
    evaluate(data, "quick", "tatoeba")
    assert capsys.readouterr().out.count("accuracy/xx-en") == once == 1


def test_seen_languages_are_told_apart_on_the_page(data, capsys):
    evaluate_verb(output=data / "scores", data=data, function="cases:by_text", tasks="tatoeba", seen=["deu"])
    assert "seen" in (data / "scores" / "page.html").read_text(encoding="utf-8")
