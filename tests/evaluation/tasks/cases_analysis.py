"""Cases of the analyses: the same 60 meanings in three languages."""

import numpy as np
from cases import Case
from folders import write

MEANINGS = 60
CODES = ("deu", "kor", "eng")


def analysis_data(folder):
    lines = "".join("\t".join(f"{code} {i}" for code in CODES) + "\n" for i in range(MEANINGS))
    write(folder / "retrieval.tsv", "\t".join(CODES) + "\n" + lines)


def by_meaning(texts):
    """Each meaning a direction of its own, in whatever language."""
    return np.eye(MEANINGS, dtype=np.float32)[[int(text.split()[-1]) for text in texts]].reshape(-1, MEANINGS)


def case(perfect, chance):
    return Case(analysis_data, perfect, chance, oracle=by_meaning, languages=("deu", "kor"), where="deu")


# Cosines of random vectors of 32 dimensions deviate from 0 by 0.18, their mean over 60 by 0.02; the least of three is
# at -0.15, and three deviate by 0.13. Centres of 60 random vectors are sqrt(2 / 60) of their spread apart. By chance
# 60 meanings and 3 languages explain 59 and 2 of 179 parts of the variance, with 2 languages 59 and 1 of 119.
CASES = {
    "similarity": case(
        {"cosine/translations": 1.0, "cosine/contrast": 1.0, "cosine/min": 1.0, "cosine/std": 0.0},
        {"cosine/translations": (0, 0.08), "cosine/contrast": (0, 0.08)}
        | {"cosine/min": (-0.15, 0.08), "cosine/std": (0.13, 0.05)},
    ),
    "centroids": case({"distance": 0.0}, {"distance": ((2 / MEANINGS) ** 0.5, 0.06)}),
    "map": case(
        {"variance/meaning": 1.0, "variance/language": 0.0},
        {"variance/meaning": (0.42, 0.12), "variance/language": (0.01, 0.01)},
    ),
}
