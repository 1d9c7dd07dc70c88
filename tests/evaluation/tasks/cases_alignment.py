"""Cases of `alignment`: half of the pairs are of one meaning, told by the last word."""

import numpy as np
from cases import Case
from cases_sts import STS17, export, stsb

POSITIVE = OTHER = 40


def rows(name):
    same = [(f"{name} left {i}", f"{name} right {i}", 4 + i % 2) for i in range(POSITIVE)]
    return same + [(f"{name} left a{i}", f"{name} right b{i}", i % 4) for i in range(OTHER)]


def one_hot(texts):
    """A direction of its own for each meaning."""
    meanings = [*map(str, range(POSITIVE)), *(f"{side}{i}" for side in "ab" for i in range(OTHER))]
    return np.eye(len(meanings))[[meanings.index(text.split()[-1]) for text in texts]]


def one_point(texts):
    """The best alignment there is, at the price of the worst uniformity."""
    return np.ones((len(texts), 4))


stsb_dev = stsb("dev", rows("b"))


def sts17(folder):
    for name in STS17:
        export(folder / "sts17-crosslingual-sts" / name, rows(name))


SENTENCES = 2 * (POSITIVE + OTHER)
ALL = SENTENCES * (SENTENCES - 1) / 2
CHANCE = {"alignment": (2.0, 0.3), "uniformity": (-4 + 8 / 32, 0.05)}  # -4 + 8 / dims to first order, see the page
CASES = {
    "alignment": Case(
        stsb_dev, {"alignment": 0.0, "uniformity": np.log((POSITIVE + (ALL - POSITIVE) * np.exp(-4)) / ALL)},
        CHANCE, oracle=one_hot, where="eng",
    ),
    "alignment/sts17": Case(
        sts17, {"alignment": 0.0, "uniformity": 0.0}, CHANCE, oracle=one_point,
        languages=("ar", "ko"), where="ara-ara, sentence 1, language ara",
    ),
}  # fmt: skip
