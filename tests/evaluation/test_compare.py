"""Comparisons: differences, intervals, tests, wins and losses; and that what cannot be compared is not."""

import itertools
import json
import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from page_results import Score
from scipy import stats

from isoglot.core.errors import EvaluationError
from isoglot.core.score import Unit, main_metrics
from isoglot.evaluation.compare import Comparison, p_shown, seeds_test
from isoglot.evaluation.compare import compare as compare_results
from isoglot.evaluation.scores import Scores, write_results
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.suites import SUITES, Column
from isoglot.report.tables import scale, spell


def score(subset, items, *, task="tatoeba", metric="accuracy/mean", statistic="mean", item_set=""):
    items = np.asarray(items, np.float32)
    value = STATISTICS[statistic](items)
    return Score(task, subset, metric, value, len(items), items=items, statistic=statistic, item_set=item_set)


def average(scores, subset="mean"):
    mean = float(np.mean([entry.value for entry in scores]))
    over = tuple(entry.subset for entry in scores)
    return Score(scores[0].task, subset, scores[0].metric, mean, len(scores), over)


def results(*scores):
    return Scores(scores, "m")


def hits(rng, n, share):
    return (rng.random(n) < share).astype(float)


def compare(systems, **settings):
    """`compare` with the results of each system's seeds by name, and few resamples."""
    pairs = [(name, run) for name, runs in systems.items() for run in runs]
    settings = {"resamples": 200, **settings}
    return compare_results(*(run for _, run in pairs), names=[name for name, _ in pairs], **settings)


def versus(base, new, **settings):
    """Two systems of one result each, given as lists of scores."""
    return compare({"base": [results(*base)], "new": [results(*new)]}, **settings)


def rows(comparison, place=0):
    return {row.subset: row for row in comparison.tables[place].rows}


def error_of(difference):
    """The standard error of the normal distribution that has this interval."""
    low, high = difference.interval
    return (high - low) / (2 * 1.96)


def test_a_difference_its_interval_and_its_test():
    rng = np.random.default_rng(0)
    a, b = hits(rng, 400, 0.5), hits(rng, 400, 0.8)
    row = rows(compare_results([score("deu-eng", a)], [score("deu-eng", b)]))["deu-eng"]
    difference = row.differences[0]
    assert [value.mean for value in row.values] == pytest.approx([a.mean(), b.mean()])
    assert difference.value == pytest.approx(b.mean() - a.mean())
    error = (b - a).std() / np.sqrt(400)
    assert difference.interval == pytest.approx(
        (difference.value - 1.96 * error, difference.value + 1.96 * error), abs=0.01
    )
    assert row.values[0].interval == pytest.approx((a.mean() - 0.049, a.mean() + 0.049), abs=0.01)
    assert difference.p == pytest.approx(1 / 2001)
    assert difference.better is True
    assert difference.significant


def test_an_average_is_resampled_within_its_subsets():
    """Its error is that of a mean of independent subsets, each with its own size."""
    rng = np.random.default_rng(1)
    pairs = [(hits(rng, n, 0.6), hits(rng, n, 0.65)) for n in (100, 400, 900)]
    parts = [[score(f"l{i}-eng", pair[place]) for i, pair in enumerate(pairs)] for place in (0, 1)]
    row = rows(versus(*([*part, average(part)] for part in parts), resamples=4000))["mean"]
    error = np.sqrt(sum((b - a).var() / len(a) for a, b in pairs)) / 3
    assert error_of(row.differences[0]) == pytest.approx(error, rel=0.05)
    assert row.average
    assert row.n == 3
    assert row.differences[0].p == row.differences[0].corrected


def test_subsets_of_units_of_their_own_are_drawn_apart():
    """Drawn alike, the errors of languages with other sentences would not shrink in their average."""
    items = hits(np.random.default_rng(2), 300, 0.5)
    parts = [score(f"l{i}-eng", items) for i in range(16)]
    found = rows(versus(*[[*parts, average(parts)]] * 2, resamples=500))
    one, mean = (error_of(found[name].values[0]) for name in ("l0-eng", "mean"))
    assert one / mean == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("statistic", ["mean", "spearman"])
