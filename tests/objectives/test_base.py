"""The weighted sum of objectives, and the settings that any of them rejects."""

from typing import Literal, get_origin, get_type_hints
from unittest.mock import Mock

import pytest
import torch

from isoglot.core.errors import PluginError, RecipeError
from isoglot.objectives import OBJECTIVES, InfoNCE, MultiPositive, Objective, Sum, build
from toys import TOY_LANGUAGES, TOY_SIZES, ToyEncoder, toy_batch, toy_objective


def test_losses_are_weighted_and_none_is_lost():
    """Two terms of the same kind keep all their losses, under names that differ."""
    batch = toy_batch([2, 2, 3])
    vectors = torch.randn(len(batch), 5, dtype=torch.float64)
    two_way = InfoNCE(direction="two-way")
    terms = Sum((1.0, two_way), (0.5, InfoNCE(direction="two-way", temperature=0.2)), (2.0, MultiPositive()))
    losses = terms(vectors, batch)
    assert list(losses) == ["info_nce", "info_nce/back", "info_nce-2", "info_nce-2/back", "multi_positive"]
    assert torch.equal(losses["info_nce/back"], two_way(vectors, batch)["info_nce/back"])
    again = InfoNCE(direction="two-way", temperature=0.2)(vectors, batch)
    assert torch.equal(losses["info_nce-2/back"], 0.5 * again["info_nce/back"])
    assert torch.equal(losses["multi_positive"], 2.0 * MultiPositive()(vectors, batch)["multi_positive"])


def test_hooks_reach_every_term():
    inner = [InfoNCE(), InfoNCE()]
    for term in inner:
        term.annotate, term.after_step = Mock(), Mock()
    terms, batch, encoder = Sum(*((1.0, term) for term in inner)), toy_batch([2]), ToyEncoder()
    terms.annotate(batch)
    terms.after_step(encoder, [batch])
    for term in inner:
        term.annotate.assert_called_once_with(batch)
        term.after_step.assert_called_once_with(encoder, [batch])


class Returning(Objective):
    """An objective of somebody who has not read what `forward` returns."""

    def __init__(self, losses):
        super().__init__()
        self.losses = losses

    def forward(self, vectors, batch):
        return self.losses


@pytest.mark.parametrize("losses", [torch.tensor(0.5), None, {}, {"a": 0.5}, {"a": torch.zeros(2)}])
def test_losses_are_scalars_by_name(losses):
    batch = toy_batch([2])
    for objective in (Returning(losses), Sum((1.0, Returning(losses)))):
        with pytest.raises(PluginError, match=r"^Returning\.forward returned .*dict"):
            objective(torch.randn(len(batch), 5), batch)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("infonce", {}, "unknown objective 'infonce'; did you mean 'info_nce'"),
        ("multi_positive", {"rescal": "off"}, r"objectives\.rescal: .*multi_positive has no such setting.*'rescale'"),
        ("multi_positive", {"rescale": "rows"}, r"'rows' is not one of off, row, matrix; did you mean 'row'"),
        ("entity_contrast", {"vectors": 3}, r"objectives\.vectors: 3 is not a path"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(RecipeError, match=message):
        OBJECTIVES.check(name, options, where="objectives")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("entity_contrast", {"missing": "error"}, "vectors"),
        ("pair_softmax", {"classes": 2}, "classes is 2, but the data have the label 2; raise classes"),
        ("soft_contrastive", {"priority": ["aaa", "aab"]}, "priority has no place for aac"),
        ("soft_contrastive", {"priority": ["english please"]}, "priority: unknown language 'english please'"),
    ],
)
def test_wrong_values_are_refused_at_construction(name, options, message):
    with pytest.raises(RecipeError, match=f"^objectives: .*{message}"):
        toy_objective(name, ToyEncoder(), **options)


@pytest.mark.parametrize(
    ("name", "message"),
    [("pair_softmax", 'need a whole number called "label"'), ("entity_contrast", "have no entities")],
)
def test_data_without_the_column_of_an_objective_are_an_error_of_the_recipe(name, message):
    with pytest.raises(RecipeError, match=rf"^objectives\.0: .*{message}"):
        build(name, {}, ToyEncoder(), where="objectives.0")


SWITCHES = [
    (name, option)
    for name, kind in OBJECTIVES.items()
    for option, hint in get_type_hints(kind.__init__).items()
    if get_origin(hint) is Literal
]


@pytest.mark.parametrize(("name", "option"), SWITCHES)
def test_unknown_switches_are_refused(name, option):
    """In a recipe, and by the constructor itself."""
    with pytest.raises(RecipeError, match=f"{option}: 'sideways' is not one of"):
        toy_objective(name, ToyEncoder(), **{option: "sideways"})
    handed = {"encoder": ToyEncoder(), "sizes": TOY_SIZES, "languages": TOY_LANGUAGES}
    asked = {key: value for key, value in handed.items() if key in get_type_hints(OBJECTIVES[name].__init__)}
    with pytest.raises(ValueError, match=f"{option} is 'sideways'; use one of "):
        OBJECTIVES[name](**asked, **{option: "sideways"})
