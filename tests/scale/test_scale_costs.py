"""The table of costs in the documents is the one that the benchmark works out, and its formulas are those written."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def costs():
    spec = importlib.util.spec_from_file_location("costs_of_scale", ROOT / "benchmarks" / "scale.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_table_of_the_documents_is_up_to_date(costs):
    assert costs.table(costs.Rates()) in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def test_formulas(costs):
    n, e, f, s, dim, probes = 10**6, 50.0, 1e10, 1e9, 256, 8
    found = costs.plan(n, costs.Rates(encode=e, product=f, scan=s, dim=dim, probes=probes))
    lists = 4 * math.sqrt(n)
    assert found.encode * 3600 == pytest.approx(2 * n / e)
    assert found.add * 3600 == pytest.approx(2 * n / 20e3)
    assert found.exact * 3600 == pytest.approx(2 * n**2 * dim / f)
    one_way = 4 * n * lists * dim / f + 2 * n * probes * (n / lists) * dim / s
    assert found.approximate * 3600 == pytest.approx(2 * one_way)
    assert found.vectors == 4 * n * dim
    assert found.codes == 2 * n * 56


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (0.00987, "0.0099"), (3.55, "3.5"), (15.01, "15"), (3555555, "3,600,000"), (9.96, "10")],
)
def test_numbers_have_two_digits(costs, value, expected):
    assert costs.number(value) == expected


def test_sizes(costs):
    assert (costs.size(1.5e9), costs.size(1.5e12)) == ("1.5 GB", "1.5 TB")
