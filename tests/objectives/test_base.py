"""The weighted sum of objectives."""

import pytest
import torch

from isoglot.errors import RecipeError
from isoglot.objectives import InfoNCE, MultiPositive, Sum, build, check
from toys import toy_batch


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
    class Counting(InfoNCE):
        def __init__(self):
            super().__init__()
            self.calls = []

        def annotate(self, batch):
            self.calls.append("annotate")

        def after_step(self, encoder, batches):
            self.calls.append("after_step")

    inner = [Counting(), Counting()]
    terms = Sum(*((1.0, term) for term in inner))
    terms.annotate(toy_batch([2]))
    terms.after_step(torch.nn.Identity(), [toy_batch([2])])
    assert [term.calls for term in inner] == [["annotate", "after_step"]] * 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("infonce", {}, "unknown objective 'infonce'; did you mean 'info_nce'"),
        ("multi_positive", {"rescal": "off"}, r"objectives\.rescal: multi_positive has no such setting.*'rescale'"),
        ("multi_positive", {"rescale": "rows"}, r"'rows' is not one of off, row, matrix; did you mean 'row'"),
        ("info_nce", {"temperature": "hot"}, "'hot' is not a number"),
        ("info_nce", {"temperature": True}, "True is not a number"),
        ("soft_contrastive", {"priority": [1, 2]}, r"objectives\.priority: \[1, 2\] is not a list of texts"),
        ("soft_contrastive", {"priority": "eng"}, r"'eng' is not a list of texts; write for example priority = \["),
        ("entity_contrast", {"vectors": 3}, r"objectives\.vectors: 3 is not a text"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(RecipeError, match=message):
        check(name, options)


def test_values_out_of_range_are_recipe_errors():
    with pytest.raises(RecipeError, match=r"streams\.x: temperature must be at least"):
        build("info_nce", {"temperature": -1.0}, None, where="streams.x")
