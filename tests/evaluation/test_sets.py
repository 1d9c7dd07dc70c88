"""Every task says where its data come from, and finds them where the download puts them."""

import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import published
from isoglot.cli.main import app
from isoglot.core.errors import EvaluationError
from isoglot.data.sets.catalogue import catalogue
from isoglot.evaluation import TASKS
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.sets import get_command, list_sets

OWN = {"linked", "retrieval", "retrieval/questions-own", "nearest", "xsim/own", "sts", "clustering"}
SETS = {task: sets for task in TASKS if (sets := list_sets(TASKS[task]))}


def test_every_task_has_sets_or_reads_files_of_ones_own():
    assert set(SETS) | OWN == set(TASKS)
    assert not set(SETS) & OWN
    assert {get_command(TASKS[task]) for task in OWN} == {""}


@pytest.mark.parametrize("task", sorted(SETS))
def test_every_set_is_in_the_catalogue_and_the_first_has_checksums_if_any_has(task):
    sets = [catalogue()[name] for name in SETS[task]]
    assert bool(sets[0].files) == any(one.files for one in sets)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in sorted(SETS.items()) for name in names])
def test_a_task_finds_its_subsets_in_a_folder_that_holds_the_set_alone(task, name, tmp_path):
    (tmp_path / name).symlink_to(published(name))
    assert TASKS[task].subsets(tmp_path)


def test_the_command_is_one_that_the_command_line_takes(tmp_path):
    assert get_command(TASKS["tatoeba"]) == "isoglot data get tatoeba-laser --data DIR"
    folder = tmp_path / "my data"
    words = shlex.split(get_command(TASKS["mldoc"], data=folder))
    assert words[-2:] == ["--data", str(folder)]
    # Its licence forbids the download, so nothing is fetched and the message says what a person does instead.
    answer = CliRunner().invoke(app, words[1:])
    assert answer.exit_code
    assert "needs a manual download" in (answer.output + str(answer.exception))


def lay(folder, *names):
    """Every file of the sets by name, without content; of a set that nothing is recorded of, those it has counts of."""
    for name in names:
        one = catalogue()[name]
        counted = [count.files.replace("*", str(number)) for count in one.counts for number in range(count.number)]
        for path in one.files or counted or ["any.txt"]:
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).touch()


def test_the_command_gets_what_is_not_there_yet(tmp_path):
    assert get_command(TASKS["bucc/oracle"], data=tmp_path).startswith("isoglot data get xtreme-bucc2018 ")
    lay(tmp_path, "xtreme-bucc2018", "sts17-official")
    assert get_command(TASKS["bucc/oracle"], data=tmp_path) == f"isoglot data get bucc2018 --data {tmp_path}"
    assert get_command(TASKS["sts17"], data=tmp_path) == f"isoglot data get sts17-crosslingual-sts --data {tmp_path}"
    lay(tmp_path, "bucc2018")
    assert get_command(TASKS["bucc/oracle"], data=tmp_path) == ""
    (tmp_path / "bucc2018" / ".downloads").mkdir()  # a download that was interrupted
    assert get_command(TASKS["bucc/oracle"], data=tmp_path) == f"isoglot data get bucc2018 --data {tmp_path}"


