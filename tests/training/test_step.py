"""One step: over two streams two processes make that of one, and batches may be accumulated."""

import itertools
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from hypothesis import given
from hypothesis import strategies as st

from isoglot.objectives import InfoNCE
from isoglot.training import ranks
from isoglot.training.step import Chunks, Embedded, OneRank, StepLimits, backward, train_step
from toys import ToyEncoder, take, toy_batch, toy_objective


class Given:
    """A stream that gives batches, of each the rows of every `world`-th group, or as `split` has it.

    With `limits` their chunks are prepared, as in a run.
    """

    def __init__(self, name, encoder, *, rank, world, split=None, limits=None):
        self.name, self.objective = name, toy_objective(name, encoder)
        batches = [toy_batch([2, 2, 3, 1, 2, 2, 4], seed=seed) for seed in range(2)]
        place = (lambda group: group % world) if split is None or world == 1 else split
        self.batches = [take(batch, (place(batch.group) == rank).nonzero()[:, 0]) for batch in batches]
        self.waiting = iter(self.batches)
        self.encoder, self.limits = encoder, limits

    def next(self):
        batch = next(self.waiting)
        return batch, self.limits and Chunks.of(self.encoder, batch.tokens, self.limits)


class Parts(ToyEncoder):
    """With a frozen layer, a parameter of texts of eight characters and one that is never used."""

    def __init__(self):
        super().__init__()
        self.layer.bias.requires_grad_(False)
        ones = torch.ones(self.dim, dtype=torch.float64)
        self.rare = torch.nn.ParameterDict({"long": ones, "never": ones.clone()})

    def forward(self, tokens):
        found, long = super().forward(tokens), torch.from_numpy(tokens.lengths == 8)
        return found + long[:, None] * self.rare["long"] if long.any() else found


class Deep(ToyEncoder):
    """With parameters in many layers."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Sequential(*(torch.nn.Linear(self.dim, self.dim).double() for _ in range(20)))
        self.layer.weight = self.embedding.weight  # whose type the toy asks for


def step(encoder, streams, **settings):
    """One step over these streams."""
    trained = [p for module in (encoder, *(stream.objective for stream in streams)) for p in module.parameters()]
    sgd, kind = torch.optim.SGD(trained, lr=0.1), ranks.Ranks if ranks.world() > 1 else OneRank
    return train_step(encoder, streams, sgd, StepLimits(10, 0), lr=0.1, ranks=kind, **settings).read()


CASES = {
    "two streams": {},
    "unequal numbers of chunks": {"split": lambda group: (group == 5).long()},
    "a rank without rows": {"split": torch.zeros_like},
    "accumulated": {"accumulate": 2},
    "parameters without a gradient": {"encoder": Parts, "split": lambda group: (group == 3).long()},
    "a row-sparse table": {"encoder": lambda: ToyEncoder(sparse=True)},
}


def moved(rank, world, *, encoder=ToyEncoder, split=None, **settings):
    """The gradients after one step over a contrastive stream and one of pairs, whose classifier has its own.

    Also, in their order, the sums that begin and the gradients of the encoder's first layer, which a pass ends with.
    """
    model, events = encoder(), []
    model.embedding.weight.register_hook(lambda _: events.append("gradient"))
    streams = [Given(name, model, rank=rank, world=world, split=split) for name in ("info_nce", "pair_softmax")]

    def sending(*args, reduce=dist.all_reduce, **kwargs):
        if "group" not in kwargs:  # not that of kinds
            events.append("sum")
        return reduce(*args, **kwargs)

    with mock.patch.object(dist, "all_reduce", sending):
        step(model, streams, **settings)
    modules = [model, *(stream.objective for stream in streams)]
    grads = [parameter.grad for module in modules for parameter in module.parameters()]
    return [grad if grad is None else grad.to_dense() for grad in grads], events


def test_a_step_in_bfloat16_multiplies_in_it_and_leaves_float32_gradients(toy_transformer):
    encoder = toy_transformer(adapter={"rank": 2})
    found = []
    for part in encoder.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda _, inputs, output: found.append((output.dtype, torch.is_grad_enabled())))
    batch = toy_batch([2, 2, 2])
    backward(encoder, InfoNCE(), batch, StepLimits(chunk_tokens=16, graph_tokens=0, precision="bfloat16"))
    assert set(found) == {(torch.bfloat16, False), (torch.bfloat16, True)}  # of the first pass and of the second
    grads = [weight.grad for weight in encoder.parameters() if weight.grad is not None]
    assert grads
    assert {grad.dtype for grad in grads} == {torch.float32}


def test_chunks_that_were_prepared_give_the_same_step(toy_transformer):
    """With rows of different length and without; what is padded is padded before, by another thread."""
    encoder = toy_transformer().eval()
    texts = ["so long a sentence", "as long a sentence", "short"]
    for case, limits in itertools.product((texts, texts[:2]), (StepLimits(4, 0), StepLimits(400, 400))):
        tokens = encoder.tokenize(case)
        chunks = Chunks.of(encoder, tokens, limits)
        assert all(piece.table is not None for piece in chunks.pieces)
        assert any(piece.table[1] is not None for piece in chunks.pieces) == (
            len(case) == 3 and limits.chunk_tokens > 4
        )
        vectors = Embedded(encoder, chunks, limits).vectors
        torch.testing.assert_close(vectors, encoder(tokens).detach())
    rows = Chunks.of(encoder, encoder.tokenize(texts), StepLimits(4, 0)).rows
    assert torch.cat(rows).sort().values.tolist() == [0, 1, 2]


@given(st.integers(1, 60), st.integers(0, 150))
def test_as_many_chunks_keep_their_graph_as_the_budget_holds(chunk, budget):
    """They run once and the others twice, whose graphs are made when those are freed; the gradient is the same."""
    results = []
    for graph in (0, budget):
        encoder, events = ToyEncoder(dropout=0.3), []
        chunks = Chunks.of(encoder, toy_batch([2, 2, 3, 1, 2, 2, 4]).tokens, StepLimits(chunk))
        encoder.register_forward_hook(lambda *_, events=events: events.append(torch.is_grad_enabled()))
        encoder.layer.register_full_backward_hook(lambda *_, events=events: events.append("freed"))
        torch.manual_seed(0)
        embedded = Embedded(encoder, chunks, StepLimits(chunk, graph))
        embedded.push(torch.arange(16.0 * encoder.dim, dtype=torch.float64).reshape(16, -1))
        results.append([embedded.vectors, *(p.grad for p in encoder.parameters()), torch.rand(1)])
    count, kept = len(chunks.sizes), events.index(False) if False in events else len(chunks.sizes)
    assert events == [True] * kept + [False] * (count - kept) + ["freed"] * kept + [True, "freed"] * (count - kept)
    assert kept == count == 1 or sum(chunks.sizes[:kept]) <= budget
    assert kept == count or sum(chunks.sizes[: kept + 1]) > budget
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_accumulated_batches_give_the_mean_of_their_gradients_and_are_all_told():
    """EASE's scripts: the softmax sees a small batch, the step the mean over many."""
    batches = [toy_batch([2, 2, 3], seed=seed) for seed in range(3)]
    encoder = ToyEncoder()
    stream = Given("info_nce", encoder, rank=0, world=1)
    waiting, told = iter(batches), []
    stream.next = lambda: (next(waiting), None)
    stream.objective.after_step = lambda _, batches: told.extend(batches)
    reports, _ = step(encoder, [stream], accumulate=3)
    alone = []
    for batch in batches:
        other = ToyEncoder()
        alone.append(backward(other, toy_objective("info_nce", other), batch, StepLimits(10, 0)))
        alone[-1].losses["gradients"] = torch.cat([p.grad.flatten() for p in other.parameters()])
    means = {name: torch.stack([report.losses[name] for report in alone]).mean(0) for name in ("info_nce", "gradients")}
    torch.testing.assert_close(torch.cat([p.grad.flatten() for p in encoder.parameters()]), means["gradients"])
    torch.testing.assert_close(reports["info_nce"].losses["info_nce"], means["info_nce"])
    assert reports["info_nce"].groups == 9
    assert all(np.array_equal(one.tokens.ids, batch.tokens.ids) for one, batch in zip(told, batches, strict=True))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("clip", [0.0, 1e-3])