def test_subsets_of_the_same_units_are_drawn_together(statistic):
    """Equal languages are one sample, not six: their average is no surer than each of them."""
    rng, systems = np.random.default_rng(2), []
    for _ in range(2):
        found = rng.normal(size=60)
        items = found > 0 if statistic == "mean" else np.stack([np.arange(60), found], axis=1)
        parts = [score(f"l{i}-eng", items, statistic=statistic, item_set="u") for i in range(6)]
        systems.append([*parts, average(parts)])
    found = rows(versus(*systems, resamples=100))
    one, mean = (found[name].differences[0] for name in ("l0-eng", "mean"))
    assert one.interval == pytest.approx(mean.interval, abs=1e-6)
    assert one.p == mean.p < 1


def test_a_system_that_names_no_units_changes_nothing_for_the_others():
    """Scores made in Python need none; drawn apart because of them, the mean's interval would be far too narrow."""
    rng = np.random.default_rng(16)
    hard = rng.normal(size=60)
    runs = {}
    for name, item_set in (("base", "u"), ("new", "u"), ("old", "")):
        parts = [score(f"l{i}", hard + rng.normal(size=60) > 0, item_set=item_set) for i in range(12)]
        runs[name] = [results(*parts, average(parts))]
    two, three = (compare({name: runs[name] for name in names}) for names in (("base", "new"), tuple(runs)))
    alone, beside = (rows(found)["mean"].differences[0] for found in (two, three))
    assert (alone.interval, alone.p) == (beside.interval, beside.p)


def test_subsets_with_units_and_without_are_not_joined_in_their_average():
    rng, runs = np.random.default_rng(17), []
    for _ in range(2):
        parts = [score(f"l{i}", hits(rng, 60, 0.5), item_set="u") for i in range(3)]
        parts.append(score("own", hits(rng, 40, 0.5)))
        runs.append([*parts, average(parts)])
    low, high = rows(versus(*runs))["mean"].differences[0].interval
    assert low < high


@pytest.mark.slow
def test_of_hundreds_of_subsets_the_averages_are_compared():
    """Directions of 15 languages: 210. The targets take their place, in the tally and in the correction."""
    rng, names, systems = np.random.default_rng(14), [f"l{i}" for i in range(15)], []
    for share in (0.5, 0.6):
        parts = [score(f"{a}-{b}", hits(rng, 90, share), item_set="u") for a in names for b in names if a != b]
        targets = [average([p for p in parts if p.subset.endswith(f"-{b}")], f"xx-{b}") for b in names]
        systems.append([*parts, *targets, average(targets)])
    found = versus(*systems, resamples=100)
    table = found.tables[0]
    assert [row.subset for row in table.rows] == [*(f"xx-{name}" for name in names), "mean"]
    assert [row.average for row in table.rows] == [False] * 15 + [True]
    assert table.rows[0].differences[0].p <= table.rows[0].differences[0].corrected
    assert sum(table.tally(0)[way] for way in ("better", "worse", "equal")) == 15
    assert found.left_out == ("tatoeba accuracy/mean: only averages of its 210 subsets are compared",)
    without = versus(*[[score(f"l{i}", np.arange(4) % 2) for i in range(201)]] * 2, resamples=10)
    assert (len(without.tables[0].rows), without.left_out) == (201, ())


def test_other_item_sets_are_other_data_and_results_without_are_compared():
    items = hits(np.random.default_rng(15), 40, 0.5)
    run = {item_set: results(score("a", items, item_set=item_set)) for item_set in ("", "u", "v")}
    for base in ("u", ""):  # a base that names none hides nothing
        with pytest.raises(EvaluationError, match=r"one and other have different item sets; .* on different data"):
            compare({"base": [run[base]], "one": [run["u"]], "other": [run["v"]]})
    old = compare({"base": [run[""]], "new": [run["u"]]})
    assert rows(old)["a"].differences[0].interval == (0, 0)


def test_averages_of_averages():
    rng = np.random.default_rng(3)
    parts = [score(f"l{i}-eng", hits(rng, 50, 0.5)) for i in range(4)]
    halves = [average(parts[:2], "first"), average(parts[2:], "second")]
    found = rows(versus(*[[average(halves, "mean"), *halves, *parts]] * 2))  # in whatever order they stand
    assert list(found)[:4] == ["l0-eng", "l1-eng", "l2-eng", "l3-eng"]
    assert found["mean"].differences[0].interval == pytest.approx((0, 0))
    assert found["mean"].differences[0].p == 1


