"""A corpus: sources in files and in memory, filtered, counted, checked early and tokenised once."""

import gzip
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, TimeoutError

import pytest
from hypothesis import given
from hypothesis import strategies as st
from killed import killed_before

from isoglot.core.errors import CorpusError, IsoglotError, RecipeError
from isoglot.data import Group
from isoglot.data.batching import Mixing
from isoglot.data.corpus import Corpus, FileSource, MemorySource, Spool, build_table, count_groups, digest_of
from isoglot.training import recipe as recipes
from isoglot.training.train import train
from toys import ToyEncoder

PAIRS = [("Good morning!", "Guten Morgen!"), ("Thanks.", "Danke."), ("Thanks.", "Danke.")]
ENCODER = ToyEncoder()
RECIPE = """
name = "five"
encoder = {{ kind = "static", dim = 8, vocabulary = 400 }}
stages = [
  {{ name = "one", steps = 1, optimizer = {{ lr = 1e-3 }}, streams = [
    {{ objectives = [{{ name = "info_nce" }}], sources = [{{ reader = "tsv", path = "0.tsv" }}] }} ] }},
  {{ name = "two", steps = 1, optimizer = {{ lr = 1e-3 }}, streams = [
    {{ objectives = [{{ name = "info_nce" }}], {stream} sources = [{sources}] }} ] }},
]
"""


def tsv(path, lines):
    path.write_text("en\tde\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def table(corpus, cache, report=lambda _: None, **settings):
    return build_table(corpus, ENCODER.tokenize, fingerprint="x", cache=cache, report=report, **settings)


def test_a_table_is_kept_until_the_data_or_a_setting_changes(tmp_path):
    def digest(data=PAIRS, **settings):
        return Corpus([MemorySource(data, settings.pop("langs", ("en", "de")))], **settings).digest()

    assert digest() == digest(list(PAIRS)) == digest(name="other")
    others = [digest(PAIRS[:2]), digest(join=True), digest(deduplicate=False), digest(languages=("eng",))]
    assert len({digest(), digest(langs=("en", "fr")), *others}) == 6
    digests = {Corpus([MemorySource(PAIRS, mixing=Mixing(sample=size))]).digest() for size in range(3)}
    assert len(digests) == 3
    drawn_later = Mixing(weight=2.0, cap=5, most=3)  # when batches are made
    assert Corpus([MemorySource(PAIRS, mixing=drawn_later)]).digest() in digests
    path = tsv(tmp_path / "a.tsv", ["a\tb"])
    before = Corpus([FileSource("tsv", path, name="a")]).digest()
    tsv(path, ["a\tc"])
    assert Corpus([FileSource("tsv", path, name="a")]).digest() != before


def test_a_sample_is_drawn_by_its_seed_after_leaks_and_before_duplicates(tmp_path):
    (tmp_path / "test.txt").write_text("3\n4\n")
    pairs = [(str(number), f"{number}!") for number in range(100)]

    def drawn(**sample):
        corpus = Corpus(
            [MemorySource(pairs, ("en", "de"), mixing=Mixing(**sample)), MemorySource(pairs[:3], name="few")],
            leakage=[tmp_path / "test.txt"],
        )
        first, again = ([group.texts[0] for group in dict(corpus.source_groups())["data"]] for _ in range(2))
        assert first == again
        assert first == sorted(first, key=int)
        assert corpus.counts["data"]["kept"] == len(first)
        return set(first), corpus.counts["data"]

    small, counts = drawn(sample=20)
    assert len(small) == 20
    assert {"3", "4"}.isdisjoint(small)
    assert counts == {"read": 100, "leaked": 2, "not sampled": 78, "kept": 20, "repeated": 0}
    assert small < drawn(sample=40)[0]
    assert small != drawn(sample=20, seed=1)[0]
    assert len(drawn(sample=1000)[0]) == 98


def test_what_is_left_out_is_counted_for_each_source(tmp_path):
    words = []
    corpus = Corpus([MemorySource(PAIRS, name="a"), MemorySource(PAIRS, name="b")])
    for _ in range(2):  # built, then opened
        table(corpus, tmp_path, words.append)
    assert corpus.counts["a"] == {"read": 3, "repeated": 1, "kept": 2}
    assert corpus.counts["b"] == {"read": 3, "repeated": 3, "kept": 0}
    assert words[0] == words[1]
    assert "6 read, 4 repeated, 2 kept" in words[0]
    joined = Corpus([MemorySource(PAIRS, name="a"), MemorySource([("Thanks.", "Merci.")], name="b")], join=True)
    table(joined, tmp_path)
    assert (joined.counts["a"]["read"], joined.counts["b"]["read"], joined.counts["joined"]["kept"]) == (3, 1, 2)


class Read(MemorySource):
    """Counts how often its groups are read."""

    times = 0

    def groups(self, counts):
        self.times += 1
        return super().groups(counts)


@pytest.mark.parametrize("join", [False, True])
def test_text_is_read_once_for_a_tokenizer_and_a_table(tmp_path, join):
    sources = [Read(iter(PAIRS), ("en", "de"), name="a"), Read([PAIRS[0]], ("en", "de"), name="b")]
    corpus = Corpus(sources, join=join)
    assert list(corpus.texts()) == [text for pair in PAIRS[:2] for text in pair]
    assert len(table(corpus, tmp_path)) == 2
    assert [source.times for source in sources] == [1, 1]
    assert [corpus.counts[name]["repeated"] for name in "ab"] == [1, 1]
    corpus.release()
    assert len(list(corpus.texts())) == 4
    assert [source.times for source in sources] == [2, 2]


WORDS = st.lists(st.text(alphabet=st.characters(), max_size=9), max_size=3).map(tuple)
EXTRAS = st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False) | st.tuples(st.integers()), max_size=2)


