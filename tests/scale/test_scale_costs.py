"""The table of costs in the documents is the one that the benchmark works out, and its formulas are those written."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from isoglot.mining import Computation
from isoglot.search.faiss_index import create, train

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def costs():
    spec = importlib.util.spec_from_file_location("costs_of_scale", ROOT / "benchmarks" / "scale.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(ROOT / "benchmarks"))  # for its modules
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return module


def test_the_table_of_the_documents_is_up_to_date(costs):
    assert costs.table(costs.Rates()) in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_formulas(costs):
    n, e, f, s, dim, probes = 10**6, 50.0, 1e10, 1e9, 256, 8
    found = costs.plan(n, costs.Rates(encode=e, product=f, scan=s, scan_codes=s / 2, dim=dim, probes=probes))
    lists = 4 * math.sqrt(n)
    assert found.encode * 3600 == pytest.approx(2 * n / e)
    assert found.add * 3600 == pytest.approx(2 * n / 22e3)
    assert found.exact * 3600 == pytest.approx(2 * n**2 * dim / f)
    centres, scan = 4 * n * lists * dim / f, n * probes * (n / lists) * dim / s
    assert found.approximate * 3600 == pytest.approx(2 * (centres + scan))
    assert found.compressed * 3600 == pytest.approx(2 * (centres + 2 * scan))
    assert found.vectors == 4 * n * dim
    assert found.codes == 2 * n * (64 + 8)


@pytest.mark.parametrize("dim", [256, 384])
def test_lists_and_bytes_are_those_of_the_index_that_is_made(costs, dim):
    faiss = pytest.importorskip("faiss")
    rows = 2_000
    index = create("ivf-pq", rows, dim)
    vectors = np.random.default_rng(0).standard_normal((rows, dim), dtype=np.float32)
    train(index, lambda drawn: vectors[drawn[:300]], rows)
    empty = faiss.serialize_index(index).nbytes
    index.add(vectors)
    assert index.nlist == costs.lists(rows, dim)
    assert (faiss.serialize_index(index).nbytes - empty) / rows == pytest.approx(costs.code_bytes(rows, dim), rel=0.02)
    assert costs.Rates().probes == Computation().probes


def test_what_is_measured_are_the_rates(costs, toy_static):
    pytest.importorskip("faiss")
    rates = costs.measure([f"the cat and dog number {row}" for row in range(100)], toy_static, rows=1_000, dim=32)
    assert {name for name in rates if not name.startswith("bytes")} <= set(vars(costs.Rates()))
    assert all(0 < rate < 1e15 for rate in rates.values())
    assert rates["bytes of a row in ivf"] == pytest.approx(32 * 4 + 8, rel=0.02)
    assert rates["bytes of a row in ivf-pq"] == pytest.approx(costs.code_bytes(1_000, 32), rel=0.05)