def test_many_languages_are_corrected_and_can_still_be_significant():
    rng = np.random.default_rng(4)
    names = [f"l{i}-eng" for i in range(50)]
    before = {name: hits(rng, 200, 0.5) for name in names}
    after = {name: hits(rng, 200, 0.5) for name in names} | {"l5-eng": hits(rng, 200, 0.9)}
    systems = ([score(subset, items) for subset, items in table.items()] for table in (before, after))
    table = versus(*systems, resamples=500).tables[0]
    # With 500 permutations no p-value could be below 50 / 501, so there are more.
    assert table.permutations == 5_000
    raw = [row.differences[0].p for row in table.rows]
    assert sum(p <= 0.05 for p in raw) > 1
    assert [row.subset for row in table.rows if row.differences[0].significant] == ["l5-eng"]
    counts = table.tally(0)
    assert counts["better"] + counts["worse"] + counts["equal"] == 50
    assert (counts["better, significantly"], counts["worse, significantly"]) == (1, 0)


@pytest.mark.parametrize("statistic", ["spearman", "f1"])
def test_other_statistics_are_compared_as_they_are(statistic):
    rng = np.random.default_rng(5)
    gold = rng.integers(0, 2, 300) if statistic == "f1" else rng.normal(size=300)
    if statistic == "f1":
        found = [np.where(rng.random(300) < share, gold, 1 - gold) for share in (0.6, 0.9)]
        tables = [np.stack([gold & one, one, gold], axis=1) for one in found]
    else:
        tables = [np.stack([gold, gold + noise * rng.normal(size=300)], axis=1) for noise in (3, 0.5)]
    systems = ([score("deu-eng", table, task="t", metric=statistic, statistic=statistic)] for table in tables)
    row = rows(versus(*systems))["deu-eng"]
    low, high = row.differences[0].interval
    assert 0 < low < row.differences[0].value < high
    assert row.differences[0].significant


def test_seeds_are_averaged_in_every_resample():
    rng = np.random.default_rng(6)
    base = [hits(rng, 300, 0.5) for _ in range(3)]
    new = [hits(rng, 300, 0.7) for _ in range(2)]
    found = compare(
        {"base": [results(score("deu-eng", i)) for i in base], "new": [results(score("deu-eng", i)) for i in new]},
        resamples=4000,
    )
    row = rows(found)["deu-eng"]
    assert found.seeds == (3, 2)
    assert row.values[0].mean == pytest.approx(np.mean(base))
    assert row.values[0].deviation == pytest.approx(np.std([i.mean() for i in base], ddof=1))
    error = (np.mean(new, axis=0) - np.mean(base, axis=0)).std() / np.sqrt(300)
    assert error_of(row.differences[0]) == pytest.approx(error, rel=0.05)
    cells = found.grids()[0].rows[0]
    assert " ± " in cells[2]
    assert "sample standard deviation" in found.to_markdown()


def test_less_is_better_where_it_is():
    tables = np.ones(50), np.zeros(50)
    found = versus(*([score("deu-eng", items, task="xsim/x", metric="error/ratio")] for items in tables))
    assert rows(found)["deu-eng"].differences[0].better is True
    table = found.grids()[0]
    assert "lower is better" in table.title
    assert table.rows[0][4].endswith("▲")
    assert table.notes[0].startswith("new against base: better in 1 (1 significantly)")


def test_without_items_values_are_still_compared():
    found = versus(*([Score("t", "a", "m", v, 9), Score("t", "mean", "m", v, 1, ("a",))] for v in (0.5, 0.4)))
    row = rows(found)["a"]
    assert row.differences[0].value == pytest.approx(-0.1)
    assert row.differences[0].p is row.differences[0].interval is None
    assert not row.differences[0].significant
    assert rows(found)["mean"].average
    assert found.grids()[0].rows[0] == ("a", "9", "50.0", "40.0", "-10.0", "no items")


