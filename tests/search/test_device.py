"""The search of an accelerator, on torch's CPU: what NumPy's finds, ties included, in any tiling."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from search_loops import assert_same, whole

import isoglot
from isoglot.core.errors import EncoderError
from isoglot.data import Group
from isoglot.data.files import BUNDLED, read_lines
from isoglot.index import table
from isoglot.mining import add_hard_negatives, filter_pairs
from isoglot.search import Checkpoint, device, exact, hard_negatives, mine, neighbours


@pytest.fixture(scope="module", autouse=True)
def on_torch():
    """ "here" is an accelerator, of torch's CPU."""
    with pytest.MonkeyPatch.context() as patch:
        before = exact.accelerator
        for module in (exact, table):
            patch.setattr(module, "accelerator", lambda name: torch.device("cpu") if name == "here" else before(name))
        yield patch


@pytest.fixture
def small(monkeypatch):
    """Many tiles, blocks and stripes."""
    monkeypatch.setattr(device, "SIDE", 64)
    monkeypatch.setattr(device, "STRIPE", 200 * 6)


@given(
    st.integers(1, 150), st.integers(1, 150), st.integers(1, 5), st.integers(1, 50), st.sampled_from([32, 64]),
    st.sampled_from([1, 500]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_equals_numpy(n, m, dim, k, side, stripe, seed):
    rng = np.random.default_rng(seed)
    x, y = whole(rng, n, dim, 1), whole(rng, m, dim, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "SIDE", side)
        patch.setattr(device, "STRIPE", stripe)
        assert_same(neighbours(x, y, k, device="here"), neighbours(x, y, k))


@pytest.mark.parametrize("k", [1, 4, 33, 300])
@pytest.mark.parametrize("choice", [1, 1 << 26])
def test_many_tiles_of_many_groups(k, choice, small, monkeypatch):
    monkeypatch.setattr(device, "SIDE", 256)
    monkeypatch.setattr(device, "CHOICE", choice)
    rng = np.random.default_rng(k)
    x, y = whole(rng, 401, 6), whole(rng, 603, 6)
    assert_same(neighbours(x, y, k, device="here"), neighbours(x, y, k))


def test_zeros_of_both_signs(small):
    signs = np.where(np.arange(100) % 3, 0.0, -0.0).astype(np.float32)[:, None]
    assert_same(neighbours(signs, signs, 7, device="here"), neighbours(signs, signs, 7))


@pytest.mark.parametrize(
    ("kind", "view"),
    [("<f2", np.s_[:]), ("<f4", np.s_[:]), ("<f8", np.s_[::-1]), ("<f4", np.s_[:, ::-1]), ("<f4", np.s_[::2, 1:5])],
)
def test_memory_maps_of_any_float_and_views(kind, view, small, tmp_path):
    rng = np.random.default_rng(1)
    for name, rows in (("x", 150), ("y", 290)):
        np.save(tmp_path / f"{name}.npy", whole(rng, rows, 6).astype(kind))
    x, y = (np.load(tmp_path / f"{name}.npy", mmap_mode="r")[view] for name in "xy")
    assert_same(neighbours(x, y, 3, device="here"), neighbours(x, y, 3))


def test_cosines_of_floats_and_of_equal_rows(small):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((300, 24), np.float32), rng.standard_normal((350, 24), np.float32)
    y[100:] = y[rng.integers(0, 100, 250)]  # each about three times, in several tiles and stripes
    one, other = neighbours(x, y, 5, metric="cosine", device="here"), neighbours(x, y, 5, metric="cosine")
    for at, found in (0, y), (2, x):
        np.testing.assert_allclose(one[at], other[at], atol=1e-6)
        np.testing.assert_array_equal(found[one[at + 1]], found[other[at + 1]])  # a BLAS may round equal rows apart
        for scores, ids in (one[at : at + 2], other[at : at + 2]):
            assert ((np.diff(scores) < 0) | (np.diff(ids) > 0)).all()


@pytest.mark.parametrize(
    ("value", "said"), [(np.nan, "row 70 of the vectors"), (np.inf, "row 70 of the vectors"), (3e38, "does not fit")]
)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("k", [1, 40])
def test_values_that_do_not_fit(value, said, side, k, small):
    sides = [np.ones((90, 3), np.float32), np.ones((95, 3), np.float32)]
    sides[side][70] = value, -value, 2
    sides[1 - side][5] = 2, 2, 2  # infinity minus infinity
    with pytest.raises(ValueError, match=said):
        neighbours(*sides, k, device="here")


@pytest.mark.parametrize("place", ["here", None])
@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0)])
def test_empty_sides(n, m, place):
    found = neighbours(np.ones((n, 3)), np.ones((m, 3)), 2, device=place)
    assert [part.shape for part in found] == [(n, min(2, m))] * 2 + [(m, min(2, n))] * 2


