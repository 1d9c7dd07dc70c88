"""The progress bar: when it is drawn, and that the callback is called either way."""

import io
import sys
import threading

import pytest

from isoglot.core import progress
from isoglot.core.progress import bar, report_time


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """Makes stderr a terminal; called in the test, since pytest replaces stderr when a test begins."""

    def opened():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        return stream

    return opened


def test_a_long_work_on_a_terminal_has_a_bar_and_a_short_one_none(open_terminal, monkeypatch):
    terminal = open_terminal()
    with bar("encoding") as tick:
        tick(3, 7)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress, "LONG", 0.0)
    with bar("encoding") as tick:
        tick(3, 7)
    assert "encoding" in terminal.getvalue()
    assert "3 of 7" in terminal.getvalue()


def test_without_a_terminal_there_is_no_callback_to_call(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with bar("encoding") as tick:
        assert tick is None


def test_a_bar_that_is_asked_for_is_lines_in_a_log(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with bar("encoding", show=True) as tick:
        tick(1, 7)
    assert log.getvalue() == ""  # a short work
    monkeypatch.setattr(progress, "monotonic", iter(range(0, 100, 10)).__next__)
    with bar("encoding", show=True) as tick:
        tick(3, 7)
        tick(5, 7)
    assert [line.partition(" of 7")[0] for line in log.getvalue().splitlines()] == ["encoding: 3", "encoding: 5"]


@pytest.mark.parametrize("show", [None, False, True])
def test_a_callback_is_called_with_or_without_a_bar(open_terminal, show):
    terminal = open_terminal()
    seen = []
    with bar("encoding", show=show, progress=lambda *event: seen.append(event)) as tick:
        tick(1, None)
    assert seen == [(1, None)]
    assert bool(terminal.getvalue()) is (show is True)


def test_a_bar_within_a_bar_is_not_drawn(open_terminal):
    terminal = open_terminal()
    with bar("outer", show=True) as outer, bar("inner", show=True) as inner:
        outer(1, 2)
        assert inner is None
    assert "inner" not in terminal.getvalue()


def test_work_that_cannot_be_counted_reports_its_time():
    said, reported = [], threading.Event()
    with report_time("merging", lambda line: (said.append(line), reported.set()), every=0.01):
        assert reported.wait(10)
    assert said[0] == "merging: 0:00 so far"
    assert not [thread for thread in threading.enumerate() if "beat" in thread.name]
