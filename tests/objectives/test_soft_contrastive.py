"""Soft contrastive alignment against the loops of tests/oracle.py, and its invariants (specification of the method)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.data.batch import Batch
from isoglot.objectives import InfoNCE, SoftContrastive
from isoglot.objectives import soft_contrastive as module
from isoglot.objectives.kernel import slot_pairs
from isoglot.training import ranks
from isoglot.training.step import StepLimits, backward
from toys import TOY_LANGUAGES, ToyEncoder, take, toy_batch, toy_objective

WHOLE = StepLimits(chunk_tokens=10**9, graph_tokens=10**9)


def taught_rows(vectors, batch):
    rows = rows_of(vectors, batch)
    for row, lang, teacher in zip(rows, batch.lang.tolist(), batch.extras["teacher"].tolist(), strict=True):
        row |= {"lang": lang, "teacher": teacher}
    return rows


def pairs(n, seed=0):
    """n pairs of random vectors, and their batch."""
    batch = toy_batch([2] * n, seed=seed)
    return torch.randn(2 * n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)), batch


def losses_of(vectors, batch, **options):
    return {name: float(loss) for name, loss in SoftContrastive(**options)(vectors, batch).items()}


@given(
    batches(),
    st.sampled_from(["priority", "average"]),
    st.permutations(TOY_LANGUAGES),
    st.sampled_from(["off", "paper", "code"]),
    st.sampled_from([(0.1, 0.1), (0.3, 0.05), (1.0, 0.5)]),
)
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_loops(case, labels, order, tcm, temperatures):
    vectors, batch = case
    warm, cold = temperatures
    # Toy languages are no codes of the house, so their order is handed over as a recipe's would be resolved.
    objective = SoftContrastive(labels=labels, temperature=warm, teacher_temperature=cold, tcm=tcm, tcm_lambda=0.4)
    ranks = [order.index(code) for code in TOY_LANGUAGES]
    objective.places = ranks
    found = {name: float(loss) for name, loss in objective(vectors, batch).items()}
    cross, mono = oracle.soft_contrastive(taught_rows(vectors, batch), labels, ranks, warm, cold, tcm, 0.4)
    assert found["soft_contrastive"] == pytest.approx(cross, abs=1e-9)
    assert found.get("soft_contrastive/mono", 0.0) == pytest.approx(mono, abs=1e-9)


@given(st.integers(1, 6), st.sampled_from(["off", "paper", "code"]), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_hard_labels_agree_with_the_loops(n, tcm, seed):
    vectors, batch = pairs(n, seed)
    found = losses_of(vectors, batch, labels="hard", tcm=tcm)
    cross, mono = oracle.soft_contrastive(taught_rows(vectors, batch), "hard", [], 0.1, 0.1, tcm, 0.1)
    assert found["soft_contrastive"] == pytest.approx(cross, abs=1e-9)
    assert found.get("soft_contrastive/mono", 0.0) == pytest.approx(mono, abs=1e-9)


def test_hard_labels_are_symmetric_info_nce_and_need_no_teacher():
    """Equal keys included: two of the five pairs mean the same."""
    batch = toy_batch([2] * 5, keys=[1, 2, 3, 2, 5])
    vectors = torch.randn(10, 6, dtype=torch.float64)
    expected = sum(InfoNCE(temperature=0.2, direction="two-way")(vectors, batch).values())
    batch.extras.clear()
    found = losses_of(vectors, batch, labels="hard", temperature=0.2)
    assert found == {"soft_contrastive": pytest.approx(float(expected))}


@pytest.mark.parametrize("labels", ["priority", "average"])
def test_targets_of_rows_and_of_columns_sum_to_one(labels, monkeypatch):
    """What the kernel is handed, before it scales anything."""
    seen = []
    real = module.contrast
    monkeypatch.setattr(
        module, "contrast", lambda a, b, target, equation: seen.append(target) or real(a, b, target, equation)
    )
    losses_of(*pairs(7), labels=labels, tcm="paper")
    assert len(seen) == 4
    for target in seen:
        table = target(slice(0, 7))
        assert torch.allclose(table.sum(1), torch.ones(7, dtype=torch.float64))
        assert bool((table > 0).all())


def test_a_block_of_the_target_is_a_part_of_the_whole(monkeypatch):
    """The kernel asks for the target block by block: whole and in blocks of one anchor, value and gradient agree."""
    from isoglot.objectives import kernel

    vectors, batch = pairs(6)
    results = []
    for cells in (kernel.BLOCK_CELLS, 1):
        monkeypatch.setattr(kernel, "BLOCK_CELLS", cells)
        leaf = vectors.clone().requires_grad_()
        loss = torch.stack(list(SoftContrastive(tcm="code")(leaf, batch).values())).sum()
        loss.backward()
        results.append((loss.detach(), leaf.grad))
    assert torch.allclose(results[0][0], results[1][0])
    assert torch.allclose(results[0][1], results[1][1])


def test_the_teacher_receives_no_gradient():
    vectors, batch = pairs(4)
    teacher = batch.extras["teacher"].requires_grad_()
    leaf = vectors.clone().requires_grad_()
    SoftContrastive(value="kl")(leaf, batch)["soft_contrastive"].backward()
    assert teacher.grad is None
    assert bool(leaf.grad.abs().max() > 0)


def test_average_with_identical_sides_is_priority():
    vectors, batch = pairs(5)
    batch.extras["teacher"][1::2] = batch.extras["teacher"][::2]
    for tcm in ("off", "paper", "code"):
        expected = losses_of(vectors, batch, labels="priority", tcm=tcm)
        assert losses_of(vectors, batch, labels="average", tcm=tcm) == pytest.approx(expected)


def test_the_code_weighs_cross_to_mono_one_to_two():
    vectors, batch = pairs(5)
    off, paper, code = (losses_of(vectors, batch, tcm=tcm, tcm_lambda=0.25) for tcm in ("off", "paper", "code"))
    assert paper["soft_contrastive"] == pytest.approx(0.25 * off["soft_contrastive"])
    assert code["soft_contrastive"] == pytest.approx(off["soft_contrastive"])
    assert code["soft_contrastive/mono"] == pytest.approx(2 * paper["soft_contrastive/mono"])


@given(batches(), st.sampled_from(["priority", "average"]), st.sampled_from(["off", "code"]))
@settings(max_examples=30, deadline=None)
def test_kl_is_cross_entropy_without_the_floor(case, labels, tcm):
    """Never negative, the same gradient, and zero for a student that has the teacher's similarities."""
    vectors, batch = case
    grads, values = [], []
    for value in ("cross-entropy", "kl"):
        leaf = vectors.clone().requires_grad_()
        loss = torch.stack(list(SoftContrastive(labels=labels, tcm=tcm, value=value)(leaf, batch).values())).sum()
        loss.backward()
        grads.append(leaf.grad)
        values.append(loss.item())
    assert -1e-9 <= values[1] <= values[0] + 1e-9
    assert torch.allclose(*grads, atol=1e-12)
    same = batch.extras["teacher"].clone()
    first, second = slot_pairs(batch.group, batch.slot)
    same[second] = same[first]
    batch.extras["teacher"] = same
    assert sum(losses_of(same, batch, labels=labels, tcm=tcm, value="kl").values()) == pytest.approx(0, abs=1e-9)


