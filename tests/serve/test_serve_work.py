"""The worker: slices shared fairly, each job its own results and errors, cancelled jobs dropped."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("uvicorn")

from isoglot.serve.work import Worker


@pytest.fixture
def worker():
    made = Worker()
    yield made
    made.close()


class Gate:
    """Work that waits at its first slice until it is opened, and remembers its slices."""

    def __init__(self):
        self.slices, self.entered, self.opened = [], threading.Event(), threading.Event()

    def __call__(self, items):
        self.slices.append(list(items))
        self.entered.set()
        assert self.opened.wait(20)
        if "bad" in items:
            raise ValueError("bad text")
        return [item.upper() for item in items]


class Panic(BaseException):
    """What tokenizers raises when its Rust code panics: not an Exception."""


def submit(worker, work, items, size=1):
    return worker.submit(work, items, [size] * len(items))


def test_what_waits_is_worked_on_together_and_errors_go_to_whom_they_belong(worker):
    work = Gate()
    first = submit(worker, work, ["first"])
    work.entered.wait(20)
    others = [submit(worker, work, [f"t{number}", "x"]) for number in range(10)]
    bad = submit(worker, work, ["bad"])
    work.opened.set()
    assert first.result(20) == ["FIRST"]
    assert [one.result(20) for one in others] == [[f"T{number}", "X"] for number in range(10)]
    with pytest.raises(ValueError, match="bad text"):
        bad.result(20)
    assert [len(part) for part in work.slices[:2]] == [1, 21]


def test_a_panic_fails_its_job_and_the_thread_lives_on(worker):
    entered, opened = threading.Event(), threading.Event()

    def work(items):
        entered.set()
        assert opened.wait(20)
        if "bad" in items:
            raise Panic
        return items

    first = submit(worker, work, ["first"])
    assert entered.wait(20)
    bad, good = submit(worker, work, ["bad"]), submit(worker, work, ["good"])  # in one slice
    opened.set()
    with pytest.raises(RuntimeError) as error:
        bad.result(20)
    assert isinstance(error.value.__cause__, Panic)
    assert (first.result(20), good.result(20)) == (["first"], ["good"])
    assert submit(worker, work, ["later"]).result(20) == ["later"]
    assert worker.is_alive


def test_a_small_job_waits_for_one_slice_of_a_large_one_and_kinds_take_turns(worker):
    work, other = Gate(), Gate()
    large = submit(worker, work, ["large"] * 64, 1000)
    work.entered.wait(20)
    small, search = submit(worker, work, ["small"], 10), submit(worker, other, ["query"], 10)
    other.opened.set()
    work.opened.set()
    assert (small.result(20), search.result(20)) == (["SMALL"], ["QUERY"])
    assert len(work.slices[0]) <= 8
    assert "small" in work.slices[1]
    assert large.result(20) == ["LARGE"] * 64


@pytest.mark.slow
def test_slices_follow_the_time_they_take(worker):
    lengths = []

    def work(items):
        lengths.append(len(items))
        time.sleep(0.25 if len(items) > 8 else 0)
        return items

    submit(worker, work, ["x"] * 80, 256).result(60)
    assert lengths[0] == 16
    assert min(lengths[1:-1]) <= 8
    assert max(lengths) <= 16


def test_cancelled_jobs_are_dropped_and_closing_cancels(worker):
    work = Gate()
    held = submit(worker, work, ["held"] * 10, 4096)
    work.entered.wait(20)
    dropped, later = submit(worker, work, ["dropped"]), submit(worker, work, ["later"])
    assert dropped.cancel()
    assert held.cancel()
    work.opened.set()
    assert later.result(20) == ["LATER"]
    assert [item for part in work.slices for item in part] == ["held", "later"]
    work.entered.clear()
    work.opened.clear()
    running, waiting = submit(worker, work, ["running"]), None
    work.entered.wait(20)
    waiting = submit(worker, work, ["waiting"])
    threading.Timer(0.1, work.opened.set).start()
    worker.close()
    assert running.result(20) == ["RUNNING"]
    assert waiting.cancelled()
    assert submit(worker, work, ["again"]).result(20) == ["AGAIN"]


@given(jobs=st.lists(st.lists(st.integers(0, 9000), min_size=1, max_size=9), max_size=9), kinds=st.integers(1, 3))
def test_every_item_is_worked_on_once(jobs, kinds):
    seen = [[] for _ in range(kinds)]

    def kind(place):
        def work(items):
            seen[place] += items
            return [item * 2 for item in items]

        return work

    works = [kind(place) for place in range(kinds)]
    worker = Worker()
    futures = [worker.submit(works[place % kinds], sizes, sizes) for place, sizes in enumerate(jobs)]
    assert [future.result(20) for future in futures] == [[size * 2 for size in sizes] for sizes in jobs]
    worker.close()
    assert sorted(size for part in seen for size in part) == sorted(size for sizes in jobs for size in sizes)
