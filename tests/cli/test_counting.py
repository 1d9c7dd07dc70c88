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


def test_texts_are_counted_over_many_calls(clock):
    out = console(terminal=True)
    with Counting(out) as listener:
        for seconds, done, total in ((1.0, 50, 100), (2.0, 100, 100), (4.0, 20, 60)):
            clock[0] = seconds
            listener(done, total)
    assert "120 texts encoded, 30/s, this part 0:01 left" in out.file.getvalue()


def test_the_speed_is_that_of_encoding_and_not_of_what_tasks_compute(clock):
    out = console(terminal=True)
    with Counting(out) as listener:
        for seconds, done, total in ((5.0, 0, 30), (6.0, 30, 30), (900.0, 0, 60), (901.0, 40, 60), (902.0, 60, 60)):
            clock[0] = seconds
            listener(done, total)
    assert "90 texts encoded, 30/s\n" in out.file.getvalue()


def test_a_stream_whose_number_grows_as_it_is_read_is_one_call(clock):
    out = console(terminal=True)
    with Counting(out) as listener:
        for seconds, done in ((1.0, 20), (2.0, 40), (3.0, 60)):
            clock[0] = seconds
            listener(done, done)  # all that was read so far
    assert "60 texts encoded, 20/s\n" in out.file.getvalue()


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
