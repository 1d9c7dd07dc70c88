"""The kernel: blocks change nothing, masks stay finite, half precision is widened."""

import math

import pytest
import torch

from isoglot.objectives import InfoNCE, MultiPositive, SoftContrastive, kernel
from isoglot.objectives.kernel import Equation, contrast, unit


@pytest.mark.parametrize(
    "objective", [InfoNCE(direction="two-way"), MultiPositive(), MultiPositive(rescale="row"), SoftContrastive()]
)
def test_blocks_give_the_value_and_gradient_of_the_whole(objective, monkeypatch):
    from toys import toy_batch

    batch = toy_batch([2, 3, 2, 4, 2], hard=[0, 1, 0, 2, 0])
    results = []
    for cells in (1 << 24, 40, 1):
        monkeypatch.setattr(kernel, "BLOCK_CELLS", cells)
        vectors = torch.randn(len(batch), 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        vectors.requires_grad_()
        loss = torch.stack(list(objective(vectors, batch).values())).sum()
        loss.backward()
        results.append((loss.detach(), vectors.grad))
    for loss, grad in results[1:]:
        assert torch.allclose(loss, results[0][0])
        assert torch.allclose(grad, results[0][1])


NOBODY = (torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
EVERYBODY = (torch.arange(3).repeat_interleave(3), torch.arange(3).repeat(3))


@pytest.mark.parametrize("target", ["outside", "inside"])
def test_a_row_of_nothing_but_dropped_cells_is_finite(target):
    vectors = torch.randn(3, 4, requires_grad=True)
    loss = contrast(unit(vectors), unit(vectors), NOBODY, Equation(0.05, dropped=EVERYBODY), target=target)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(vectors.grad, torch.zeros_like(vectors.grad))


def test_rescaling_spans_exactly_the_whole_range():
    """With two candidates, the loss of a row is known once the cosines are stretched to -1 and 1."""
    anchors, candidates = torch.tensor([[1.0, 0.0]]), unit(torch.tensor([[1.0, 0.2], [0.3, 1.0]]))
    first = (torch.tensor([0]), torch.tensor([0]))
    for rescale in ("row", "matrix"):
        loss = contrast(anchors, candidates, first, Equation(1.0, rescale=rescale))
        assert loss.item() == pytest.approx(math.log1p(math.exp(-2.0)))


@pytest.mark.parametrize("cells", [1 << 24, 7])
def test_soft_targets_outside_the_logarithm_are_cross_entropy(cells, monkeypatch):
    monkeypatch.setattr(kernel, "BLOCK_CELLS", cells)
    torch.manual_seed(0)
    anchors, candidates, target = unit(torch.randn(4, 5)), unit(torch.randn(6, 5)), torch.rand(4, 6).softmax(1)
    target[2] = 0  # an anchor without a positive
    loss = contrast(anchors, candidates, lambda rows: target[rows] * 3, Equation(0.1))
    has = [0, 1, 3]
    expected = torch.nn.functional.cross_entropy(anchors[has] @ candidates.T / 0.1, target[has])
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_half_precision_vectors_give_a_float32_loss():
    half = torch.randn(3, 4).bfloat16()
    loss = contrast(unit(half), unit(half), (torch.arange(3), torch.arange(3)), Equation(0.01))
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)


@pytest.mark.parametrize("cells", [1 << 24, 12, 1])
def test_log_sum_exp_and_its_gradient_are_autograds(cells, monkeypatch):
    """The gradient that is summed up in the forward pass, with dropped cells in no order, in blocks of any size."""
    monkeypatch.setattr(kernel, "BLOCK_CELLS", cells)
    generator = torch.Generator().manual_seed(2)
    raw, weights = torch.randn(4, 6, generator=generator, dtype=torch.float64), torch.tensor([1.0, -2.0, 0.5, 3.0])
    table = unit(torch.randn(9, 6, generator=generator, dtype=torch.float64))
    dropped = (torch.tensor([2, 0, 2, 3]), torch.tensor([8, 4, 0, 4]))
    results = []
    for fast in (True, False):
        anchors = raw.clone().requires_grad_()
        if fast:
            total = kernel.log_sum_exp(unit(anchors), table, temperature=0.04, dropped=dropped)
        else:
            logits = (unit(anchors) @ table.T / 0.04).index_put(dropped, torch.tensor(-torch.inf, dtype=torch.float64))
            total = logits.logsumexp(dim=1)
        (total * weights).sum().backward()
        results.append((total.detach(), anchors.grad))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("cells", [1 << 24, 2])
def test_log_sum_exp_without_candidates_adds_nothing(cells, monkeypatch):
    monkeypatch.setattr(kernel, "BLOCK_CELLS", cells)
    anchors = unit(torch.randn(3, 4)).requires_grad_()
    for table, dropped in ((unit(torch.randn(3, 4)), EVERYBODY), (torch.zeros(0, 4), None)):
        others = kernel.log_sum_exp(anchors, table, temperature=0.01, dropped=dropped)
        loss = torch.logaddexp(torch.zeros(3), others).sum()
        assert loss.item() == 0
        assert torch.autograd.grad(loss, anchors)[0].tolist() == torch.zeros(3, 4).tolist()
    assert kernel.log_sum_exp(torch.zeros(0, 4), torch.zeros(5, 4), temperature=1.0).shape == (0,)


def test_log_sum_exp_is_float32_under_autocast():
    half, table = unit(torch.randn(3, 4)).bfloat16(), unit(torch.randn(5, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = kernel.log_sum_exp(half, table, temperature=0.01)
    torch.testing.assert_close(found, (half.float() @ table.T / 0.01).logsumexp(dim=1))


def test_gradients_of_rows_that_are_taken_repeatedly_are_the_same_every_time():
    """PyTorch adds up those of an index by several threads in any order, from 32,768 numbers on."""
    draw = torch.Generator().manual_seed(0)
    vectors, weights = (torch.randn(n, 64, generator=draw) for n in (100, 4000))
    rows, columns = (torch.randint(100, (4000,), generator=draw) for _ in range(2))
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for work in (
            lambda x: (kernel.pick(x, rows) * weights).sum(),
            lambda x: kernel.contrast(x, x, (rows, columns), kernel.Equation(temperature=1.0)),
        ):
            gradients = []
            for _ in range(20):
                x = vectors.clone().requires_grad_()
                work(x).backward()
                gradients.append(x.grad)
            assert all(torch.equal(gradients[0], other) for other in gradients)
    finally:
        torch.set_num_threads(threads)