def test_the_anchor_language_of_each_pair_is_its_own():
    """Languages 0-1, 2-0 and 1-2 in one batch; trusted in the order 2, 1, 0."""
    _, batch = pairs(3)
    batch.lang = torch.tensor([0, 1, 2, 0, 1, 2])
    objective = SoftContrastive(priority=("rus", "eng", "kor"), languages=("kor", "eng", "rus"))
    trusted = batch.extras["teacher"][[1, 2, 5]]
    expected = torch.nn.functional.normalize(trusted, dim=1)
    assert torch.equal(objective._teacher(batch, *slot_pairs(batch.group, batch.slot), torch.device("cpu")), expected)


def test_without_a_list_the_order_of_the_streams_languages_is_the_priority():
    _, batch = pairs(2)
    batch.lang = torch.tensor([1, 0, 0, 2])
    found = SoftContrastive(languages=("jpn", "eng", "rus"))._teacher(
        batch, *slot_pairs(batch.group, batch.slot), torch.device("cpu")
    )
    assert torch.equal(found, torch.nn.functional.normalize(batch.extras["teacher"][[1, 2]], dim=1))


def test_codes_of_the_list_are_of_any_system_and_zho_stands_for_its_scripts():
    objective = SoftContrastive(priority=("en", "zh", "ko"), languages=("kor", "zho_Hans", "eng"))
    assert objective.places == (2, 1, 0)
    with pytest.raises(ValueError, match="languages"):
        SoftContrastive(priority=("en", "ko"))


def test_uniform_labels_give_the_known_value():
    """A teacher that finds all alike, a student of orthogonal pairs: log-sum-exp of a row minus its mean."""
    _, batch = pairs(3)
    batch.extras["teacher"] = torch.ones(6, 4, dtype=torch.float64)
    vectors = torch.eye(3, dtype=torch.float64).repeat_interleave(2, 0)
    found = losses_of(vectors, batch, temperature=1.0)["soft_contrastive"]
    assert found == pytest.approx(2 * (math.log(math.e + 2) - 1 / 3))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"tcm": "code"}, {"labels": "average", "value": "kl"}, {"labels": "hard"}])
def test_two_ranks_see_each_others_pairs_and_teacher(options, tmp_path):
    """The real step on two processes: the gradient of one, with negatives and teacher's vectors of both."""
    mp.spawn(_rank, args=(str(tmp_path), options), nprocs=2)
    encoder = ToyEncoder()
    report = backward(encoder, toy_objective("soft_contrastive", encoder, **options), toy_batch([2] * 7), WHOLE)
    alone = ToyEncoder()
    backward(alone, toy_objective("soft_contrastive", alone, **options), _mine(0), WHOLE)
    for rank in range(2):
        got = torch.load(tmp_path / f"{rank}.pt")
        assert got["losses"] == pytest.approx({name: float(loss) for name, loss in report.losses.items()})
        for found, parameter, own in zip(got["gradients"], encoder.parameters(), alone.parameters(), strict=True):
            assert torch.allclose(found, parameter.grad, rtol=1e-9, atol=1e-12)
            assert not torch.allclose(found, own.grad)  # which a rank without the other's pairs would have


def _mine(rank: int) -> Batch:
    """Three of the seven pairs for the first rank, four for the second."""
    batch = toy_batch([2] * 7)
    rows = (batch.group < 3 if rank == 0 else batch.group >= 3).nonzero()[:, 0]
    return take(batch, rows)


def _rank(rank: int, folder: str, options: dict[str, str]) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.set_num_threads(1)
    encoder = ToyEncoder()
    report = backward(encoder, toy_objective("soft_contrastive", encoder, **options), _mine(rank), StepLimits(10, 0))
    ranks.GradientSum(encoder).finish()
    losses = {name: float(loss) for name, loss in report.losses.items()}
    gradients = [parameter.grad for parameter in encoder.parameters()]
    torch.save({"losses": losses, "gradients": gradients}, Path(folder) / f"{rank}.pt")
    ranks.leave()  # a process that ends with threads of the group may be aborted
