"""Case of `nearest`: queries of two languages, an English corpus that contains a translation of each."""

from cases import Case
from folders import write

QUERIES, CORPUS = 60, 400


def data(folder):
    for code in ("deu", "kor"):
        write(folder / "nearest" / f"queries.{code}.txt", "".join(f"{code} {i}\n" for i in range(QUERIES)))
    write(folder / "nearest" / "corpus.eng.xz", "".join(f"english {i}\n" for i in range(CORPUS)))


# The greatest of 400 cosines of random directions of 32 values: about sqrt(2 ln 400 / 32), less what the tail bends.
CASES = {
    "nearest": Case(
        data,
        perfect={"cosine/1": 1.0},
        chance={"cosine/1": (0.49, 0.05)},
        languages=("deu", "kor"),
        where="language (eng|deu)",
    )
}