@given(st.lists(st.tuples(WORDS, WORDS, st.text(max_size=9), EXTRAS), max_size=4))
def test_groups_in_a_temporary_file_are_read_again_and_again(tmp_path_factory, rows):
    groups = [
        Group(texts, ("eng",) * len(texts), key, hard, ("und",) * len(hard), more) for texts, hard, key, more in rows
    ]
    spool = Spool(tmp_path_factory.getbasetemp() / "text")
    assert list(spool.write(groups, Counter())) == groups
    assert spool.complete
    assert list(spool.read()) == list(spool.read()) == groups
    spool.close()


def test_a_temporary_file_has_blocks_and_the_counts_at_its_end_and_no_name(tmp_path):
    spool, shares, counts = Spool(tmp_path), [], Counter()
    every = [Group((f"text {number}",), ("eng",)) for number in range(3 * 4096 + 5)]
    writing = spool.write(count_groups(every, counts, "read"), counts)
    next(writing)
    assert not spool.complete
    assert sum(1 for _ in writing) == len(every) - 1
    counts["read"] += 1
    assert (spool.complete, spool.counts) == (True, {"read": len(every)})
    assert list(spool.read(shares.append)) == every
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(1)
    assert not list(tmp_path.iterdir())


def test_after_an_abandoned_reading_everything_is_read_again():
    sources = [Read(PAIRS[:2], name="a"), Read(PAIRS[:2], name="b"), Read(["Yes."], name="c")]
    corpus = Corpus(sources)
    stopped = corpus.texts()
    for _ in range(5):  # the first two sources, of which the second repeats the first, and one sentence
        next(stopped)
    assert sum(1 for _, groups in corpus.source_groups() for _ in groups) == 3
    assert corpus.counts["b"]["repeated"] == 2


def test_sources_need_names_and_joined_ones_no_weights():
    with pytest.raises(RecipeError, match="'data'"):
        Corpus([MemorySource(PAIRS), MemorySource(PAIRS)])
    with pytest.raises(RecipeError, match="weight"):
        Corpus([MemorySource(PAIRS, mixing=Mixing(weight=2.0))], join=True)


