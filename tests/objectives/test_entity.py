"""The entity term of EASE against the loops of tests/oracle.py, and its invariants (specification of the method)."""

import json
import logging

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of
from safetensors.torch import load_file
from test_loop import RECIPE, log_of
from torch import nn

import isoglot
import oracle
from isoglot.core.errors import CorpusError
from isoglot.objectives import EntityContrast, build
from isoglot.objectives.kernel import unit
from isoglot.training import optimizer
from isoglot.training.settings import OptimizerSettings
from toys import TOY_SIZES, ToyEncoder, toy_batch


class Width(nn.Module):
    def __init__(self, dim=5):
        super().__init__()
        self.dim = dim


def objective(*, entities=6, dim=5, **options):
    return EntityContrast(encoder=Width(dim), sizes={"entity": entities, "hard_entities": entities}, **options)


def entities_of(entity, hard=None):
    """A batch of groups of two dropout views with the given entities and hard entities (a list for each)."""
    batch = toy_batch([2] * len(entity))
    hard = hard or [[-1]] * len(entity)
    batch.extras |= {
        "entity": torch.tensor(entity).repeat_interleave(2),
        "hard_entities": torch.tensor(hard).repeat_interleave(2, dim=0),
    }
    return batch


def loss(term, vectors, batch):
    return term(vectors, batch)["entity_contrast"]


def value(term, vectors, batch):
    return loss(term, vectors, batch).item()


