"""Dual momentum contrast against the loops of tests/oracle.py, and its order of operations."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from conftest import SENTENCES, build_transformer
from isoglot.core import machine
from isoglot.core.errors import RecipeError
from isoglot.encoders.towers import Towers
from isoglot.objectives import build
from isoglot.objectives.dual_momentum import KEY, NOTHING, DualMomentum, draw_queues
from isoglot.training.step import StepLimits, backward
from toys import DIM, ToyEncoder, toy_batch

LIMITS = StepLimits(30, 0)


def filled(queue, width, generator, **options):
    """An objective whose queues hold random unit keys of known meanings, some of which a batch will meet again."""
    encoder = ToyEncoder()
    encoder.dim = width
    objective = DualMomentum(encoder=encoder, temperature=0.3, queue=queue, **options)
    keys = torch.randn(2, queue, width, generator=generator, dtype=torch.float64)
    objective.queues.copy_(torch.nn.functional.normalize(keys, dim=2))
    objective.meanings.copy_(torch.randint(0, 8, (queue,), generator=generator))
    return objective


@given(batches(), st.sampled_from(["on", "off"]), st.integers(1, 9))
def test_agrees_with_the_loops(case, in_batch, queue):
    vectors, batch = case
    generator = torch.Generator().manual_seed(queue)
    objective = filled(queue, 5, generator, in_batch_keys=in_batch)
    batch.extras[KEY] = torch.randn(len(batch), 5, generator=generator, dtype=torch.float64)
    batch.extras[KEY] /= batch.extras[KEY].norm(dim=1, keepdim=True)
    rows = rows_of(vectors, batch)
    for row, key in zip(rows, batch.extras[KEY].tolist(), strict=True):
        row["key_vector"] = key
    losses = objective(vectors, batch)
    for slot, name in enumerate(("dual_momentum", "dual_momentum/back")):
        stored = objective.queues[1 - slot].tolist(), objective.meanings.tolist()
        expected = oracle.dual_momentum(rows, *stored, 0.3, slot=slot, in_batch=in_batch == "on")
        assert losses[name].item() == pytest.approx(expected, abs=1e-9)


def step(encoder, objective, *batches, lr=0.1):
    """A step of training as a stage has it, of batches that are accumulated; returns the report on the last one."""
    encoder.zero_grad()
    reports = [backward(encoder, objective, batch, LIMITS, share=1 / len(batches)) for batch in batches]
    with torch.no_grad():
        for weight in encoder.parameters():
            weight -= lr * weight.grad
        objective.after_step(encoder, [report.batch for report in reports])
    return reports[-1]


@pytest.mark.parametrize("count", [1, 3])
def test_the_key_encoder_follows_once_a_step_and_has_no_gradient(count):
    """Also where batches are accumulated, the keys of all of which are enqueued."""
    encoder = ToyEncoder()
    objective = DualMomentum(encoder=encoder, momentum=0.9, queue=40)
    assert not any(weight.requires_grad for weight in objective.parameters())
    expected = [weight.clone() for weight in encoder.parameters()]
    for turn in range(3):
        step(encoder, objective, *(toy_batch([2, 2, 2], seed=count * turn + place) for place in range(count)))
        assert int(objective.pointer) == 3 * count * (turn + 1)
        expected = [0.9 * old + 0.1 * new for old, new in zip(expected, encoder.parameters(), strict=True)]
        for got, wanted in zip(objective.key_encoder.parameters(), expected, strict=True):
            torch.testing.assert_close(got, wanted)
            assert got.grad is None


def test_the_key_encoder_counts_as_changed_where_lists_do_not(monkeypatch):
    """Or copies of its weights, which accelerators use, would stay as they were: on CUDA lists do not count."""
    lerp = torch._foreach_lerp_
    monkeypatch.setattr(torch, "_foreach_lerp_", lambda to, new, share: lerp([one.data for one in to], new, share))
    encoder = ToyEncoder()
    objective = DualMomentum(encoder=encoder, momentum=0.9, queue=8)
    before = [weight._version for weight in objective.key_encoder.parameters()]
    objective.after_step(encoder, [])
    after = [weight._version for weight in objective.key_encoder.parameters()]
    assert all(new > old for new, old in zip(after, before, strict=True))


def test_buffers_follow_too():
    encoder = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    encoder.dim = 3
    objective = DualMomentum(encoder=encoder, momentum=0.5, queue=2)
    encoder[0].running_mean.fill_(4.0)
    encoder[0].num_batches_tracked.fill_(7)
    batch = toy_batch([2])
    batch.extras[KEY] = torch.zeros(2, 3)
    with torch.no_grad():
        objective.after_step(encoder, [batch])
    assert objective.key_encoder[0].running_mean.tolist() == [2.0, 2.0, 2.0]
    assert objective.key_encoder[0].num_batches_tracked == 7


@pytest.mark.parametrize("length", [3, 5, 8])
def test_the_pointer_wraps_for_any_batch(length):
    """Batches shorter and longer than the queue: it holds the latest keys of both slots, and no others."""
    encoder = ToyEncoder()
    objective = DualMomentum(encoder=encoder, queue=length)
    history, meanings = [[*objective.queues[slot]] for slot in (0, 1)], [NOTHING] * length
    for turn, pairs in enumerate([2, 1, 4, 7, 3, 0, 2]):
        sizes, keys = [3] * pairs + [1], list(range(turn * 100, turn * 100 + pairs + 1))
        rows = toy_batch(sizes, keys=keys, hard=[1] * len(sizes), seed=turn)
        batch = step(encoder, objective, rows, lr=0.0).batch
        for slot in (0, 1):
            history[slot] += [*batch.extras[KEY][batch.slot == slot][:pairs]]
        meanings += keys[:pairs]
        order = (torch.arange(length) + objective.pointer) % length  # from the oldest on
        for slot in (0, 1):
            assert torch.equal(objective.queues[slot][order], torch.stack(history[slot][-length:]))
        assert objective.meanings[order].tolist() == meanings[-length:]
    assert torch.allclose(objective.queues.norm(dim=2), torch.ones((), dtype=torch.float64))


def test_the_loss_sees_the_queue_as_it_was_before_the_batch():
    """The same batch of two pairs twice: only the second time are their keys candidates, of their own meaning none."""
    encoder = ToyEncoder()
    objective = DualMomentum(encoder=encoder, queue=2, momentum=1.0, temperature=0.5)
    objective.queues.zero_()  # cosine 0 to everything
    batch = toy_batch([2, 2], keys=[5, 6])
    losses = [step(encoder, objective, batch, lr=0.0).losses["dual_momentum"] for _ in range(2)]
    z = torch.nn.functional.normalize(encoder(batch.tokens), dim=1)
    logits = z[0::2] @ z[1::2].T / 0.5
    positive = logits.diagonal()
    assert losses[0].item() == pytest.approx((positive.exp() + 2).log().sub(positive).mean().item())
    assert losses[1].item() == pytest.approx(logits.logsumexp(1).sub(positive).mean().item())


def test_key_dropout_can_be_off_and_the_training_head_stays():
    encoder = build_transformer(pooling="cls", head="tanh").train()
    batch = toy_batch([2, 2])
    batch.tokens = encoder.tokenize(SENTENCES[:4])
    keys = {}
    for switch in ("on", "off"):
        objective = DualMomentum(encoder=encoder, queue=4, key_dropout=switch)
        keys[switch] = []
        for _ in range(2):
            with torch.no_grad():
                objective.annotate(batch)
            keys[switch].append(batch.extras[KEY])
    assert not torch.allclose(*keys["on"])
    assert torch.equal(*keys["off"])
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    encoder.backbone.config.attention_probs_dropout_prob = 0.0
    plain = copy.deepcopy(encoder).eval()
    plain.training = True  # its own flag, which the head goes by
    expected = torch.nn.functional.normalize(plain(batch.tokens), dim=1)
    torch.testing.assert_close(keys["off"][0], expected.detach())


@pytest.mark.parametrize("kind", ["static", "transformer", "towers"])
def test_the_copy_shares_what_is_frozen_and_the_tokenizer_alone(kind, toy_static):
    frozen = build_transformer(freeze_embeddings=True)
    encoder = {
        "static": toy_static,
        "transformer": frozen,
        "towers": Towers({"a": frozen, "b": build_transformer(seed=3)}, {"a": ["LATIN"]}),
    }[kind].train()
    objective = DualMomentum(encoder=encoder, queue=4)
    for own, new in zip(objective.key_encoder.parameters(), encoder.parameters(), strict=True):
        assert torch.equal(own, new)
        assert (own.data_ptr() == new.data_ptr()) == (not new.requires_grad)
    other = DualMomentum(encoder=encoder, queue=4, seed=7)
    other.load_state_dict(objective.state_dict())
    assert torch.equal(other.queues, objective.queues)
    batch = toy_batch([2, 2, 2])
    batch.tokens = encoder.tokenize(SENTENCES[:6])
    report = backward(encoder, objective, batch, LIMITS)
    with torch.no_grad():
        objective.after_step(encoder, [report.batch])
    assert all(bool(torch.isfinite(loss)) for loss in report.losses.values())


def test_queues_begin_as_random_unit_vectors_of_a_seed():
    first, again, other = (DualMomentum(encoder=ToyEncoder(), queue=500, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.queues, again.queues)
    assert not torch.equal(first.queues, other.queues)
    assert not torch.equal(first.queues[0], first.queues[1])
    assert torch.allclose(first.queues.norm(dim=2), torch.ones((), dtype=torch.float64))
    assert first.queues.mean(dim=1).abs().max() < 5 / (500 * DIM) ** 0.5


def test_a_queue_larger_than_memory_is_one_clear_line():
    message = r"objectives: queue: two queues of 4,000,000,000 x 12 numbers need 768\.0 GB, and "
    with pytest.raises(RecipeError, match=message + r"[\d,.]+ GB of memory are free; use fewer$"):
        build("dual_momentum", {"queue": 4 * 10**9}, ToyEncoder())


def test_what_is_available_is_read_where_linux_says_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "LIMITS", (tmp_path / "limit",))
    assert machine.free_bytes(torch.device("cpu")) > 1 << 28  # all there is
    (tmp_path / "meminfo").write_text("MemTotal:       9 kB\nMemAvailable:   3 kB\nHugePages_Total:   0\n")
    assert machine.free_bytes(torch.device("cpu")) == 3072
    (tmp_path / "limit").write_text("max\n")
    assert machine.free_bytes(torch.device("cpu")) == 3072
    with pytest.raises(ValueError, match="17 x 12 numbers"):
        draw_queues(ToyEncoder(), 17, seed=0)
    assert draw_queues(ToyEncoder(), 16, seed=0).shape == (2, 16, 12)
    (tmp_path / "limit").write_text("3071\n")  # of a container
    with pytest.raises(ValueError, match="16 x 12 numbers"):
        draw_queues(ToyEncoder(), 16, seed=0)