@pytest.mark.parametrize(
    "broken, stream, parts",
    [
        ("en\txx\na\tb\n", "", ["3.tsv:1", "xx"]),
        ("en\tde\na\n", "", ["3.tsv:2"]),
        ("en\tde\n" + "a\tb\n" * 50 + "\xff\n", "", ["3.tsv:52"]),
        (None, "", ["3.tsv"]),
        ("en\tde\na\tb\n", 'languages = "xx",', ["streams.train.languages", "xx"]),
        ("en\tde\na\tb\n", 'leakage = "missing.txt",', ["missing.txt"]),
    ],
)
def test_one_corrupt_source_of_five_ends_a_run_before_the_tokenizer_is_trained(
    tmp_path, monkeypatch, broken, stream, parts
):
    for number in range(5):
        tsv(tmp_path / f"{number}.tsv", [f"{number} line {line}\t{number} Zeile {line}" for line in range(200)])
    if broken is None:
        (tmp_path / "3.tsv").unlink()
    else:
        (tmp_path / "3.tsv").write_text(broken, encoding="latin-1")
    sources = ", ".join(f'{{ reader = "tsv", path = "{number}.tsv" }}' for number in range(5))
    (tmp_path / "r.toml").write_text(RECIPE.format(sources=sources, stream=stream))
    monkeypatch.setattr("isoglot.training.plan.train_tokenizer", lambda *_, **__: pytest.fail("too late"))
    with pytest.raises(IsoglotError) as error:
        train(recipes.load(tmp_path / "r.toml"), output=tmp_path / "run")
    assert all(part in str(error.value) for part in parts), error.value


def test_checking_reads_the_first_groups_only_and_memory_too(tmp_path):
    path = tsv(tmp_path / "a.tsv", ["a\tb"] * 150 + ["a"])
    corpus = Corpus([FileSource("tsv", path, name="a")])
    corpus.check(100)
    with pytest.raises(CorpusError, match=r"a\.tsv:152"):
        corpus.check(200)
    with pytest.raises(CorpusError, match="row 2"):
        Corpus([MemorySource([("a", "b"), ("c", "")])]).check()
    assert list(MemorySource(["a"], "de").groups(None)) == [Group(("a",), ("deu",))]


@pytest.mark.parametrize("packed", [False, True])
def test_progress_counts_the_bytes_on_disk(tmp_path, packed, monkeypatch):
    monkeypatch.setattr("isoglot.data.files._BLOCK", 1 << 14)
    path = tsv(tmp_path / "a.tsv", [f"{n} {'x' * 50}\t{n}" for n in range(2_000)])
    if packed:
        path = tmp_path / "a.tsv.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.tsv").read_bytes()))
    seen = []
    corpus = Corpus([FileSource("tsv", path, name="a")])
    monkeypatch.setattr("isoglot.data.corpus.Bar", lambda *_, **settings: lambda *state: seen.append(state))
    table(corpus, tmp_path)
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_a_table_whose_building_fails_or_is_killed_leaves_nothing(tmp_path):
    def build(end):
        class Ending(MemorySource):
            def groups(self, counts):
                yield from super().groups(counts)
                end()

        return table(Corpus([Ending(PAIRS, ("en", "de"))]), tmp_path / "cache")

    with pytest.raises(ZeroDivisionError):
        build(lambda: 1 / 0)
    assert list((tmp_path / "cache").iterdir()) == []
    assert not killed_before(99, lambda: build(lambda: os._exit(9)))
    assert len(list((tmp_path / "cache").iterdir())) == 2  # a folder and a lock
    assert len(build(int)) == 2  # one is repeated
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_runs_that_need_one_table_build_it_once(tmp_path):
    begun, ready = threading.Event(), threading.Event()

    class Slow(MemorySource):
        def groups(self, counts):
            begun.set()
            ready.wait(60)
            yield from super().groups(counts)

    class Never(MemorySource):
        def groups(self, counts):
            raise AssertionError

    def build(kind):
        return len(table(Corpus([kind(PAIRS, ("en", "de"))]), tmp_path))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(build, Slow)
        begun.wait(60)
        second = pool.submit(build, Never)
        with pytest.raises(TimeoutError):
            second.result(0.5)
        ready.set()
        assert first.result() == second.result() == 2


def test_the_digest_changes_with_any_part():
    group = Group(("a", "b"), ("eng", "deu"), "k", ("c",), ("eng",), {"score": 1.0})
    others = [Group(("ab",), ("eng",)), Group(("a", "b"), ("eng", "fra")), Group(("a", "b"), ("eng", "deu"), "k")]
    assert digest_of([group]) == digest_of(iter([group]))
    assert len({digest_of(groups) for groups in ([group], [group, group], *[[other] for other in others], [])}) == 6