PARTS = [score(name, [0, 1, 1, 0]) for name in "abc"]
FULL = [*PARTS, average(PARTS), average(PARTS[1:], "rest")]
WITHOUT_A = "mean accuracy/mean: it averages over a, which cannot be compared"
OTHER_DATA = "a accuracy/mean: base has n = 4 and new has 5; the two were evaluated on different data"
OTHER_SUBSETS = "mean accuracy/mean: base and new average over different subsets"


@pytest.mark.parametrize(
    ("base", "new", "left_out"),
    [
        (FULL, [FULL[1:]], ["a accuracy/mean: new lacks it", WITHOUT_A]),
        (FULL, [[score("a", np.ones(5)), *FULL[1:]]], [OTHER_DATA, WITHOUT_A]),
        (PARTS[:2], [PARTS[:2], PARTS[:1]], ["b accuracy/mean: new has it in 1 of 2 results"]),
        ([*PARTS, average(PARTS[:2])], [[*PARTS, average(PARTS[1:])]], [OTHER_SUBSETS]),
        ([*PARTS, average(PARTS)], [[*PARTS, average(PARTS[:1])]], [OTHER_SUBSETS]),  # more, which is not other data
    ],
)
def test_what_cannot_be_compared_is_left_out_with_all_its_averages(base, new, left_out):
    found = compare({"base": [results(*base)], "new": [results(*run) for run in new]}, resamples=10)
    assert found.left_out == tuple(f"tatoeba {line}" for line in left_out)
    assert not {line.split()[0] for line in left_out} & {*rows(found)}
    assert all(line in found.to_markdown() for line in found.left_out)


