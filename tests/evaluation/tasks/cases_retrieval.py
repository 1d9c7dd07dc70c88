"""Cases of `tatoeba` and `retrieval`."""

from __future__ import annotations

from cases import Case

PAIRS = 400
CODES = ("deu", "kor")
METRICS = ("accuracy/xx-en", "accuracy/en-xx", "accuracy/mean")


def tatoeba_data(folder):
    for code in CODES:
        for side in (code, "eng"):
            lines = "".join(f"{code} {side} {i}\n" for i in range(PAIRS))
            (folder / f"tatoeba.{code}-eng.{side}").write_text(lines, encoding="utf-8")


def retrieval_data(folder):
    lines = "".join("\t".join(f"{code} {i}" for code in (*CODES, "eng")) + "\n" for i in range(PAIRS))
    (folder / "retrieval.tsv").write_text("\t".join((*CODES, "eng")) + "\n" + lines, encoding="utf-8")


def case(write, metrics):
    return Case(
        write,
        perfect=dict.fromkeys(metrics, 1.0),
        chance=dict.fromkeys(metrics, (1 / PAIRS, 5 / PAIRS)),
        languages=CODES,
        where=r"deu-eng, language deu",
    )


CASES = {
    "tatoeba": case(tatoeba_data, (*METRICS, "f1/xx-en")),
    "retrieval": case(retrieval_data, (*METRICS, "accuracy/xx-yy", "accuracy/yy-xx")),
}
