"""An unknown name of any kind is answered with the nearest known one."""

from __future__ import annotations

import pytest
from command_line import as_function

import isoglot
from isoglot.cli.models import fit as fit_verb
from isoglot.core.errors import IsoglotError, nearest
from isoglot.data.languages import canonical
from isoglot.data.readers import check as check_reader
from isoglot.data.sets import find
from isoglot.evaluation.run import plan
from isoglot.report.plot import plot
from isoglot.training.recipe import load, parse

fit = as_function(fit_verb)

STREAM = {"sources": [{"reader": "tsv", "path": "a.tsv"}], "objectives": [{"name": "info_nce"}]}
REST = {"name": "a", "epochs": 1, "encoder": {"kind": "static"}, "optimizer": {"lr": 0.1}}


def of_recipe(**stream):
    from isoglot.training.recipes import check

    return check(parse(REST | {"streams": [STREAM | stream]}), name="a")


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (lambda: isoglot.load("Multilingual-E5-smal"), "multilingual-e5-small"),
        (lambda: plan(["STS17"]), "sts17"),
        (lambda: plan(["tatoba"]), "tatoeba"),
        (lambda: canonical("English"), "eng"),
        (lambda: canonical("ddu"), "deu"),
        (lambda: load("start/statc"), "start/static"),
        (lambda: of_recipe(objectives=[{"name": "infonce"}]), "info_nce"),
        (lambda: of_recipe(objectives=[{"name": "info_nce", "temprature": 1}]), "temperature"),
        (lambda: of_recipe(batchng={}), "batching"),
        (lambda: parse(REST | {"streams": [STREAM], "encoder": {"kind": "Statik"}}), "static"),
        (lambda: check_reader("tvs", {}), "tsv"),
        (lambda: check_reader("tsv", {"language": ""}), "languages"),
        (lambda: find("tatoeba-lazer"), "tatoeba-laser"),
        (lambda: fit("whitning", "model", "a.txt", "out"), "whitening"),
        (lambda: plot(lambda texts: texts, ["a", "b", "c"], method="tsn"), "tsne"),
    ],
)
def test_the_nearest_name_is_suggested(call, known):
    with pytest.raises(IsoglotError, match=f"did you mean '{known}'"):
        call()


def test_without_a_near_name_the_known_ones_are_listed():
    assert nearest("xyz", ["one", "two"]) == "known: one, two"
    assert nearest("xyz", map(str, range(20)), most=2) == "known: 0, 1, …"
    assert nearest("xyz", ["one"], otherwise="look it up") == "look it up"
