"""Cases of `xsim/<set>`: four lines of work for each layout, so that each set is found, read and scored."""

from cases import Case, every_metric
from folders import write

SENTENCES = 240
PARTS = {"train": range(0, 160), "dev": range(160, 200), "test": range(200, 240)}


def sentences(code, count=SENTENCES):
    return "".join(f"{code} {i}\n" for i in range(count))


def flores(part):
    def data(folder):
        for code in ("deu_Latn", "kor_Hang", "eng_Latn"):
            write(folder / "flores200_dataset" / part / f"{code}.{part}", sentences(code))

    return data


def ntrex(folder, count=SENTENCES):
    for code in ("ref.deu", "ref.zho-CN", "src.eng"):
        write(folder / "NTREX-128" / f"newstest2019-{code}.txt.xz", sentences(code, count).replace("\n", "\r\n"))


def ntrex_whole(folder):
    ntrex(folder, 1997)


def sib(folder):
    for code in ("deu_Latn", "kor_Hang", "eng_Latn"):
        for part, numbers in PARTS.items():
            # Each language in an order of its own: index_id alone tells what belongs together.
            rows = sorted(numbers, key=lambda number: hash_of(code, number))
            text = "".join(f'{number}\ttravel\t"{code} said ""x"" {number}"\n' for number in rows)
            write(folder / "sib-200" / "annotated" / code / f"{part}.tsv.xz", f"index_id\tcategory\ttext\n{text}")


def hash_of(code, number):
    return (number * 7919 + len(code) * ord(code[0])) % 241


def tico(folder):
    for code in ("de", "ko"):
        write(folder / "tico-19" / f"en-{code}" / f"tico19-test.{code}.xz", sentences(code))
        write(folder / "tico-19" / f"en-{code}" / "tico19-test.en.xz", sentences(f"english for {code}"))


def own(folder):
    for code in ("deu", "kor", "eng"):
        write(folder / "xsim" / f"news.{code}", sentences(code))


ROWS = {
    "xsim/flores-devtest": (flores("devtest"), ("deu_Latn", "kor_Hang"), SENTENCES),
    "xsim/flores-dev": (flores("dev"), ("deu_Latn", "kor_Hang"), SENTENCES),
    "xsim/ntrex": (ntrex, ("deu", "zho-CN"), SENTENCES),
    "xsim/ntrex-dev": (ntrex_whole, ("deu", "zho-CN"), 970),
    "xsim/ntrex-test": (ntrex_whole, ("deu", "zho-CN"), 1027),
    "xsim/sib": (sib, ("deu_Latn", "kor_Hang"), SENTENCES),
    "xsim/tico": (tico, ("de", "ko"), SENTENCES),
    "xsim/own": (own, ("deu", "kor"), SENTENCES),
}
CASES = {
    task: Case(
        data,
        perfect=every_metric(task, 0.0),
        chance=every_metric(task, (1 - 1 / count, 6 / count)),
        languages=languages,
        where=r"language d\w+",
    )
    for task, (data, languages, count) in ROWS.items()
}
