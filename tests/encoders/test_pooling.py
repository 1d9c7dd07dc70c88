"""Every pooling against one sentence at a time, without padding."""

from __future__ import annotations

import pytest
import torch

from isoglot.encoders.transformer import FIRST_LAYER, POOLINGS

LENGTHS = (3, 1, 5)


def by_hand(name, states, length):
    first, second, last = (state[:length] for state in states)
    match name:
        case "cls":
            return last[0]
        case "mean":
            return torch.stack([last[t] for t in range(length)]).mean(0)
        case "max":
            return torch.stack([last[:, d].max() for d in range(last.shape[1])])
        case "first-last":
            return ((first + last) / 2).mean(0)
        case "first1-last":
            return ((second + last) / 2).mean(0)


@pytest.mark.parametrize("name", POOLINGS)
def test_padding_does_not_count(name):
    states = torch.randn(3, len(LENGTHS), 5, 4, generator=torch.Generator().manual_seed(0)) - 3
    mask = torch.tensor([[1] * length + [0] * (5 - length) for length in LENGTHS])
    states[:, mask == 0] = 1e4  # what is behind padding must not matter
    vectors = POOLINGS[name](list(states), mask)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(vectors[row], by_hand(name, states[:, row], length))


def test_the_poolings_over_layers_are_known():
    assert set(FIRST_LAYER) <= set(POOLINGS)