def test_a_part_of_a_set_that_nothing_is_recorded_of_is_got_whole(tmp_path):
    for path in ("flores-200/devtest/deu_Latn.devtest", "bucc2018/zh-en.dev.gold"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    assert get_command(TASKS["xsim/flores-devtest"], data=tmp_path) == f"isoglot data get flores-200 --data {tmp_path}"
    assert get_command(TASKS["bucc/xtreme"], data=tmp_path) == f"isoglot data get bucc2018 --data {tmp_path}"
    lay(tmp_path / "whole", "flores-200")
    assert get_command(TASKS["xsim/flores-devtest"], data=tmp_path / "whole") == ""


def test_a_set_that_would_be_read_in_place_of_another_has_its_languages_too(tmp_path):
    def named(*lacking, beside=()):
        return get_command(TASKS["map"], data=tmp_path, languages=lacking, beside=beside).split()[3:4]

    assert named("kor", beside=["fra"]) == ["ntrex-128"]
    lay(tmp_path, "ntrex-128", "flores-200", "sib-200")
    assert named("ces") == ["multi30k"]
    assert named("ces", beside=["fra"]) == ["multi30k"]
    assert named("ces", beside=["kor"]) == []
    assert get_command(TASKS["tatoeba"], data=tmp_path, languages=["ces"], beside=["yue"]).split()[3] == "tatoeba-laser"


# Task -> files of a part of its set in the folder given, and the same set below it where `data get` puts it.
PLACES = {
    "tatoeba": ("tatoeba.{}-eng.{}", "tatoeba-laser/v1"),
    "xsim/flores-devtest": ("devtest/{}_Latn.devtest", "flores-200"),
    "xsim/ntrex": ("NTREX-128/newstest2019-ref.{}.txt", "ntrex-128"),
    "xsim/sib": ("{}_Latn/train.tsv", "sib-200/annotated"),
    "sib-200": ("{}_Latn/train.tsv", "sib-200/annotated"),
    "xsim/tico": ("en-{0}/tico19-test.{0}", "tico-19"),
    "mewsc-16": ("{}_sentences.txt", "mewsc16"),
    "sts-b-multi": ("stsb-{}-test.csv", "stsb-multi-mt"),
}


@pytest.mark.parametrize("task", sorted(PLACES))
def test_what_get_brings_is_read_before_another_copy(task, tmp_path):
    name, folder = PLACES[task]
    two = task in ("mewsc-16", "sts-b-multi", "xsim/tico")
    de, fr, en = ("de", "fr", "en") if two else ("deu", "fra", "eng")
    for place, codes in (("", [de, en]), (folder, [de, fr, en])):
        for code in codes:
            path = tmp_path / place / name.format(code, code)
            path.parent.mkdir(parents=True, exist_ok=True)
            for each in [path, path.with_name("test.tsv")] if path.name == "train.tsv" else [path]:
                each.touch()
    assert TASKS[task].subsets(tmp_path, languages=["fr"])
    assert TASKS[task].subsets(tmp_path, languages=["de"])


def test_the_command_gets_a_set_that_has_the_languages(tmp_path):
    def named(task, *languages):
        return get_command(TASKS[task], languages=languages).split()[3:4]

    assert named("sts17", "kor") == ["sts17-crosslingual-sts"]
    assert named("sts17", "ara", "kor") == ["sts17-official"]  # which has one of them
    assert named("sts12", "kor", "fra") == named("mtop", "kor") == []
    assert named("bucc/oracle", "deu") == ["bucc2018"]
    assert named("tatoeba", "kor") == ["tatoeba-laser"]


@pytest.mark.parametrize(
    ("task", "name", "has", "lacks"),
    [
        ("sib-200", "sib-200", ["deu", "de", "zho_Hans", "swa", "ara"], ["wol", "ces", "dev"]),
        ("xsim/ntrex", "ntrex-128", ["deu", "wol", "zho_Hans", "tgl", "ckb"], ["jav", "epo"]),
        ("xsim/tico", "tico-19", ["eng", "zho", "tgl", "swa"], ["deu", "wol"]),
        ("tatoeba", "tatoeba-laser", ["kor", "eng", "fas"], ["wol", "zul"]),
    ],
)
def test_a_set_with_recorded_files_has_the_languages_of_their_names(task, name, has, lacks):
    for language in has:
        assert get_command(TASKS[task], languages=[language]) == f"isoglot data get {name} --data DIR", language
        assert get_command(TASKS[task], languages=[*lacks, language])
    for language in lacks:
        assert get_command(TASKS[task], languages=[language]) == "", language
    assert get_command(TASKS[task], languages=lacks) == ""


@pytest.mark.parametrize(("language", "advised"), [("deu", True), ("wol", False)])
def test_evaluate_names_no_command_that_would_not_add_the_language(tmp_path, language, advised):
    with pytest.raises(EvaluationError, match="sib-200: no data in") as error:
        evaluate(lambda texts: np.ones((len(texts), 2)), ["sib-200"], data=tmp_path, languages=[language])
    assert ("isoglot data get sib-200" in str(error.value)) == advised
