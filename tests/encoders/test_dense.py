"""Dense layers and means of layers, read and written."""

from __future__ import annotations

import pytest
import torch

from isoglot.encoders import layers, layout
from isoglot.errors import EncoderError


def module(folder):
    return layout.Module("WeightedLayerPooling", folder, layout.read_json(folder / "config.json"))


@pytest.mark.parametrize("activation", layers.ACTIVATIONS)
def test_a_dense_layer_comes_back(activation, tmp_path):
    layer = layers.Dense(4, 3, bias=False, activation=activation)
    layers.write_dense(tmp_path, layer)
    rows = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layers.read_dense(module(tmp_path))(rows), layer(rows))


@pytest.mark.parametrize(("first", "name"), [(0, "first-last"), (1, "first1-last")])
def test_the_mean_of_two_layers_is_known_by_its_weights(first, name, tmp_path):
    layers.write_layer_mean(tmp_path, first, 3, 8)
    assert layers.read_layer_mean(module(tmp_path), 3) == name
    with pytest.raises(EncoderError, match="mean of 3 layers, and the model has 2"):
        layers.read_layer_mean(module(tmp_path), 2)


def test_other_means_are_refused(tmp_path):
    layers.write_layer_mean(tmp_path, 2, 3, 8)
    with pytest.raises(EncoderError, match="only the mean of the first and the last layer"):
        layers.read_layer_mean(module(tmp_path), 3)


def test_weights_pickled_by_older_versions_are_read(tmp_path):
    torch.save({"linear.weight": torch.eye(2)}, tmp_path / "pytorch_model.bin")
    assert torch.equal(layers.read_weights(tmp_path)["linear.weight"], torch.eye(2))