@given(
    batches(),
    st.sampled_from([0.3, 10.0]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from(["tanh", "linear"]),
    st.sampled_from(["kept", "dropped"]),
    st.booleans(),
)
def test_agrees_with_the_loops(case, temperature, weight, projection, duplicates, without):
    vectors, batch = case
    batch.extras["entity"] -= int(without)  # some groups have no entity then
    term = objective(
        temperature=temperature, own_hard_weight=weight, projection=projection, duplicates=duplicates
    ).double()
    columns = zip(
        rows_of(vectors, batch), batch.extras["entity"].tolist(), batch.extras["hard_entities"].tolist(), strict=True
    )
    rows = [row | {"entity": entity, "hard_entities": hard} for row, entity, hard in columns]
    projected = term.project(torch.arange(6), torch.float64).tolist()
    expected = oracle.entity_contrast(rows, projected, temperature, weight, duplicates)
    assert value(term, vectors, batch) == pytest.approx(expected, abs=1e-10)


def test_the_projection_is_that_of_the_code_or_of_the_paper():
    rows = torch.tensor([4, 0])
    term = objective()
    torch.nn.init.uniform_(term.bias)
    expected = torch.tanh(term.table[rows] @ term.weight.T + term.bias)
    assert torch.allclose(term.project(rows), expected)
    plain = objective(projection="linear")
    assert plain.bias is None
    assert torch.allclose(plain.project(rows), plain.table[rows] @ plain.weight.T)


def test_different_entities_begin_unrelated():
    projected = unit(objective(entities=100, dim=256).project(torch.arange(100)))
    cosines = (projected @ projected.T)[~torch.eye(100, dtype=torch.bool)]
    assert cosines.mean().abs() < 0.02
    assert cosines.abs().max() < 0.4


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_entities_outside_the_batch_do_not_move(kind):
    term = objective(entities=9)
    before = term.table.detach().clone()
    settings = OptimizerSettings(lr=0.1)
    chosen = torch.optim.SGD(term.parameters(), lr=0.1) if kind == "sgd" else optimizer.build([term], settings)
    loss(term, torch.randn(6, 5), entities_of([0, 2, 4], [[6], [-1], [7]])).backward()
    assert term.table.grad.is_sparse
    assert sorted(set(term.table.grad.coalesce().indices()[0].tolist())) == [0, 2, 4, 6, 7]
    chosen.step()
    moved = (term.table.detach() != before).any(dim=1)
    assert moved.nonzero()[:, 0].tolist() == [0, 2, 4, 6, 7]


def test_the_beginning_is_drawn_from_its_seed_alone():
    one, same, other = objective(), objective(), objective(seed=1)
    assert torch.equal(one.table, same.table)
    assert torch.equal(one.weight, same.weight)
    assert not torch.equal(one.table, other.table)
    assert 0.03 < one.table.abs().max().item() <= 0.05
    assert objective(dim=7).table.shape == (6, 7)
    narrow = EntityContrast(encoder=Width(7), sizes={"entity": 6}, dim=3)
    assert (narrow.table.shape, narrow.weight.shape) == ((6, 3), (7, 3))


def write_table(folder, labels=("Berlin", "Paris", "Rome", "Oslo", "Bern", "Wien")):
    lines = [f"Q{row}\t{10 - row}\t{label}\n" for row, label in enumerate(labels)]
    (folder / "entities.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def test_vectors_come_from_a_file_and_the_rest_is_drawn(tmp_path, caplog):
    given_rows = np.arange(18, dtype=np.float32).reshape(6, 3)
    given_rows[4] = np.nan
    np.save(tmp_path / "v.npy", given_rows)
    with caplog.at_level(logging.WARNING):
        term = objective(vectors=tmp_path / "v.npy")
    assert "1 of 6 entities have no vector" in caplog.text
    kept = [0, 1, 2, 3, 5]
    assert torch.equal(term.table[kept].detach(), torch.from_numpy(given_rows[kept]))
    assert term.table[4].abs().max().item() <= 0.05
    built = build(
        "entity_contrast", {"vectors": "v.npy"}, ToyEncoder(), sizes=TOY_SIZES, resolve=lambda name: tmp_path / name
    )
    assert torch.equal(built.table[kept].detach(), torch.from_numpy(given_rows[kept]))
    with pytest.raises(ValueError, match=r'1 of 6 entities have no vector; .*missing = "random"'):
        objective(vectors=tmp_path / "v.npy", missing="error")
    with pytest.raises(ValueError, match="has 6 rows, but the data name row 8"):
        EntityContrast(encoder=Width(), sizes={"entity": 9}, vectors=tmp_path / "v.npy")


def test_a_file_of_the_library_needs_the_entities(tmp_path):
    path = write_table(tmp_path) / "vectors.txt"
    path.write_text("berlin\t9 9\nENTITY/Paris\t0.5 0.25\nENTITY/Oslo\t1 2\n")
    sizes = {"entity": 6}
    term = EntityContrast(encoder=Width(), sizes=sizes, vectors=path, entities=tmp_path)
    assert term.table[[1, 3]].tolist() == [[0.5, 0.25], [1, 2]]
    with pytest.raises(CorpusError, match="name their folder in `entities`"):
        EntityContrast(encoder=Width(), sizes=sizes, vectors=path)


def test_a_run_trains_from_a_folder_and_keeps_the_entities_to_itself(tmp_path, own_cache):
    """Two dropout views and the entity term from a recipe; the table is in no file of the model."""
    folder = tmp_path / "wikipedia"
    folder.mkdir()
    write_table(folder)
    with (folder / "sentences.jsonl").open("w", encoding="utf-8") as stream:
        for i in range(40):
            line = {"text": f"Sentence {i} is about a town.", "lang": "eng", "entity": f"Q{i % 6}"}
            stream.write(json.dumps(line | {"hard": [f"Q{(i + 1) % 6}"]}) + "\n")
    (tmp_path / "tiny.toml").write_text(RECIPE)
    changes = ['streams.0.sources=[{reader="entities", path="wikipedia"}]', "streams.0.deduplicate=false"]
    changes += ["streams.0.batching={size=10, views=2}", "evaluation=[]", "steps=4"]
    changes += ['streams.0.objectives=[{name="entity_contrast", weight=0.01}, {name="info_nce"}]']
    trained = isoglot.train(tmp_path / "tiny.toml", overrides=changes, output=tmp_path / "run")
    assert all("entity_contrast" in step["losses"] for step in log_of(tmp_path / "run"))
    model = tmp_path / "run" / "model"
    names = {file.name for file in model.rglob("*") if file.is_file()}
    tables = [load_file(file) for file in model.rglob("*.safetensors")]
    assert tables
    assert all(tensor.shape[0] != 6 for table in tables for tensor in table.values())
    assert not any("entit" in name for name in names)
    opened = isoglot.load(model).trainable()
    assert len(list(trained.parameters())) == len(list(opened.parameters())) == 1  # its word table
