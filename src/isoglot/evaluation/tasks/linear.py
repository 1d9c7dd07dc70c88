"""One linear layer on frozen vectors, trained by AdamW and chosen on a dev set: the classifier of EASE's MLDoc test.

Five epochs, no weight decay, gradients clipped to norm 1, a learning rate that falls linearly to zero, the dev accuracy
taken every ten steps and after the last, and the best layer kept. The grid has batches of 32, 64 and 128 and learning
rates of 0.1, 0.01 and 0.001, with three seeds each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np

from isoglot.search.best import Floats, Ids

BATCHES, RATES, SEEDS = (32, 64, 128), (0.1, 0.01, 0.001), (0, 1, 2)
EPOCHS, EVERY = 5, 10

Layer = tuple[Floats, Floats]  # weights (K, D), biases (K,)
Set = tuple[Floats, Ids]  # vectors (N, D), classes (N,)


def best_layers(train: Set, dev: Set, *, classes: int) -> tuple[Layer, ...]:
    """The layers of the three seeds, of the batch size and learning rate whose mean dev accuracy is best.

    Of equals the first of the grid wins: the smallest batch, then the greatest rate.
    """
    best = -1.0
    layers: tuple[Layer, ...] = ()
    for batch, rate in product(BATCHES, RATES):
        fits = [fit(train, dev, classes=classes, batch=batch, rate=rate, seed=seed) for seed in SEEDS]
        mean = float(np.mean([right for right, _ in fits]))
        if mean > best:
            best, layers = mean, tuple(layer for _, layer in fits)
    return layers


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: with several, the order of summation and so the last bits depend on the machine."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


@_one_thread()
def fit(train: Set, dev: Set, *, classes: int, batch: int, rate: float, seed: int) -> tuple[float, Layer]:
    """The layer with the best dev accuracy, the first of equals, and that accuracy. `seed` is for weights and order.

    With fewer than ten steps in total, the last step is evaluated too.
    """
    import torch
    from torch.nn import functional
    from torch.nn.utils import clip_grad_norm_

    generator = torch.Generator().manual_seed(seed)
    vectors, gold = torch.from_numpy(np.ascontiguousarray(train[0])), torch.from_numpy(train[1])
    width = vectors.shape[1]
    layer = [torch.empty(classes, width), torch.empty(classes)]
    for part in layer:  # as in `torch.nn.Linear`
        part.uniform_(-(width**-0.5), width**-0.5, generator=generator).requires_grad_()
    total = EPOCHS * -(-len(gold) // batch)
    optimizer = torch.optim.AdamW(layer, lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
    best, best_layer, step = -1.0, (train[0][:0], train[0][:0]), 0
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(gold), generator=generator), batch):
            loss = functional.cross_entropy(functional.linear(vectors[rows], *layer), gold[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(layer, 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step % EVERY == 0 or step == total:
                weights, biases = (part.detach().numpy().copy() for part in layer)
                accuracy = float(((dev[0] @ weights.T + biases).argmax(axis=1) == dev[1]).mean())
                if accuracy > best:
                    best, best_layer = accuracy, (weights, biases)
    return best, best_layer


@_one_thread()
def apply(layer: Layer, vectors: Floats) -> tuple[Ids, Floats]:
    """Predictions (N,) and probabilities (N, K)."""
    from scipy.special import softmax

    logits = vectors @ layer[0].T + layer[1]
    return logits.argmax(axis=1).astype(np.int64), softmax(logits.astype(np.float64), axis=1).astype(np.float32)