GOLD = [[0.0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("base", "new", "reason"),
    [
        (
            *(
                score("a", table, task="sts", metric="spearman", statistic="spearman")
                for table in (GOLD, [[gold + 1, cosine] for gold, cosine in GOLD])
            ),
            "the gold of base and new differs",
        ),
        (PARTS[0], replace(PARTS[0], lower_is_better=True), "whether lower is better"),
    ],
)
def test_systems_without_a_comparable_score_are_an_error(base, new, reason):
    with pytest.raises(EvaluationError, match=f"no score in common .*{reason}"):
        versus([base], [new])


def test_tasks_and_metrics_are_chosen():
    def run(value):
        return results(
            *(score("a", np.full(4, value), task=t, metric=m) for t, m in itertools.product(("tatoeba", "own"), "xy")),
            score("a", np.full(4, value)),
        )

    systems = {"base": [run(0.5)], "new": [run(0.25)]}

    def chosen(**settings):
        return [(table.task, table.metric) for table in compare(systems, **settings).tables]

    assert chosen() == [("tatoeba", "accuracy/mean"), ("own", "x"), ("own", "y")]
    assert chosen(metrics=["x"]) == [("tatoeba", "x"), ("own", "x")]
    assert chosen(tasks=["own"], metrics=["y"]) == [("own", "y")]
    for settings, message in (
        ({"tasks": ["onw"]}, "no result has the task 'onw'; did you mean 'own'"),
        ({"metrics": ["z"]}, "no result has the metric 'z'"),
        ({"tasks": ["mpcl"], "metrics": ["x"]}, "leave metrics out"),
    ):
        with pytest.raises(EvaluationError, match=message):
            chosen(**settings)
    with pytest.raises(EvaluationError, match="nothing to compare"):
        compare({})


def test_a_task_that_a_result_lacks_is_told_in_whatever_order_they_come():
    a, b = np.array([0, 1, 0, 1]), np.array([1, 1, 0, 1])
    small = results(score("x", a))
    large = results(score("x", b), score("x", b, task="sts17"), score("y", b, task="sts17"))

    def left_out(**systems):
        return compare(systems).left_out

    assert left_out(small=[small], large=[large]) == ("sts17 accuracy/mean: small lacks it",)
    assert left_out(large=[large], small=[small]) == ("sts17 accuracy/mean: small lacks it",)
    told = ("sts17 accuracy/mean: seeds has it in 1 of 2 results",)
    assert left_out(seeds=[small, large], large=[large]) == left_out(seeds=[large, small], large=[large]) == told
    with pytest.raises(EvaluationError, match="no score in common that can be compared: sts17 accuracy/mean: small"):
        compare({"small": [small], "large": [large]}, tasks=["sts17"])


def test_numbers_do_not_depend_on_what_else_is_compared():
    rng = np.random.default_rng(8)
    a, b, c = (results(*(score(name, hits(rng, 60, 0.5)) for name in "xy")) for _ in range(3))
    two = rows(compare({"a": [a], "b": [b]}))["x"]
    fewer = rows(compare({"a": [results(a[0])], "b": [results(b[0])]}))["x"]
    assert two.differences[0].interval == fewer.differences[0].interval
    three = compare({"a": [a], "b": [b], "c": [c]})
    assert len(rows(three)["x"].differences) == 2
    assert len(three.grids()[0].header) == 3 + 2 * 3


def test_a_system_alone_has_the_intervals_it_has_beside_another(tmp_path):
    rng = np.random.default_rng(17)
    a, b = ([score(name, hits(rng, 60, 0.5), item_set="u") for name in "xy"] for _ in range(2))
    a, b = (results(*parts, average(parts), Score("tatoeba", "z", "accuracy/mean", 0.5, 9)) for parts in (a, b))
    one, two = compare({"a": [a]}), compare({"a": [a], "b": [b]})
    assert [row.values[0] for row in one.tables[0].rows] == [row.values[0] for row in two.tables[0].rows]
    assert rows(one)["mean"].values[0].interval[0] < rows(one)["mean"].values[0].mean
    shown = one.grids()[0]
    assert shown.header == ("subset", "n", "a", "95 % interval")
    value = rows(one)["x"].values[0]
    low, high = (f"{100 * end:.1f}" for end in value.interval)
    assert shown.rows[0] == ("x", "60", f"{100 * value.mean:.1f}", f"[{low}, {high}]")
    assert [row[-1] for row in shown.rows if row[0] == "z"] == ["no items"]
    one.save(tmp_path)
    page = (tmp_path / "compare.md").read_text(encoding="utf-8")
    assert "# a\n" in page
    assert "paired" not in page


def test_files_are_the_same_each_time(tmp_path):
    rng = np.random.default_rng(9)
    parts = [[score(name, hits(rng, 60, 0.5)) for name in ("a|b", "c")] for _ in range(2)]
    systems = {name: [results(*p, average(p))] for name, p in zip(("base", "neu ü"), parts, strict=True)}
    for name in ("one", "two"):
        compare(systems).save(tmp_path / name)
    for file in ("compare.md", "compare.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    found = json.loads((tmp_path / "one" / "compare.json").read_text(encoding="utf-8"))
    assert found["systems"] == ["base", "neu ü"]
    table = found["tables"][0]
    fields = "value interval p corrected better p_seeds degrees significant"
    assert table["rows"][0]["differences"][0].keys() == set(fields.split())
    assert sum(table["tallies"]["neu ü"][way] for way in ("better", "worse", "equal")) == 2
    text = (tmp_path / "one" / "compare.md").read_text(encoding="utf-8")
    assert "| a\\|b | 60 |" in text
    assert "200 resamples, seed 0" in text


def mains(task, *metrics):
    return main_metrics(Score(task, "deu", metric, 0.5, 9) for metric in metrics)[task]


def test_what_metrics_mean():
    assert mains("tatoeba", "accuracy/xx-en", "accuracy/mean") == ["accuracy/mean"]
    assert mains("bucc/ease", "precision", "f1") == ["f1"]
    assert mains("similarity", "cosine/translations", "cosine/contrast") == ["cosine/contrast"]
    assert mains("alignment/sts17", "alignment", "uniformity") == ["alignment", "uniformity"]
    assert mains("tatoeba", "other") == ["other"]
    assert mains("unknown", "a", "b") == ["a", "b"]
    assert [scale(unit) for unit in get_args(Unit)] == [100, 100, 100, 100, 1]
    values = [spell(0.5, "fraction"), spell(-0.00001, "fraction", sign=True), spell(None, "fraction")]
    assert [*values, spell(-3.21456, "plain", sign=True)] == ["50.0", "0.0", "–", "-3.215"]


def test_lists_of_scores_and_folders_are_compared(tmp_path):
    rng = np.random.default_rng(3)
    before, after = ([score("deu-eng", hits(rng, 60, share))] for share in (0.4, 0.8))
    found = compare_results(before, after, resamples=50)
    assert isinstance(found, Comparison)
    assert found.systems == ("system 1", "system 2")
    write_results(tmp_path / "before", results(*before))
    write_results(tmp_path / "after", results(*after))
    read = compare_results(tmp_path / "before", str(tmp_path / "after" / "results.json"), resamples=50)
    assert read.systems == ("before", "after")
    assert read.tables == found.tables


@pytest.mark.parametrize(
    ("systems", "names", "error"),
    [
        ([[Score("t", "a", "m", 0.5, 1)]], ["a", "b"], ValueError),
        ([["tatoeba"]], None, TypeError),
        ([Scores(model="m"), Scores(model="m")], None, EvaluationError),
        ([[Score("t", "a", "m", 0.5, 1), Score("t", "a", "m", 0.6, 1)]], None, EvaluationError),  # two joined lists
    ],
)
def test_wrong_arguments_are_refused(systems, names, error):
    with pytest.raises(error):
        compare_results(*systems, names=names)


def test_a_comparison_is_text_a_frame_html_and_a_page(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    a, b = ([score(name, hits(rng, 80, share)) for name in ("<b>", "c-eng")] for share in (0.4, 0.8))
    found = compare({"base": [results(*a, average(a))], "n|w": [results(*b, average(b))]})
    assert all(word in str(found) for word in ("<b>", "n|w", "▲", "paired bootstrap", "n|w against base: better in 2"))
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 2 * 3
    assert frame["value"].tolist()[:2] == [a[0].value, b[0].value]
    assert frame["difference"].isna().tolist()[:2] == [True, False]
    assert frame["p_corrected"].tolist()[1] == rows(found)["<b>"].differences[0].corrected
    assert "<td" in found._repr_html_()
    assert "<b>" not in re.sub("<b>[0-9.]+</b>", "", found._repr_html_())
    found.page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="comparison"' in page
    assert 'id="summary"' in page
    assert "&lt;b&gt;" in page


def test_columns_over_several_tasks_are_rows_of_one_table():
    """A column's samples are the mean over independent tasks: its error is that of the mean of two shares."""
    rng = np.random.default_rng(5)
    column = Column("both", (("tatoeba", "deu-eng", "accuracy/mean"), ("bucc/x", "de-en", "f1")))
    systems, changes = {}, []
    for name, shares in (("base", (0.5, 0.6)), ("new", (0.6, 0.65))):
        first, second = hits(rng, 400, shares[0]), hits(rng, 900, shares[1])
        changes.append((first, second))
        systems[name] = [results(score("deu-eng", first), score("de-en", second, task="bucc/x", metric="f1"))]
    found = compare(systems, columns=[column], resamples=2000)
    (row,) = found.tables[0].rows
    means = [(a.mean() + b.mean()) / 2 for a, b in changes]
    assert [value.mean for value in row.values] == pytest.approx(means)
    variances = [(y - x).var() / len(x) for x, y in zip(*changes, strict=True)]
    error = np.sqrt(sum(variances)) / 2
    assert error_of(row.differences[0]) == pytest.approx(error, rel=0.08)
    assert row.over == ("tatoeba deu-eng accuracy/mean", "bucc/x de-en f1")
    assert row.differences[0].p == row.differences[0].corrected


def test_metrics_of_the_same_items_are_drawn_together_in_a_column():
    """Their items are correlated: drawn apart, the interval of their mean would be too narrow."""
    rng, systems = np.random.default_rng(7), []
    column = Column("both", (("tatoeba", "deu-eng", "xx-en"), ("tatoeba", "deu-eng", "en-xx")))
    for share in (0.7, 0.75):
        there = hits(rng, 300, share)
        back = np.where(rng.random(300) < 0.1, 1 - there, there)
        systems.append([score("deu-eng", there, metric="xx-en"), score("deu-eng", back, metric="en-xx")])
    row = rows(versus(*systems, columns=[column], resamples=2000))["both"]
    means = [(one.items.astype(float) + two.items) / 2 for one, two in systems]
    error = (means[1] - means[0]).std() / np.sqrt(300)
    assert error_of(row.differences[0]) == pytest.approx(error, rel=0.08)


def test_scores_of_two_directions_have_no_mean():
    rng = np.random.default_rng(6)
    right = [score("deu-eng", hits(rng, 300, share)) for share in (0.5, 0.6)]
    systems = [[one, replace(one, metric="error", unit="error", lower_is_better=True)] for one in right]
    keys = [("tatoeba", "deu-eng", name) for name in ("accuracy/mean", "error")]
    found = versus(*systems, columns=[Column("mixed", tuple(keys)), Column("right", (keys[0],))])
    assert "columns mixed: its scores differ in scale" in found.left_out[0]
    assert [*rows(found)] == ["right"]
    plain_systems = [[one] for one in right]  # of which a column of one score is that score
    (joint,) = versus(*plain_systems, columns=[Column("right", (keys[0],))]).tables[0].rows
    (plain,) = versus(*plain_systems).tables[0].rows
    assert (joint.n, joint.values, joint.differences) == (plain.n, plain.values, plain.differences)


def test_a_suite_leaves_out_columns_that_a_system_lacks():
    names = SUITES["quick"].columns[0].keys
    parts = [score(subset, [0, 1, 1]) for _, subset, _ in names]
    found = versus(parts, parts, tasks=["quick"])
    assert [row.subset for row in found.tables[0].rows] == ["Tatoeba-7"]
    assert len(found.left_out) == 2
    assert all(line.startswith("quick") for line in found.left_out)
    with pytest.raises(EvaluationError):
        versus(*[[score("x", [0, 1])]] * 2, tasks=["quick"])


@pytest.mark.filterwarnings("error")
def test_seeds_are_tested_in_pairs():
    values = {"base": [0.50, 0.60, 0.40], "new": [0.52, 0.63, 0.41]}
    systems = {name: [results(Score("t", "x", "m", value, 10)) for value in every] for name, every in values.items()}
    systems["once"] = [results(Score("t", "x", "m", 0.55, 10))]
    (row,) = compare(systems).tables[0].rows
    assert row.differences[0].p_seeds == pytest.approx(stats.ttest_rel(values["new"], values["base"]).pvalue)
    assert row.differences[1].p_seeds == pytest.approx(stats.ttest_1samp(values["base"], 0.55).pvalue)
    assert [difference.degrees for difference in row.differences] == [len(values["base"]) - 1] * 2
    welch = stats.ttest_ind([0.1, 0.2, 0.4], [0.3, 0.5], equal_var=False)
    assert seeds_test([0.1, 0.2, 0.4], [0.3, 0.5]) == pytest.approx((welch.pvalue, welch.df))
    assert 1 < welch.df < 3
    assert seeds_test([0.1], [0.2]) == (None, None)
    assert seeds_test([0.1, 0.2], [0.1, 0.2]) == (1.0, 1.0)
    assert seeds_test([0.5, 0.5], [0.5, 0.5, 0.5]) == (1.0, 2.0)
    assert seeds_test([0.5, 0.5, 0.5], [0.6, 0.7])[1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("p", "shown"), [(0.0005, "<0.001"), (0.0496, "0.050"), (0.05, "0.050"), (0.0501, "0.051"), (0.0514, "0.051")]
)
def test_a_p_value_is_shown_as_the_level_only_if_it_is_marked(p, shown):
    assert p_shown(p) == shown


def test_results_of_different_tasks_are_joined(tmp_path):
    """As for a run that keeps one checkpoint for each task: MPCL's STS17 is chosen by STS22 and the other way round."""
    for name, task in (("one", "sts17"), ("two", "sts22")):
        write_results(tmp_path / name, results(score("x", [0, 1, 1], task=task)))
    both = f"{tmp_path / 'one'}+{tmp_path / 'two'}"
    found = compare_results(both, both, names=["a", "b"])
    assert [table.task for table in found.tables] == ["sts17", "sts22"]
    assert compare_results(both).systems == ("one+two",)
    with pytest.raises(EvaluationError, match="sts17"):
        compare_results(f"{tmp_path / 'one'}+{tmp_path / 'one'}", names=["a"])
