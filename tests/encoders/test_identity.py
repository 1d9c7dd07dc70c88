"""An identity changes with everything that vectors depend on, and with nothing else."""

from __future__ import annotations

import copy

import torch

from isoglot.encoders.base import identity


def test_equal_encoders_are_one(toy_static):
    assert identity(toy_static) == identity(copy.deepcopy(toy_static))


def test_a_changed_weight_prompt_or_ending_is_another(toy_static):
    seen = {identity(toy_static)}
    for change in (
        lambda e: e.table.data[3].add_(1e-3),
        lambda e: setattr(e, "prompt", "query: "),
        lambda e: setattr(e, "normalizes", not e.normalizes),
        lambda e: setattr(e, "max_length", 7),
    ):
        other = copy.deepcopy(toy_static)
        with torch.no_grad():
            change(other)
        seen.add(identity(other))
    assert len(seen) == 5


def test_pooling_and_seed_of_a_transformer_matter(toy_transformer):
    models = [toy_transformer(pooling="mean"), toy_transformer(pooling="cls")]
    assert len({identity(model) for model in models}) == 2
    assert identity(models[0]) == identity(models[0].train())
