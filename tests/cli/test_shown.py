"""Tables and lists on stdout: every digit is there, in a pipe and at eighty columns."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from isoglot.cli import shown
from isoglot.cli.tasks import show_list
from isoglot.evaluation.base import Score
from isoglot.evaluation.suites import SUITES
from isoglot.report.tables import Grid, by_language, by_suite

WIDE = Grid(
    "wide", ("subset", *("difference of a long name" for _ in range(20))), (("x" * 20, *["+12.3 [1, 2]"] * 20),)
)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("suite", sorted(SUITES))
def test_every_number_of_a_suite_is_whole_at_eighty_columns(suite, terminal, monkeypatch):
    keys = dict.fromkeys(key for column in SUITES[suite].columns for key in column.keys)
    scores = [Score(*key, 0.12345, 9) for key in keys]
    stream = io.StringIO()
    monkeypatch.setattr(shown, "Console", lambda: Console(file=stream, width=80, force_terminal=terminal))
    shown.show_grid(by_suite({"a/model/of/a/name/that/is/rather/long": scores}, suite=suite))
    found = stream.getvalue()
    assert SUITES[suite].columns[0].note.split()[-1] in found
    assert len(re.findall(r"\b12\.35?\b", found)) == len(SUITES[suite].columns)
    assert all(column.label in found for column in SUITES[suite].columns)


@pytest.mark.parametrize("terminal", [True, False])
def test_no_cell_is_cut_however_many_columns_there_are(terminal, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(shown, "Console", lambda: Console(file=stream, width=80, force_terminal=terminal))
    shown.show_grid(WIDE)
    assert stream.getvalue().count("+12.3 [1, 2]") == 20
    assert "x" * 20 in stream.getvalue()


@pytest.mark.parametrize(("terminal", "lines"), [(True, 2), (False, 1)])
def test_the_names_of_columns_are_whole_too(terminal, lines, monkeypatch):
    metrics = [f"error{kind}/{margin}" for kind in ("", "-by-index") for margin in ("ratio", "distance", "absolute")]
    kind = {"unit": "error", "lower_is_better": True}
    scores = [Score("xsim/own", "deu_Latn-eng_Latn", metric, 0.12345, 997, **kind) for metric in metrics]
    stream = io.StringIO()
    monkeypatch.setattr(shown, "Console", lambda: Console(file=stream, width=80, force_terminal=terminal))
    shown.show_grid(by_language(scores, task="xsim/own"))
    head = stream.getvalue().partition("┡")[0]
    table = [line.strip("┃").split("┃") for line in re.sub(r"\x1b[^m]*m", "", head).split("\n") if "┃" in line]
    assert len(table) >= lines
    assert ["".join(cells).replace(" ", "") for cells in zip(*table, strict=True)] == [
        "subset",
        *(f"{metric}↓" for metric in metrics),
        "n",
    ]


def test_lists_break_between_words_on_a_terminal_and_never_in_a_pipe(monkeypatch, capsys):
    text = "words " * 30 + "https://example.org/a-long-address/of-many-parts/that-is-longer-than/the-whole-line-is-wide"
    assert shown.wrapped(text, indent="  ") == "  " + text
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = shown.wrapped(text, indent="  ").split("\n")
    assert all(len(line) <= 60 for line in lines[:-1])
    assert lines[-1] == "  " + text.split()[-1]
    assert all(line.startswith("  w") for line in lines[:-1])
    show_list(None)
    assert "https://github.com/facebookresearch/LASER" in capsys.readouterr().out
