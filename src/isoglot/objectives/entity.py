"""Entity contrast, a sentence against the entity that it links to: EASE (Nishikawa et al. 2022, eq. 2).

    loss_i = -log  exp(cos(z_i, φ(e_i))/T) / sum_j [exp(cos(z_i, φ(e_j))/T) + exp(cos(z_i, φ(e_j-))/T)]

The temperature T is large. Logits lie within ±1/T, so the softmax is almost uniform and the loss stays near the
logarithm of the number of columns throughout training; its gradient has a nearly constant strength of 1/T, towards the
own entity and away from the mean of the others. Accuracy, the share of sentences whose own entity is the nearest, shows
the progress of training better than the loss.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isoglot.core.machine import check_memory
from isoglot.data.batch import Batch, send
from isoglot.data.entity_vectors import read_vectors
from isoglot.objectives.base import Losses, Objective, Range, Seed, Temperature
from isoglot.objectives.kernel import Equation, contrast, filter_pairs, matches, pick, unit

BOUND = 0.05  # entities without a vector are drawn uniformly between minus this and this


class EntityContrast(Objective):
    """Pull slot 0 of each group to its entity, away from the entities of other groups and from all hard entities.

    Read from `batch.extras`: `entity` (N,), a row of the table, and, if there is one, `hard_entities` (N, H), rows or
    -1. A group whose entity is -1 is left out. Entities have no language, and that is what aligns the languages.

    temperature      divides the cosines: 10 for several languages, 100 for one; never a sharp 0.05
    own_hard_weight  added to the logits of the group's own hard entities after the division (code: 1, paper: 0)
    projection       φ(e) is tanh(W e + b) (code) or, `linear`, W e (paper)
    duplicates       the same entity elsewhere in the batch is `kept`, a negative, or `dropped`, neither
    vectors          Wikipedia2Vec vectors to begin with: the table that `isoglot entities` writes or, together with
                     `entities`, the folder of the entities, a file of that library; none: all are drawn
    missing          entities without a vector are drawn at `random`, or are an `error`
    dim              dimension of the entities' vectors without a file; 0: that of the encoder
    seed of all sampling, equal on all ranks

    Deviation: a vector of the table and its moments change only in the steps whose batch has the entity; in the code,
    which has dense gradients, AdamW lets it drift on by its momentum.

    Raises ValueError for a number out of its range, an unknown choice, a stream without entities, or missing vectors
    where they are an error; `CorpusError` for vectors that cannot be read or are those of other entities.
    """

    reads = ()
    sparse = True  # the table's gradient, as that of an `nn.Embedding` may be: ranks add such gradients row by row

    def __init__(
        self,
        *,
        encoder: nn.Module,
        sizes: Mapping[str, int],
        temperature: Temperature = 10.0,
        own_hard_weight: Annotated[float, Range(-1e4, 1e4)] = 1.0,
        projection: Literal["tanh", "linear"] = "tanh",
        duplicates: Literal["kept", "dropped"] = "kept",
        vectors: Path | None = None,
        entities: Path | None = None,
        missing: Literal["random", "error"] = "random",
        dim: Annotated[int, Range(0, 65536)] = 0,
        seed: Seed = 0,
    ) -> None:
        super().__init__()
        if "entity" not in sizes:
            raise ValueError('the groups of the stream have no entities; read them with reader = "entities"')
        self.temperature, self.own_hard_weight = temperature, own_hard_weight
        self.projection, self.duplicates = projection, duplicates
        width, draw = cast("int", encoder.dim), torch.Generator().manual_seed(seed)
        rows = max(sizes["entity"], sizes.get("hard_entities", 0), 1)
        if vectors is None:  # the table, its gradient's rows and the two moments of Adam
            device = next((weight.device for weight in encoder.parameters()), torch.device("cpu"))
            check_memory(3 * rows * (dim or width) * 4, device, f"dim: {rows:,} entities x {dim or width} numbers")
        table = _draw(rows, dim or width, draw) if vectors is None else _read(vectors, entities, rows, missing, draw)
        if vectors is None and missing == "error":
            raise ValueError('missing = "error" requires a vector for every entity; set vectors to their file')
        self.table = nn.Parameter(table)  # (E, dim), its gradient row-sparse
        bound = table.shape[1] ** -0.5
        self.weight = nn.Parameter(torch.empty(width, table.shape[1]).uniform_(-bound, bound, generator=draw))
        # Zeros, as in the released code: a random bias dominates small rows, so all entities begin alike.
        self.bias = nn.Parameter(torch.zeros(width)) if projection == "tanh" else None

    def project(self, rows: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """φ(e) (n, D) of the entities in the given rows (n,) of the table."""
        bias = None if self.bias is None else self.bias.to(dtype)
        projected = F.linear(F.embedding(rows, self.table, sparse=True).to(dtype), self.weight.to(dtype), bias)
        return projected if self.projection == "linear" else projected.tanh()

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `entity_contrast`."""
        entity = batch.extras["entity"]
        hard = batch.extras.get("hard_entities", entity.new_empty((len(batch), 0)))
        query = ((batch.slot == 0) & (entity >= 0)).nonzero()[:, 0]
        z, entity, hard = unit(pick(vectors, query)), entity[query], hard[query]  # (A, D), (A,), (A, H)
        row = torch.arange(len(query))
        owner, place = (hard >= 0).nonzero(as_tuple=True)
        columns = torch.cat([entity, hard[owner, place]])  # the positives, then the hard entities of all groups
        rows, column = torch.unique(columns, return_inverse=True)
        candidates = pick(unit(self.project(send(rows, z.device), z.dtype)), column)
        same = matches(entity, columns)
        equation = Equation(
            temperature=self.temperature,
            dropped=filter_pairs(same, same[0] != same[1]) if self.duplicates == "dropped" else None,
            favoured=(owner, len(row) + torch.arange(len(owner))),
            favour=self.own_hard_weight,
        )
        return {"entity_contrast": contrast(z, candidates, (row, row), equation)}


def _draw(rows: int, dim: int, draw: torch.Generator) -> Tensor:
    return torch.empty(rows, dim).uniform_(-BOUND, BOUND, generator=draw)


def _read(vectors: Path, entities: Path | None, rows: int, missing: str, draw: torch.Generator) -> Tensor:
    """The table (E, dim) of a file, the rows without a vector drawn."""
    table = torch.from_numpy(read_vectors(vectors, entities=entities))
    if len(table) < rows:
        raise ValueError(
            f"{vectors}: has {len(table)} rows, but the data name row {rows - 1}; make it for these entities"
        )
    without = table.isnan().any(dim=1)
    if count := int(without.sum()):
        problem = f"{vectors}: {count:,} of {len(table):,} entities have no vector"
        if missing == "error":
            raise ValueError(f'{problem}; set missing = "random", or train vectors in which they occur')
        logging.getLogger(__name__).warning("%s and are initialized at random", problem)
        table[without] = _draw(count, table.shape[1], draw)
    return table
