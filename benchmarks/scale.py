"""Estimates time and cost of encoding, indexing and mining N sentences from measured rates.

    python benchmarks/scale.py                                        the rates of docs/scale.md
    python benchmarks/scale.py --encode 2000 --product 20e12 --scan 1e12 --price 3.0      others, of an accelerator say

A rate is for one worker: a core, or an accelerator. Nothing is measured here; the numbers are arithmetic.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

SIZES = (10**6, 10**7, 10**8, 10**9)


@dataclass(frozen=True)
class Rates:
    """One worker: sentences encoded per second, operations per second of matmuls and IVF scans, price per hour.

    `add` is sentences per second that one process adds to an index, beside the encoding.
    """

    encode: float = 37.0
    product: float = 60e9
    scan: float = 9e9
    add: float = 20e3
    price: float = 0.04
    dim: int = 384
    probes: int = 16


@dataclass(frozen=True)
class Plan:
    """Hours of one worker, and bytes, for N sentences on each of two sides."""

    encode: float
    add: float
    exact: float
    approximate: float
    vectors: float
    codes: float


def lists(n: int) -> int:
    """Lists of an IVF index over n vectors: four times the square root, as FAISS advises."""
    return round(4 * math.sqrt(n))


def plan(n: int, rates: Rates) -> Plan:
    """The cost of encoding both sides and finding neighbours both ways."""
    exact = 2 * n * n * rates.dim / rates.product
    # For each way: every vector and every query is compared with all centres, and a query with the lists it probes.
    centres = 2 * (2 * n * lists(n) * rates.dim) / rates.product
    scans = 2 * n * rates.probes * n / lists(n) * rates.dim / rates.scan
    hours = 3600.0
    return Plan(
        encode=2 * n / rates.encode / hours,
        add=2 * n / rates.add / hours,
        exact=exact / hours,
        approximate=2 * (centres + scans) / hours,
        vectors=2 * n * rates.dim * 2,
        codes=2 * n * (48 + 8),
    )


def table(rates: Rates) -> str:
    """The plans as a Markdown table."""
    head = "| sentences per side | encode, hours | add, hours | exact, hours | IVF, hours | vectors | codes |"
    head += " encode | exact | IVF |"
    lines = [head, "|---|" + "---:|" * 9]
    for n in SIZES:
        found = plan(n, rates)
        hours = [found.encode, found.exact, found.approximate]
        cells = [f"{n:,}", *map(number, [hours[0], found.add, *hours[1:]]), size(found.vectors), size(found.codes)]
        lines.append(f"| {' | '.join([*cells, *(number(hour * rates.price) for hour in hours)])} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Two significant digits."""
    if value <= 0:
        return "0"
    rounded = round(value, 1 - math.floor(math.log10(value)))
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def size(count: float) -> str:
    """Bytes in GB or TB."""
    return f"{number(count / 1e12)} TB" if count >= 1e12 else f"{number(count / 1e9)} GB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in vars(Rates()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    print(table(Rates(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
