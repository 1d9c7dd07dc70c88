"""Tables: the cells, what is bold, and the two forms they are shown in."""

from io import StringIO

from folders import numbered, tatoeba
from page_results import Score
from rich.console import Console

from isoglot.core.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.compare import compare
from isoglot.evaluation.suites import SUITES, by_suite, lacking
from isoglot.report.tables import Grid, by_language, latex_document, side_by_side, to_document, to_markdown, to_rich


def scores(**values):
    return [
        Score("tatoeba", name.replace("_", "-"), "accuracy/mean", value, 10, ("x",) if name == "mean" else ())
        for name, value in values.items()
    ]


def shown(grid):
    stream = StringIO()
    Console(file=stream, width=100, force_terminal=False).print(to_rich(grid))
    return stream.getvalue()


def test_by_language_has_a_row_for_each_subset_and_a_column_for_each_metric():
    given = [
        Score("tatoeba", "kor-eng", "accuracy/xx-en", 0.778, 1000),
        Score("tatoeba", "kor-eng", "accuracy/mean", 0.78949, 1000),
        Score("tatoeba", "mean", "accuracy/mean", 1.0, 1, ("kor-eng",)),
        Score("other", "kor-eng", "accuracy/mean", 0.1, 5),
    ]
    grid = by_language(given, task="tatoeba")
    assert grid.header == ("subset", "accuracy/xx-en", "accuracy/mean", "n")
    assert grid.rows == (("kor-eng", "77.8", "78.9", "1,000"), ("mean", "–", "100.0", "1 subset"))
    assert grid.first_average == 1
    assert grid.notes == ("mean: mean over kor-eng",)


def test_averages_of_one_name_over_other_subsets_are_told_apart_by_their_metrics():
    given = [Score("t", name, metric, 0.5, 9) for name, metric in (("a", "x"), ("b", "x"), ("a", "y"), ("a", "z"))]
    given += [Score("t", "mean", metric, 0.5, 1, over) for metric, over in (("x", ("a", "b")), ("y", "a"), ("z", "a"))]
    assert by_language(given, task="t").notes == ("mean x: mean over a, b", "mean y, z: mean over a")


def test_side_by_side_stresses_the_best_as_it_is_shown_and_of_errors_the_smallest():
    models = {"before": scores(kor_eng=0.5, mean=0.50001), "pairs": scores(kor_eng=0.25, deu_eng=0.5, mean=0.5)}
    grid = side_by_side(models, task="tatoeba", metric="accuracy/mean")
    assert grid.rows == (("kor-eng", "50.0", "25.0"), ("deu-eng", "–", "50.0"), ("mean", "50.0", "50.0"))
    assert grid.bold == {(0, 1), (2, 1), (2, 2)}
    assert grid.first_average == 2
    errors = {name: [Score("xsim/own", "deu", "error/ratio", value, 9)] for name, value in (("a", 0.25), ("b", 0.5))}
    assert side_by_side(errors, task="xsim/own", metric="error/ratio").bold == {(0, 1)}


def test_averages_over_different_numbers_are_not_compared():
    models = {"a": [Score("t", "mean", "m", 0.5, 3)], "b": [Score("t", "mean", "m", 0.6, 4)]}
    grid = side_by_side(models, task="t", metric="m")
    assert grid.rows == (("mean", "50.0 (3)", "60.0 (4)"),)
    assert not grid.bold
    changes = side_by_side(models, task="t", metric="m", changes=True)
    assert changes.rows == (("mean", "50.0 (3)", "60.0 (4)", "differs"),)


def test_markdown_has_notes_as_a_list_below_the_table():
    rows = ("subset", "a|b"), (("x", "1.0"), ("mean", "2.0")), frozenset({(1, 1)}), 1
    table = "| subset | a\\|b |\n|---|---:|\n| x | 1.0 |\n| mean | **2.0** |\n"
    assert to_markdown(Grid("title", *rows)) == table
    assert to_markdown(Grid("title", *rows, ("a: one", "b: two"))) == f"{table}\n- a: one\n- b: two\n"


def test_markdown_shows_names_as_they_are():
    """A name in angle brackets is a tag of HTML, which disappears; stars and low lines at the ends of a word make it
    italic."""
    name = "a <b> *c* _d_ `e` f_g <0.001"
    made = to_document([Grid(name, ("", name), ((name, "1"),), notes=(name,))])
    assert made.count(r"a \<b> \*c\* \_d\_ \`e\` f_g <0.001") == 4


def test_a_terminal_shows_every_cell_and_takes_no_name_for_markup():
    models = {"[red]one": scores(kor_eng=0.5, mean=0.5), "two": scores(kor_eng=0.75, mean=0.75)}
    text = shown(side_by_side(models, task="tatoeba", metric="accuracy/mean"))
    for part in ("[red]one", "two", "kor-eng", "50.0", "75.0", "tatoeba accuracy/mean"):
        assert part in text


