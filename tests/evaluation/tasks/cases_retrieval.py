"""Cases of `tatoeba` and `retrieval`."""

from cases import Case, every_metric

PAIRS = 400
CODES = ("deu", "kor")


def tatoeba_data(folder):
    for code in CODES:
        for side in (code, "eng"):
            lines = "".join(f"{code} {side} {i}\n" for i in range(PAIRS))
            (folder / f"tatoeba.{code}-eng.{side}").write_text(lines, encoding="utf-8")


def retrieval_data(folder):
    lines = "".join("\t".join(f"{code} {i}" for code in (*CODES, "eng")) + "\n" for i in range(PAIRS))
    (folder / "retrieval.tsv").write_text("\t".join((*CODES, "eng")) + "\n" + lines, encoding="utf-8")


CASES = {
    task: Case(
        write,
        perfect=every_metric(task, 1.0),
        chance=every_metric(task, (1 / PAIRS, 0.03)),
        languages=CODES,
        where=r"deu-eng, language deu",
    )
    for task, write in {"tatoeba": tatoeba_data, "retrieval": retrieval_data}.items()
}
