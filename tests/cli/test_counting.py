"""What is told of a long work: of many calls together, of the time left, on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from isoglot.cli import counting
from isoglot.cli.counting import Counting, timed


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [0.0]
    monkeypatch.setattr(counting, "monotonic", lambda: now[0])
    return now


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, highlight=False)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        # Many calls of which only chunks are told: all that passes counts.
        (((1.0, 50, 100), (2.0, 100, 100), (4.0, 20, 60)), "120 texts encoded, 30/s, this part 0:01 left"),
        # Where 0 is told before each call, what is computed between them does not.
        (((5.0, 0, 30), (6.0, 30, 30), (900.0, 0, 60), (901.0, 40, 60), (902.0, 60, 60)), "90 texts encoded, 30/s\n"),
        # A stream is one call, though all that was read so far is all that there seems to be.
        (((1.0, 20, 20), (2.0, 40, 40), (3.0, 60, 60)), "60 texts encoded, 20/s\n"),
    ],
)
def test_texts_are_counted_over_many_calls(clock, calls, told):
    out = console(terminal=True)
    with Counting(out) as listener:
        for seconds, done, total in calls:
            clock[0] = seconds
            listener(done, total)
    assert told in out.file.getvalue()


def test_elsewhere_only_words_are_printed(clock):
    out = console(terminal=False)
    with Counting(out) as listener:
        clock[0] = 1000.0
        listener(1, 2)
        listener.say("some words")
    assert out.file.getvalue() == "some words\n"


def test_the_time_left_is_told_now_and_then_from_this_runs_share(clock):
    out = console(terminal=False)
    with timed("walking", out) as listener:
        listener(50, 100)  # done before
        clock[0] = 4.0
        listener(60, 100)
        clock[0] = 6.0
        listener(75, 100)
        clock[0] = 10.0
        listener(90, 100)
        clock[0] = 12.0
        listener(100, 100)
    assert out.file.getvalue() == "walking: 75%, 0:06 left\nwalking: 100%, 0:00 left\n"


def test_nothing_is_left_to_tell_before_the_second_call(clock):
    out = console(terminal=True)
    with timed("walking", out) as listener:
        clock[0] = 9.0
        listener(1, 4)
    assert "walking: 25%" in out.file.getvalue()
    assert "left" not in out.file.getvalue()