def test_nothing_to_show():
    assert by_language([], task="tatoeba").rows == ()
    assert side_by_side({}, task="tatoeba", metric="m").rows == ()
    assert "subset" in shown(side_by_side({}, task="tatoeba", metric="m"))


def test_of_very_many_subsets_the_averages_are_shown():
    many = [Score("xsim/own", f"a{place}-eng", "error/ratio", 0.5, 9) for place in range(201)]
    average = Score("xsim/own", "mean", "error/ratio", 0.5, 201, tuple(score.subset for score in many))
    together = Score("xsim/own", "all", "cosine/min", 0.25, 9)
    grid = by_language([*many, together, average], task="xsim/own")
    assert grid.rows == (("all", "25.0", "–", "9"), ("mean", "–", "50.00", "201 subsets"))
    assert grid.title == "xsim/own (averages only; 201 subsets not shown)"
    assert grid.notes == ("mean: mean over a0-eng … a200-eng (201)",)
    assert len(by_language(many, task="xsim/own").rows) == 201


def test_a_suite_is_a_column_for_each_model_and_says_what_its_numbers_are_means_of():
    given = [Score("bucc/mteb", "fr-en", "accuracy", 0.9843, 9), Score("bucc/mteb", "ru-en", "accuracy", 0.978, 9)]
    grid = by_suite({"a": given, "b": []}, suite="softcl")
    cells = {label: value for label, value, _ in grid.rows}
    assert grid.header == ("", "a", "b")
    assert (cells["BUCC fr-en"], cells["BUCC mean"], cells["xSIM"]) == ("98.4", "98.1", "–")
    assert {other for _, _, other in grid.rows} == {"–"}
    assert "\n- BUCC mean: mean of the columns BUCC fr-en, BUCC ru-en\n" in to_markdown(grid)
    assert "\n- STS fr: sts22/v1 fra spearman\n" in to_markdown(grid)
    assert len(grid.notes) == len(SUITES["softcl"].columns)
    assert "STS fr: no sts22/v1 fra spearman" in lacking(given, suite="softcl")


def test_what_the_languages_leave_out_is_not_advised_to_be_fetched(tmp_path):
    tatoeba(tmp_path, {code: numbered(code, 2) for code in ("deu", "fra")})

    def told(*languages):
        lines = lacking([], suite="quick", data=tmp_path, languages=languages)
        return next(line for line in lines if "tatoeba" in line)

    command = f"; get it with: isoglot data get tatoeba-laser --data {tmp_path}"
    assert told("de").endswith(f"; of these, --languages left out tatoeba fra-eng accuracy/mean{command}")
    assert told("de", "fr").endswith(f"tha-eng accuracy/mean{command}")
    assert told().endswith(f"tha-eng accuracy/mean{command}")


def test_of_an_average_it_is_told_that_the_languages_left_out_part_of_it(tmp_path, monkeypatch):
    for track in ("1.ar-ar", "3.es-es"):
        (tmp_path / "STS2017.eval.v1.1").mkdir(exist_ok=True)
        (tmp_path / "STS2017.eval.v1.1" / f"STS.input.track{track}.txt").touch()

    def told(*languages):
        return next(line for line in lacking([], suite="quick", data=tmp_path, languages=languages) if "sts17" in line)

    assert told("ar").endswith("no sts17 tracks-5 spearman; left out by --languages")
    assert "get it with: isoglot data get sts17-official" in told("ar", "es")

    def broken(*_, **__):
        raise EvaluationError("two revisions")

    monkeypatch.setattr(type(TASKS["sts17"]), "subsets", broken)
    assert "get it with: isoglot data get sts17-official" in told("ar")


def test_errors_have_two_decimals():
    """Good models are below 0.1 percent: with one, two that differ by half had equal values."""
    systems = [[Score("xsim/own", "deu", "error/ratio", value, 1012, unit="error")] for value in (0.0004, 0.0002)]
    assert compare(*systems).grids()[0].rows[0][2:5] == ("0.04", "0.02", "-0.02")
    (column,) = [column for column in SUITES["softcl"].columns if column.label == "xSIM"]
    given = [Score(*key, 0.0002, 1012) for key in column.keys]
    grid = by_suite({"a": given}, suite="softcl")
    assert dict(grid.rows)["xSIM"] == "0.02"


def test_latex_has_the_characters_of_its_text():
    """In LaTeX's default font encoding > and | are other characters, and a second line would end a comment."""
    grid = Grid("a|b", ("system", "x>y"), (("two\nlines", "1"),))
    text = latex_document([grid], "first\nsecond")
    assert "a$|$b" in text
    assert "x$>$y" in text
    assert "two lines" in text
    assert text.startswith("% first\n% second\n")
