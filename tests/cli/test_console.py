"""What is printed: progress on a terminal and elsewhere, nothing when quiet; tables and lists that are never cut."""

import io
import logging
import re

import pytest
from rich.console import Console

from isoglot.cli import console
from isoglot.cli.evaluation import tasks
from isoglot.core import progress
from isoglot.evaluation.base import Score
from isoglot.evaluation.suites import SUITES, by_suite
from isoglot.report.tables import Grid, by_language


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def level():
    """Gives the level of messages back."""
    before = console.LOG.level
    yield console.LOG
    console.LOG.setLevel(before)


def test_on_a_terminal_there_is_a_bar_with_speed_and_time_left(clock):
    out = io.StringIO()
    screen = Console(file=out, force_terminal=True, width=120, highlight=False)
    with console.Progress("encoding", console=screen) as progress:
        progress(0, 100)
        clock[0] = 2.0
        progress(50, 100)
        progress.drawing.refresh()
    assert "50 of 100 texts, 25/s, ETA 0:02" in re.sub(r"\x1b[^m]*m", "", out.getvalue())


@pytest.mark.parametrize(
    ("events", "line"),
    [  # seconds, done and total; 50 steps were done before, and a smaller count begins a new piece of work
        ([(0, 50, 100), (4, 60, 100), (6, 80, 100), (8, 90, 100)], "80 of 100 steps, 5/s, ETA 0:04"),
        ([(0, 30, 30), (100, 0, 60), (101, 40, 60), (106, 60, 60)], "60 of 60 steps, 10/s"),
    ],
)
def test_elsewhere_a_line_is_printed_now_and_then_and_speed_is_of_this_run(clock, capsys, events, line):
    with console.Progress("walking", unit="steps") as progress:
        for clock[0], done, total in events:
            progress(done, total)
    assert capsys.readouterr().err.splitlines()[-1] == f"walking: {line}"


def test_bytes_are_megabytes_and_a_total_may_be_unknown():
    assert progress.state_line(1_500_000, None, rate=0.0, unit="bytes") == "1.5 MB"
    assert progress.state_line(1_500_000, 3_000_000, rate=1e6, unit="bytes") == "1.5 MB of 3.0 MB, 1.0 MB/s, ETA 0:02"


def test_parts_are_named_when_they_begin(capsys):
    with console.Progress("", unit="") as progress:
        progress.part("reading", 1, 0)
        progress.part("reading", 2, 0)
        progress.part("writing", 1, 2)
    assert capsys.readouterr().err.splitlines() == ["reading", "writing"]


def test_nothing_is_shown_when_quiet(clock, capsys, level):
    level.setLevel(logging.WARNING)
    with console.Progress("encoding") as progress:
        clock[0] = 100.0
        progress(1, 2)
        console.say("words")
        level.warning("look out")
    assert capsys.readouterr().err == "look out\n"


def test_json_holds_no_number_that_json_has_not(capsys):
    console.show_json({"a": float("nan"), "b": [1.5, float("inf")]})
    assert capsys.readouterr().out == '{"a": null, "b": [1.5, null]}\n'


WIDE = Grid(
    "wide", ("subset", *("difference of a long name" for _ in range(20))), (("x" * 20, *["+12.3 [1, 2]"] * 20),)
)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("suite", sorted(SUITES))
def test_every_number_of_a_suite_is_whole_at_eighty_columns(suite, terminal):
    keys = dict.fromkeys(key for column in SUITES[suite].columns for key in column.keys)
    scores = [Score(*key, 0.12345, 9) for key in keys]
    stream = io.StringIO()
    screen = Console(file=stream, width=80, force_terminal=terminal)
    console.show_grid(by_suite({"a/model/of/a/name/that/is/rather/long": scores}, suite=suite), screen)
    found = stream.getvalue()
    assert SUITES[suite].columns[0].note.split()[-1] in found
    assert len(re.findall(r"\b12\.35?\b", found)) == len(SUITES[suite].columns)
    assert all(column.label in found for column in SUITES[suite].columns)


@pytest.mark.parametrize("terminal", [True, False])
def test_no_cell_is_cut_however_many_columns_there_are(terminal):
    stream = io.StringIO()
    screen = Console(file=stream, width=80, force_terminal=terminal)
    console.show_grid(WIDE, screen)
    assert stream.getvalue().count("+12.3 [1, 2]") == 20
    assert "x" * 20 in stream.getvalue()


@pytest.mark.parametrize(("terminal", "lines"), [(True, 2), (False, 1)])
def test_the_names_of_columns_are_whole_too(terminal, lines):
    metrics = [f"error{kind}/{margin}" for kind in ("", "-by-index") for margin in ("ratio", "distance", "absolute")]
    kind = {"unit": "error", "lower_is_better": True}
    scores = [Score("xsim/own", "deu_Latn-eng_Latn", metric, 0.12345, 997, **kind) for metric in metrics]
    stream = io.StringIO()
    screen = Console(file=stream, width=80, force_terminal=terminal)
    console.show_grid(by_language(scores, task="xsim/own"), screen)
    head = stream.getvalue().partition("┡")[0]
    table = [line.strip("┃").split("┃") for line in re.sub(r"\x1b[^m]*m", "", head).split("\n") if "┃" in line]
    assert len(table) >= lines
    names = ["".join(cells).replace(" ", "") for cells in zip(*table, strict=True)]
    assert names == ["subset", *(f"{metric}↓" for metric in metrics), "n"]


def test_lists_break_between_words_on_a_terminal_and_never_in_a_pipe(monkeypatch, capsys):
    text = "words " * 30 + "https://example.org/a-long-address/of-many-parts/that-is-longer-than/the-whole-line-is-wide"
    assert console.wrap(text, indent="  ") == "  " + text
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = console.wrap(text, indent="  ").split("\n")
    assert all(len(line) <= 60 for line in lines[:-1])
    assert lines[-1] == "  " + text.split()[-1]
    assert all(line.startswith("  w") for line in lines[:-1])
    tasks(None)
    assert "https://github.com/facebookresearch/LASER" in capsys.readouterr().out
