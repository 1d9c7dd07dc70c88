"""Random ragged batches for the oracle tests, and the same as plain rows."""

import torch
from hypothesis import strategies as st

from toys import toy_batch


@st.composite
def batches(draw):
    """Vectors (N, 5) in float64 and a batch: groups of 1 to 4, up to 2 hard negatives, some equal keys."""
    groups = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(1, 4), min_size=groups, max_size=groups))
    hard = draw(st.lists(st.integers(0, 2), min_size=groups, max_size=groups))
    keys = draw(st.lists(st.integers(0, 4), min_size=groups, max_size=groups))
    batch = toy_batch(sizes, hard=hard, keys=keys)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    return torch.randn(len(batch), 5, generator=generator, dtype=torch.float64), batch


def rows_of(vectors, batch):
    """The batch as the oracle reads it."""
    columns = zip(vectors.tolist(), batch.group.tolist(), batch.key.tolist(), batch.slot.tolist(), strict=True)
    return [{"vector": v, "group": g, "key": k, "slot": s} for v, g, k, s in columns]