def test_clipping_bounds_the_joint_norm(sparse, clip):
    encoder = ToyEncoder(sparse=sparse)
    _, norm = step(encoder, [Given("info_nce", encoder, rank=0, world=1)], clip=clip)
    squares = [float(weight.grad.to_dense().square().sum()) for weight in encoder.parameters()]
    assert norm > 2e-3
    assert sum(squares) ** 0.5 == pytest.approx(clip or norm, rel=2e-3)


def run_two_ranks(compute, folder):
    """What `compute(rank)`, a function of a module, gives on each of two ranks."""
    mp.spawn(_run_rank, args=(compute, folder), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def _run_rank(rank, compute, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.save(compute(rank), folder / f"{rank}.pt")
    ranks.leave()  # a process that ends with threads of the group may be aborted


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """What `moved` gives on each of two ranks, by case."""
    return run_two_ranks(compute_cases, tmp_path_factory.mktemp("ranks"))


def compute_cases(rank):
    results = {"deep": moved(rank, 2, encoder=Deep)}
    ranks.BUCKET = 150  # a layer
    return results | {name: moved(rank, 2, **case) for name, case in CASES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_ranks_make_the_step_of_one(two_ranks, case):
    one, _ = moved(0, 1, **CASES[case])
    for grads, _ in (found[case] for found in two_ranks):
        assert [grad is None for grad in grads] == [grad is None for grad in one]
        for grad, expected in zip(grads, one, strict=True):
            if grad is not None:
                torch.testing.assert_close(grad, expected)
    assert all(
        torch.equal(a, b) for a, b in zip(*(found[case][0] for found in two_ranks), strict=True) if a is not None
    )


@pytest.mark.slow
def test_gradients_of_many_parameters_are_one_message(two_ranks):
    """And those of the objective another one."""
    for grads, events in (found["deep"] for found in two_ranks):
        assert len(grads) > 40
        assert events.count("sum") == 2


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_sent_during_the_last_backward_pass(two_ranks, case):
    """Of the last chunk alone, whose gradients are complete; by a rank without rows and by one whose are not, later."""
    both = [events for _, events in (found[case] for found in two_ranks)]
    for rank, events in enumerate(both):
        assert events.count("sum") == both[0].count("sum") > 1
        during = "gradient" in events[events.index("sum") :]
        assert during == (case != "parameters without a gradient" and "gradient" in events)
        assert ("gradient" in events) != (case == "a rank without rows" and rank == 1)
        assert events.index("sum") >= len(events) - events.count("sum") - during  # not before the last chunk
