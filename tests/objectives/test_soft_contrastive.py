"""Soft contrastive alignment against the loops of tests/oracle.py, and its invariants (specification of the method)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import InfoNCE, SoftContrastive
from isoglot.objectives.kernel import slot_pairs
from toys import TOY_LANGUAGES, toy_batch


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


def assert_agrees(objective, vectors, batch, *settings):
    found = {name: float(loss) for name, loss in objective(vectors, batch).items()}
    cross, mono = oracle.soft_contrastive(taught_rows(vectors, batch), *settings)
    assert found["soft_contrastive"] == pytest.approx(cross, abs=1e-9)
    assert found.get("soft_contrastive/mono", 0.0) == pytest.approx(mono, abs=1e-9)


@given(
    batches(),
    st.sampled_from(["priority", "average"]),
    st.none() | st.permutations(TOY_LANGUAGES),  # without a list, the order of the stream's languages
    st.sampled_from(["off", "paper", "code"]),
    st.sampled_from([(0.1, 0.1), (0.3, 0.05), (1.0, 0.5)]),
)
def test_agrees_with_the_loops(case, labels, order, tcm, temperatures):
    vectors, batch = case
    warm, cold = temperatures
    # Toy languages are no codes of the house, so their order is handed over as a recipe's would be resolved.
    objective = SoftContrastive(labels=labels, temperature=warm, teacher_temperature=cold, tcm=tcm, tcm_lambda=0.4)
    ranks = [(order or TOY_LANGUAGES).index(code) for code in TOY_LANGUAGES]
    objective.places = order and ranks
    assert_agrees(objective, vectors, batch, labels, ranks, warm, cold, tcm, 0.4)


@given(st.integers(1, 6), st.sampled_from(["off", "paper", "code"]), st.integers(0, 99))
@settings(max_examples=20)
def test_hard_labels_agree_with_the_loops(n, tcm, seed):
    assert_agrees(SoftContrastive(labels="hard", tcm=tcm), *pairs(n, seed), "hard", [], 0.1, 0.1, tcm, 0.1)


def test_hard_labels_are_symmetric_info_nce_and_need_no_teacher():
    """Equal keys included: two of the five pairs mean the same."""
    batch = toy_batch([2] * 5, keys=[1, 2, 3, 2, 5])
    vectors = torch.randn(10, 6, dtype=torch.float64)
    expected = sum(InfoNCE(temperature=0.2, direction="two-way")(vectors, batch).values())
    batch.extras.clear()
    found = losses_of(vectors, batch, labels="hard", temperature=0.2)
    assert found == {"soft_contrastive": pytest.approx(float(expected))}


@given(batches(), st.sampled_from(["priority", "average"]), st.sampled_from(["off", "code"]))
@settings(max_examples=30)
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


def test_the_languages_of_the_stream_have_places_in_the_list():
    """Whose codes are of any system, and where zho stands for its scripts."""
    objective = SoftContrastive(priority=("en", "zh", "ko"), languages=("kor", "zho_Hans", "eng"))
    assert objective.places == (2, 1, 0)
    assert SoftContrastive(languages=("jpn", "eng", "rus")).places == ()  # their own order
    with pytest.raises(ValueError, match="languages"):
        SoftContrastive(priority=("en", "ko"))
