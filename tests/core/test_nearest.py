"""An unknown name of any kind is answered with the nearest known one."""

import pytest
from command_line import as_function

from isoglot.cli.models import fit as fit_verb
from isoglot.core.errors import IsoglotError, nearest
from isoglot.data.languages import canonical
from isoglot.evaluation.plot import plot
from isoglot.evaluation.run import plan
from isoglot.training.recipe import load, parse

fit = as_function(fit_verb)

STREAM = {"sources": [{"reader": "tsv", "path": "a.tsv"}], "objectives": [{"name": "info_nce"}]}
RECIPE = {"name": "a", "epochs": 1, "encoder": {"kind": "static"}, "optimizer": {"lr": 0.1}, "streams": [STREAM]}


@pytest.mark.parametrize(
    ("call", "known"),
    [
        (lambda: plan(["tatoba"]), "tatoeba"),
        (lambda: canonical("English"), "eng"),
        (lambda: canonical("ddu"), "deu"),
        (lambda: load("start/statc"), "start/static"),
        (lambda: parse(RECIPE | {"streams": [STREAM | {"batchng": {}}]}), "batching"),
        (lambda: parse(RECIPE | {"encoder": {"kind": "Statik"}}), "static"),
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
