"""`isoglot mine` as a user meets it: pairs in every format, filters, thresholds, and a run that was killed."""

from pathlib import Path

import numpy as np
import pytest
from command_line import runner

from isoglot.cli.pairs import mine as command
from isoglot.core.errors import CorpusError, IsoglotError
from isoglot.data.readers import read_moses, read_tmx, read_tsv
from isoglot.mining.pipeline import parse_size
from isoglot.search import mine, tune

WORDS = ["cat", "dog", "sun", "sea", "tree", "bird", "king", "road", "rain", "wine", "fish", "moon"]
run = runner(mine=command)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """40 sentences and their translations in another order, each with 20 others; and vectors of both files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    middle = rng.standard_normal((40, 24))
    x = np.concatenate([middle, rng.standard_normal((20, 24))])
    y = np.concatenate([rng.standard_normal((20, 24)), middle[::-1] + 0.2 * rng.standard_normal((40, 24))])
    names = [f"{WORDS[i % 12]} {WORDS[i // 12]}" for i in range(60)]
    (tmp_path / "a.eng").write_text("".join(f"the {name}\n" for name in names))
    (tmp_path / "b.deu").write_text("".join(f"das {name} & <{i}>\n" for i, name in enumerate(reversed(names))))
    np.save("x.npy", x.astype(np.float32))
    np.save("y.npy", y.astype(np.float16))
    return tmp_path


VECTORS = ("a.eng", "b.deu", "--vectors", "x.npy", "--vectors", "y.npy")
ALL = (*VECTORS, "--all")


def table(path):
    return [line.split("\t") for line in Path(path).read_text().splitlines()]


def expected(**options):
    return mine(np.load("x.npy"), np.load("y.npy"), **options)


def test_tables_are_mined_as_their_column_of_text(project):
    run(*ALL, "--output", "pairs.tsv")
    for name in ("a.eng", "b.deu"):
        lines = Path(name).read_text().splitlines()
        Path(f"{name}.csv").write_text("note,name\n" + "".join(f'"{at},",{line}\n' for at, line in enumerate(lines)))
    tables = ("a.eng.csv", "b.deu.csv", *ALL[2:], "--columns", "name")
    run(*tables, "--output", "again.tsv")
    assert Path("again.tsv").read_text() == Path("pairs.tsv").read_text()
    run(*tables, "--output", "again.csv", "--languages", "en,de")
    found = list(read_tsv("again.csv", languages="en,de"))
    assert [list(group.texts) for group in found] == [cells[1:] for cells in table("pairs.tsv")]
    assert found[0].langs == ("eng", "deu")


def test_vectors_and_a_model_are_an_error(project):
    with pytest.raises(IsoglotError, match=r"at most 2 files, got isoglot-static, a\.eng, b\.deu"):
        run("isoglot-static", *VECTORS)


@pytest.mark.parametrize(
    ("direction", "margin"),
    [("max", "ratio"), ("forward", "distance"), ("backward", "absolute"), ("intersection", "ratio")],
)
def test_the_pairs_are_those_of_the_function(project, direction, margin):
    options = ("--direction", direction, "--margin", margin, "-k", 3)
    err = run(*ALL, "--output", "pairs.tsv", "--write-ids", *options)
    pairs = expected(direction=direction, margin=margin, k=3)
    a, b = Path("a.eng").read_text().splitlines(), Path("b.deu").read_text().splitlines()
    assert table("pairs.tsv") == [
        [f"{score:.6f}", str(i + 1), str(j + 1), a[i], b[j]]
        for i, j, score in zip(pairs.source, pairs.target, pairs.score, strict=True)
    ]
    assert f"{len(pairs)} pairs: pairs.tsv" in err
    assert not list(project.glob("*.work"))


def test_what_would_break_a_format_becomes_a_blank(project):
    lines = Path("a.eng").read_text().splitlines()
    Path("a.eng").write_text("\n".join(["one\ttwo\rthree\x01\x1b🙂 \u202ename", *lines[1:]]) + "\n")
    for output in ("p.tsv", "p.tmx", "p.en-de"):
        run(*ALL, "--output", output, "--direction", "forward")
    assert "one two three\x01\x1b🙂 \u202ename" in {
        group.texts[0] for group in read_tsv("p.tsv", languages="score,eng,deu")
    }
    assert "one two three 🙂 \u202ename" in {group.texts[0] for group in read_tmx("p.tmx")}
    assert len(list(read_moses("p.en-de"))) == 60


@pytest.mark.parametrize("output", ["p.en-de", "p.de-en"])
def test_moses_files_have_the_sentences_of_their_languages(project, output):
    run(*ALL, "--output", output)
    for side, code in (("a", "eng"), ("b", "deu")):
        assert set(Path(f"{output}.{code}").read_text().splitlines()) <= set(
            Path(f"{side}.{code}").read_text().splitlines()
        )


def test_ids_blank_and_repeated_lines(project):
    a = [f"s{i}\t{line}" for i, line in enumerate(Path("a.eng").read_text().splitlines())]
    b = [f"t{i}\t{line}" for i, line in enumerate(Path("b.deu").read_text().splitlines())]
    Path("a.txt").write_text("\n".join([*a, "again\t" + a[5].split("\t")[1], "blank\t "]) + "\n")
    Path("b.txt").write_text("\n".join(b) + "\n")
    x = np.load("x.npy")
    np.save("longer.npy", np.concatenate([x, x[5:6], x[:1] * 0]))
    words = ("a.txt", "b.txt", "--vectors", "longer.npy", "--vectors", "y.npy", "--ids", "-o", "p.tsv")
    err = run(*words, "--all")
    assert "62 sentences, 2 skipped" in err
    pairs = expected()
    assert [row[1:3] for row in table("p.tsv")] == [
        [f"s{i}", f"t{j}"] for i, j in zip(pairs.source, pairs.target, strict=True)
    ]
    Path("gold.tsv").write_text("source\ttarget\n" + "".join(f"s{i}\tt{59 - i}\n" for i in range(40)) + "again\tt54\n")
    err = run(*words, "--gold", "gold.tsv")
    best = tune(pairs, {(i, 59 - i) for i in range(40)})
    assert f"F1 {best.f1:.1%}" in err
    assert len(table("p.tsv")) == len(pairs.above(best.threshold))


NO_HEADERS = ["0\t0", "500\t501", "1\t61", "99999999999999999999\t1", "x1\ty1", "-1\t-1"]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("1\t2\n1\t61\n", "gold.tsv:2: '61' is not a line number from 1 to 60 of b.deu"),
        *((f"{first}\n1\t60\n", r"gold\.tsv:1: .* is not a line number from 1 to 60") for first in NO_HEADERS),
        ("1\t2\t3\n", "is not a pair of ids"),
        ("a\tb\nx\t1\n", ":2:"),
    ],
)
def test_wrong_gold_names_the_line(project, gold, message):
    Path("gold.tsv").write_text(gold)
    with pytest.raises(CorpusError, match=message):
        run(*VECTORS, "-o", "p.tsv", "--gold", "gold.tsv")


def test_a_language_nobody_writes_is_an_error(project):
    Path("always_german.py").write_text("def guess(text):\n    return 'de'\n")
    with pytest.raises(CorpusError, match=r"a\.eng: no sentence is left"):
        run(*VECTORS, "-o", "p.tsv", "--check-language", "always_german:guess")


def test_approximate_says_what_it_found(project):
    pytest.importorskip("faiss", reason="FAISS is not installed")
    rng = np.random.default_rng(1)
    for name, file in (("x", "a.eng"), ("y", "b.deu")):
        Path(file).write_text("".join(f"{name} {i}\n" for i in range(600)))
        np.save(f"{name}.npy", rng.standard_normal((600, 8), np.float32))
    err = run(*ALL, "-o", "p.tsv", "--index", "ivf", "--probes", 99)
    assert "recall 100.00%" in err
    run(*ALL, "-o", "exact.tsv")
    found, exact = ({tuple(row[1:]): float(row[0]) for row in table(name)} for name in ("p.tsv", "exact.tsv"))
    assert found == pytest.approx(exact, abs=2e-6)


def test_sizes():
    sizes = {"1000": 1000, "2KB": 2048, "64mb": 1 << 26, "1.5GB": 3 << 29, "1G": 1 << 30}
    assert {text: parse_size(text) for text in sizes} == sizes
    for text in ("", "MB", "nan", "inf", "12X"):
        with pytest.raises(ValueError, match="is not a size"):
            parse_size(text)


@pytest.mark.parametrize("k", [60, 61, 10**30])
def test_more_neighbours_than_sentences_are_all_of_them(project, k):
    err = run(*ALL, "-o", "many.tsv", "-k", k, "--budget", "1MB")
    assert (f"k is {k}: only 60 neighbours exist" in err) == (k > 60)
    run(*ALL, "-o", "all.tsv", "-k", 60)
    assert table("many.tsv") == table("all.tsv")