@pytest.fixture
def interrupted(small, tmp_path):
    """Vectors, and a checkpoint of a search that was interrupted in its third stripe."""
    rng = np.random.default_rng(2)
    x, y = whole(rng, 200, 6), whole(rng, 900, 6)
    messages, every = [], []
    checkpoint = Checkpoint(tmp_path / "state", 0.0, messages.append)
    settings = {"metric": "cosine", "checkpoint": checkpoint, "device": "here"}

    def interrupt(done, total):
        every.append((done, total))
        if done == 10:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isoglot.search.checkpoint.SHARE", 0)
        with pytest.raises(KeyboardInterrupt):
            neighbours(x, y, 3, progress=interrupt, **settings)
    assert every[-1] == (10, 5 * 4)  # stripes of 192 and blocks of 64 rows
    return x, y, settings, messages


def test_resumes_after_the_last_stripe(interrupted):
    x, y, options, messages = interrupted
    turns = []
    found = neighbours(x, y, 3, progress=lambda done, _: turns.append(done), **options)
    assert turns == [*range(9, 21)]
    assert_same(found, neighbours(x, y, 3, metric="cosine", device="here"))
    neighbours(x, y, 3, progress=lambda done, _: turns.append(done), **options)
    assert (turns[12:], messages) == ([], [])


@pytest.mark.parametrize("changed", ["device", "SIDE", "STRIPE"])
def test_another_device_or_tiling_starts_again(changed, interrupted, monkeypatch):
    """Products differ in the last bit, or what is done is another part."""
    x, y, options, messages = interrupted
    if changed == "device":
        options["device"] = None
    else:
        monkeypatch.setattr(device, changed, 32)
    found = neighbours(x, y, 3, **options)
    assert "another search" in messages[0]
    assert_same(found, neighbours(x, y, 3, metric="cosine", device=options["device"]))


@pytest.mark.parametrize("within", [False, True])
def test_pairs_and_hard_negatives(within, small):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, 16), np.float32)
    y = x[::-1] + 0.3 * rng.standard_normal((300, 16), np.float32)
    one, other = (mine(x, None if within else y, device=place) for place in ("here", None))
    assert len(one) > 100
    np.testing.assert_array_equal([one.source, one.target], [other.source, other.target])
    np.testing.assert_allclose(one.score, other.score, atol=1e-6)
    gold = [*range(300)], [*reversed(range(300))]
    assert_same([hard_negatives(x, y, gold, 3, device="here")], [hard_negatives(x, y, gold, 3)])


@pytest.mark.parametrize("keep", [None, 0.6])
@pytest.mark.parametrize("first", [0, 5000])
def test_rows_of_an_index(keep, first):
    rng = np.random.default_rng(4)
    rows = table.Table(-abs(whole(rng, 9001, 4)) - 1)  # scores below zero, which is that of what fills up a block
    keep = None if keep is None else rng.random(9001) < keep
    queries = abs(whole(rng, table._MANY, 4)) + 1
    one, other = (table.find_nearest(rows, queries, 20, first=first, keep=keep, device=at) for at in ("here", None))
    assert_same([one], [other])


def test_a_device_that_is_absent_is_named():
    with pytest.raises(EncoderError, match="'cuda' is not available"):
        neighbours(np.ones((2, 2)), np.ones((2, 2)), 1, device="cuda")


def test_a_device_without_torch_names_the_extra():
    code = """
import sys
sys.modules["torch"] = None
import numpy as np
from isoglot.search import neighbours
x = np.ones((2, 2))
neighbours(x, x, 1, device="auto")
neighbours(x, x, 1, device="cuda")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError" in done.stderr
    assert 'pip install "isoglot[torch]"' in done.stderr
    assert done.returncode == 1


@pytest.mark.slow
def test_verbs_give_what_they_give_by_numpy(monkeypatch):
    """Mined pairs, paraphrases, hard negatives and filtered pairs, of lines of newspapers."""
    source, target = (
        [text for _, text in read_lines(BUNDLED / "mine" / f"deu-eng.{code}.xz")][:600] for code in ("deu", "eng")
    )
    model = isoglot.load("isoglot-static")
    pairs = [Group(both, ("deu", "eng")) for both in zip(source, target, strict=True)]

    def everything():
        return (
            isoglot.mine(model, source, target, threshold="all"),
            isoglot.mine(model, source + target, threshold="all", direction="intersection"),
            add_hard_negatives(model, pairs[:300], 3),
            [group.texts for group in filter_pairs(model, pairs).kept],
        )

    expected, searches, search = everything(), [], device.search
    monkeypatch.setattr(device, "SIDE", 256)
    monkeypatch.setattr(device, "STRIPE", 512 * model.dim)
    monkeypatch.setattr(device, "search", lambda *given, **more: searches.append(1) or search(*given, **more))
    monkeypatch.setattr(exact, "accelerator", lambda name: torch.device(name))  # of a model on the CPU
    found = everything()
    assert len(searches) == 4
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert len(one) > 100
        np.testing.assert_array_equal([one.rows.source, one.rows.target], [other.rows.source, other.rows.target])
        np.testing.assert_allclose(one.rows.score, other.rows.score, atol=1e-5)
    assert found[2:] == expected[2:]
