"""Encoding: order, duplicates, company, streams, threads, workers, and what a caller gets for odd input."""

import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from queue import SimpleQueue
from threading import Barrier
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.layers import Dense, WithLayer
from isoglot.encoders.towers import Towers
from isoglot.model import encode, engine
from isoglot.model.engine import distinct, plan, windows


@cache
def mean_encoder():
    """A transformer with mean pooling; made at the first call, since transformers takes three seconds to import."""
    return build_transformer(pooling="mean", prompt="")


STATIC = StaticEncoder.create(build_tokenizer(), 8, seed=1)


def one_by_one(encoder, texts):
    encoder.eval()
    with torch.no_grad():
        return torch.cat([encoder(encoder.tokenize([text])) for text in texts]).numpy()


ODD = [
    *("", " ", "\n", "\0", "a\0b", "\ud800 half", "x\udfff\ud83d", "\u202e\u2066abc", "👩‍👩‍👧" * 40),
    *("\u0301" * 300, "ﷺ" * 99),
]


@settings(max_examples=20)
@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from(ODD)), max_size=8), st.integers(1, 200))
def test_a_row_does_not_depend_on_its_company(texts, budget):
    texts = [*texts, *SENTENCES]
    for encoder in (mean_encoder(), STATIC):
        vectors = encode(encoder, texts, batch_tokens=budget, normalize_embeddings=False)
        assert np.isfinite(vectors).all()
        np.testing.assert_allclose(vectors[:9], one_by_one(encoder, texts[:9]), atol=1e-6)


def test_no_text_and_a_single_text(tmp_path):
    for empty in ([], (), iter([])):
        assert encode(mean_encoder(), empty).shape == (0, mean_encoder().dim)
    mapped = encode(mean_encoder(), [], output=tmp_path / "rows.npy", dtype=np.float16, truncate_dim=3)
    assert (mapped.shape, mapped.dtype) == ((0, 3), np.float16)
    single = encode(mean_encoder(), SENTENCES[0])
    assert single.shape == (mean_encoder().dim,)
    np.testing.assert_allclose(single, encode(mean_encoder(), SENTENCES)[0], atol=1e-6)


def test_truncate_then_normalize():
    plain = encode(mean_encoder(), SENTENCES)
    short = encode(mean_encoder(), SENTENCES, truncate_dim=5, normalize_embeddings=True, dtype=np.float16)
    assert short.dtype == np.float16
    expected = plain[:, :5] / np.linalg.norm(plain[:, :5], axis=1, keepdims=True)
    np.testing.assert_allclose(short, expected, atol=1e-3)


def test_normalizing_is_the_encoders_choice_unless_said(toy_static, toy_transformer):
    assert np.allclose(np.linalg.norm(encode(toy_static, SENTENCES), axis=1), 1)
    assert not np.allclose(np.linalg.norm(encode(toy_static, SENTENCES, normalize_embeddings=False), axis=1), 1)
    assert not np.allclose(np.linalg.norm(encode(toy_transformer(), SENTENCES), axis=1), 1)
    assert (encode(toy_static, [""]) == 0).all()


def test_prompt_replaces_the_encoders_own_and_is_put_back(toy_transformer):
    encoder = toy_transformer(prompt="query: ")
    own, none, other = (encode(encoder, ["cat"], prompt=prompt) for prompt in (None, "", "the "))
    bare = toy_transformer()
    np.testing.assert_allclose(own, encode(bare, ["query: cat"]), atol=1e-6)
    np.testing.assert_allclose(none, encode(bare, ["cat"]), atol=1e-6)
    np.testing.assert_allclose(other, encode(bare, ["the cat"]), atol=1e-6)
    assert encoder.prompt == "query: "


def test_progress_counts_distinct_sentences_and_that_of_a_stream_has_no_total(small_windows):
    seen = []
    encode(
        mean_encoder(), ["a", "bb", "a", "ccc"], batch_tokens=1, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    encode(STATIC, iter("abcde"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, None)
    assert [done for done, _ in seen[3:]] == sorted(done for done, _ in seen[3:])


@pytest.mark.parametrize(
    ("encoder", "texts", "options", "error", "message"),
    [
        ("transformer", ["a", None], {}, TypeError, "text 1 is None"),
        ("static", (None if row == 7 else str(row) for row in range(20)), {}, TypeError, "text 7 is None"),
        ("transformer", ["a"], {"truncate_dim": 17}, ValueError, "between 1 and the model's 16"),
        ("transformer", ["a"], {"precision": "fp64"}, ValueError, "float32.*got 'fp64'"),
        ("transformer", ["a"], {"dtype": np.int8}, ValueError, "kind of float, such as float32 or float16, got int8"),
        ("static", ["a"], {"batch_tokens": 0}, ValueError, "batch_tokens is 0; it must be at least 1"),
        ("transformer", ["a"], {"workers": ["xpu:7"]}, EncoderError, "'xpu:7' is not available"),
        ("transformer", ["a"], {"workers": 0}, ValueError, "workers must be"),
        ("transformer", ["a"], {"workers": []}, ValueError, "workers must be"),
        ("transformer", ["a"], {"workers": "cuda:0"}, TypeError, "workers: must be"),
    ],
)
def test_what_is_wrong_is_named(encoder, texts, options, error, message, small_windows):
    with pytest.raises(error, match=message):
        encode(STATIC if encoder == "static" else mean_encoder(), texts, **options)


def test_a_vector_that_is_not_finite_is_an_error(toy_static):
    with torch.no_grad():
        toy_static.table.fill_(float("nan"))
    with pytest.raises(EncoderError, match="'the cat' is not finite"):
        encode(toy_static, ["the cat"])


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(engine, "CPU_WINDOW", 3)
    monkeypatch.setattr(engine, "STATIC_WINDOW", 3)


@pytest.mark.parametrize("encoder", [mean_encoder, lambda: STATIC], ids=["transformer", "static"])
def test_a_stream_a_list_and_a_file_agree(encoder, tmp_path, small_windows):
    encoder, texts = encoder(), [*SENTENCES, "", SENTENCES[0], *SENTENCES[3:6]]
    whole = np.concatenate([encode(encoder, [text]) for text in texts])
    np.testing.assert_allclose(encode(encoder, texts), whole, atol=1e-6)
    np.testing.assert_allclose(encode(encoder, iter(texts)), whole, atol=1e-6)
    mapped = encode(encoder, iter(texts), output=tmp_path / "new" / "rows.npy")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_allclose(mapped, whole, atol=1e-6)
    np.save(tmp_path / "saved.npy", np.array(mapped))
    assert (tmp_path / "saved.npy").read_bytes() == (tmp_path / "new" / "rows.npy").read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path):
    (tmp_path / "rows.npy").write_bytes(b"old")
    with pytest.raises(TypeError, match="text 1 is 7"):
        encode(mean_encoder(), ["a", 7], output=tmp_path / "rows.npy")
    assert (tmp_path / "rows.npy").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.npy"]


def test_a_stream_is_never_held_as_a_whole(monkeypatch):
    class Text(str):
        __slots__ = ("__weakref__",)

    monkeypatch.setattr(engine, "STATIC_WINDOW", 50)
    alive, most = weakref.WeakSet(), 0

    def lines():
        nonlocal most
        for row in range(1000):
            text = Text(f"line {row}")
            alive.add(text)
            most = max(most, len(alive))
            yield text

    rows = encode(STATIC, lines())
    assert rows.shape == (1000, 8)
    assert 100 <= most <= 250


def test_memory_is_that_of_the_rows_and_no_second_copy(monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 200)
    wide = StaticEncoder.create(build_tokenizer(), 512, seed=1)
    encode(wide, ["warm"])
    tracemalloc.start()
    rows = encode(wide, [f"{row % 3000}" for row in range(4000)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.nbytes < peak < 1.5 * rows.nbytes


def test_a_few_texts_need_no_thread(monkeypatch):
    expected = encode(STATIC, SENTENCES)
    monkeypatch.setattr(engine, "ThreadPoolExecutor", None)
    np.testing.assert_array_equal(encode(STATIC, SENTENCES), expected)


@given(st.lists(st.sampled_from(["", "a", "b", "cc", "ddd"]), max_size=40), st.integers(1, 7), st.integers(1, 9))
def test_windows_hold_every_text_once_in_order(texts, size, characters):
    def tokenize(found):
        return STATIC.tokenize(found)

    before, engine.CHARACTERS = engine.CHARACTERS, characters
    try:
        parts = list(windows(iter(texts), size, tokenize))
    finally:
        engine.CHARACTERS = before
    assert [text for part in parts for text in part.texts] == texts
    for part in parts:
        assert 1 <= len(part.texts) <= size
        assert len(set(part.distinct)) == len(part.distinct) == len(part.tokens)
        rows = range(len(part.texts)) if part.rows is None else part.rows
        assert [part.distinct[row] for row in rows] == part.texts


def test_very_long_texts_end_a_window(monkeypatch):
    monkeypatch.setattr(engine, "CHARACTERS", 1000)
    parts = list(windows(["x" * 100] * 300, 4096, STATIC.tokenize))
    assert [len(part.texts) for part in parts] == [64, 64, 64, 64, 44]


def test_distinct_in_order_of_appearance():
    found, rows = distinct(["b", "a", "b"])
    assert (found, rows.tolist()) == (["b", "a"], [0, 1, 0])
    assert distinct(["b", "a"]) == (["b", "a"], None)
    assert distinct([np.str_("a"), "a"])[0] == ["a"]


@pytest.mark.slow
def test_bytes_that_are_no_text_and_a_million_characters():
    random = np.random.default_rng(0)
    noise = [random.integers(0, 256, 200, dtype=np.uint8).tobytes().decode("utf-8", "surrogateescape") for _ in "abcd"]
    long = ["ab " * 333_333, "字" * 1_000_000, "\0" * 1_000_000, "\U0001f600" * 250_000]
    for encoder in (mean_encoder(), STATIC):
        rows = encode(encoder, iter([*noise, *long, *SENTENCES]))
        assert np.isfinite(rows).all()
        np.testing.assert_allclose(rows[8:], encode(encoder, SENTENCES), atol=1e-6)


def test_a_plan_is_complete():
    made = plan(mean_encoder(), truncate_dim=4, normalize_embeddings=True, dtype="float16")
    assert (made.width, made.unit, made.dtype, made.budget, made.precision) == (4, True, "<f2", 512, "float32")
    assert plan(mean_encoder(), devices=[torch.device("cuda:0")]).budget == engine.DEVICE_TOKENS


TEXTS = [f"{sentence} {number}" for number in range(8) for sentence in SENTENCES]


@pytest.fixture
def threads():
    """Sets torch's threads for a test, whatever the machine has."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def callers(encoder, texts, **settings):
    """(rows, for each call of forward the thread it was in and torch's threads there)."""
    calls = []

    def note(module, inputs, output):
        calls.append((threading.current_thread(), torch.get_num_threads()))

    handle = encoder.register_forward_hook(note)
    try:
        return encode(encoder, texts, **settings), calls
    finally:
        handle.remove()


def test_threads_make_whole_chunks_and_the_very_same_rows(threads):
    encoder = build_transformer(pooling="mean")
    threads(1)
    alone, calls = callers(encoder, TEXTS, batch_tokens=30)
    assert {caller for caller, _ in calls} == {threading.current_thread()}
    threads(3)
    together, calls = callers(encoder, TEXTS, batch_tokens=30)
    assert threading.current_thread() not in {caller for caller, _ in calls}
    assert {count for _, count in calls} == {1}
    np.testing.assert_array_equal(alone, together)


def test_chunks_are_computed_at_once(threads):
    threads(2)
    encoder, meeting = build_transformer(pooling="mean"), threading.Barrier(2, timeout=60)
    waits = iter([True, True])

    def meet(module, inputs):
        if next(waits, False):
            meeting.wait()  # raises if no second thread comes

    encoder.register_forward_pre_hook(meet)
    assert encode(encoder, TEXTS, batch_tokens=30).shape == (len(TEXTS), encoder.dim)


@pytest.mark.slow
def test_a_chunk_that_comes_alone_has_all_threads_and_so_has_an_encoder_of_one_thread(threads):
    threads(2)
    encoder = build_transformer(pooling="mean")
    assert callers(encoder, SENTENCES[:1])[1] == [(threading.current_thread(), 2)]
    encoder.concurrent = False
    _, calls = callers(encoder, TEXTS, batch_tokens=30)
    assert len(calls) > 2
    assert set(calls) == {(threading.current_thread(), 2)}


@pytest.mark.parametrize("fails", [False, True])
def test_threads_are_what_they_were_afterwards(threads, fails):
    threads(3)
    encoder, seen = build_transformer(pooling="mean"), []
    if fails:
        encoder.backbone.forward = None  # no function
        with pytest.raises(TypeError):
            encode(encoder, TEXTS, batch_tokens=30)
    else:
        encode(encoder, TEXTS, batch_tokens=30)
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert [torch.get_num_threads(), *seen] == [3, 3]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("isoglot-encode")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "asked"),
    [(mean_encoder, {"workers": 2}), (mean_encoder, {"workers": 2, "precision": "bf16", "truncate_dim": 5}),
     (lambda: STATIC, {"workers": ["cpu"]})],
    ids=["plain", "settings", "static"],
)  # fmt: skip
def test_processes_give_the_very_same_rows(encoder, asked, small_windows, threads):
    threads(1)  # as in a worker: threads that share the only chunk of a window round differently
    encoder, texts = encoder(), [*SENTENCES, "", SENTENCES[0]]
    expected = encode(encoder, texts, **{**asked, "workers": 1})
    np.testing.assert_array_equal(encode(encoder, iter(texts), **asked), expected)


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error():
    with pytest.raises(EncoderError, match="worker process ended before its work was done"):
        encode(Dying(torch.ones(300, 2), build_tokenizer()), ["a"], workers=["cpu"])


class OnSecond(torch.Tensor):
    device = torch.device("cuda", 1)

    def to(self, *_, **__):
        return torch.Tensor(self)


class Second(Encoder):
    """An encoder on the second of two accelerators, as far as a machine without one can have it."""

    device, concurrent, dim, normalizes, pads = torch.device("cuda", 1), True, 2, False, True

    def __init__(self):
        super().__init__()
        self.calls = []

    def __call__(self, piece):
        return OnSecond(torch.ones(3, 2))

    def to(self, device):
        self.calls.append(("to", device))
        return self

    def eval(self):
        return self


def test_a_chunk_is_awaited_on_the_stream_of_its_own_device(monkeypatch):
    """The stream of the current device, if that is another one, is idle: rows would be read before they are copied."""
    calls = []

    class Event:
        def __init__(self, device):
            pass

        def record(self, stream="of the current device"):
            calls.append(stream)

        def synchronize(self):
            calls.append("waited")

    monkeypatch.setattr(torch, "Event", Event)
    monkeypatch.setattr(torch.accelerator, "current_stream", lambda device: f"of {device}")
    rows = Second().begin(None, plan(Second(), precision="float32"))
    assert calls == ["of cuda:1"]
    assert rows().shape == (3, 2)
    assert calls == ["of cuda:1", "waited"]


@pytest.mark.parametrize("place", ["cuda:1", "cpu"])
def test_a_worker_selects_its_device_before_it_moves_the_encoder_there(place, threads, monkeypatch):
    encoder = Second()
    monkeypatch.setattr(engine, "start_worker", lambda: None)
    select = SimpleNamespace(set_device_index=lambda device: encoder.calls.append(("select", device)))
    monkeypatch.setattr(torch, "accelerator", select)
    with pytest.raises(SystemExit):
        engine._serve(encoder, plan(mean_encoder()), place, Handed(0), SimpleQueue())
    device = torch.device(place)
    assert encoder.calls == [("select", device), ("to", device)][place == "cpu" :]


class Handed:
    """Numbered chunks that a worker was handed, and then its end."""

    def __init__(self, number):
        self.waiting = list(range(number))

    def empty(self):
        return not self.waiting

    def get(self):
        return self.waiting.pop(0) if self.waiting else sys.exit()


@pytest.mark.parametrize("overlaps", [True, False])
def test_a_worker_prepares_chunks_while_its_accelerator_computes(overlaps, monkeypatch):
    """Four are begun before the first is waited for; all are answered, in order, when no other one is handed out."""
    events, answers = [], SimpleNamespace(send=lambda rows: events.append(f"sent {rows}"))

    def begin(piece, asked):
        events.append(f"begun {piece}")
        return lambda: piece

    model = SimpleNamespace(overlaps=overlaps, begin=begin, move=lambda place: model)
    monkeypatch.setattr(engine, "start_worker", lambda: None)
    with pytest.raises(SystemExit):
        engine._serve(model, None, "cuda:0", Handed(6), answers)
    each = [f"{what} {piece}" for piece in range(6) for what in ("begun", "sent")]
    ahead = [*(f"begun {piece}" for piece in range(4)), "sent 0", "begun 4", "sent 1", "begun 5"]
    assert events == (ahead + [f"sent {piece}" for piece in range(2, 6)] if overlaps else each)


class Dying(StaticEncoder):
    """Ends its process as the system does when memory runs out."""

    def forward(self, tokens):
        os._exit(9)


PROMPTS = ["", "query: ", "The cat ", "passage: ", "A dog ", "1 22 ", "Die Katze ", "numbers "]


def static() -> StaticEncoder:
    return StaticEncoder.create(build_tokenizer(), 16, seed=1).eval()


ENCODERS = {
    "transformer": lambda: build_transformer(prompt="own: "),
    "first-last": lambda: build_transformer(pooling="first-last", prompt="own: ").eval(),
    "static": static,
    "layer": lambda: WithLayer(build_transformer(), Dense(16, 5)),
    "towers": lambda: Towers({"a": build_transformer(prompt="own: "), "b": static()}, {"a": ["LATIN"]}),
}


def state(encoder):
    """All that encoding might change."""
    backends = [
        getattr(module.tokenizer, "backend_tokenizer", module.tokenizer)
        for module in encoder.modules()
        if hasattr(module, "tokenizer")
    ]
    own = [(module.training, getattr(module, "prompt", None)) for module in encoder.modules()]
    return own, [(backend.truncation, backend.padding) for backend in backends], torch.get_num_threads()


def together(encoder, count, settings):
    """The rows of `count` threads that begin at once, with a prompt each."""
    begin = Barrier(count)

    def work(prompt):
        begin.wait()
        return [encode(encoder, TEXTS, prompt=prompt, batch_tokens=60, **settings) for _ in range(2)]

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, PROMPTS[:count]))


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((kind, {}) for kind in ENCODERS),
        ("transformer", {"normalize_embeddings": True, "truncate_dim": 5}),
        ("transformer", {"precision": "bf16", "normalize_embeddings": True}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value) or "plain",
)
@pytest.mark.slow
def test_each_thread_has_its_own_prompt(kind, settings, count):
    encoder = ENCODERS[kind]()
    before, expected = state(encoder), [encode(encoder, TEXTS, prompt=prompt, **settings) for prompt in PROMPTS]
    assert not np.array_equal(expected[0], expected[1])
    for rows, wanted in zip(together(encoder, count, settings), expected, strict=False):
        for found in rows:
            np.testing.assert_allclose(found, wanted, atol=2e-2 if "precision" in settings else 1e-5)
    assert state(encoder) == before


@pytest.mark.slow
def test_threads_in_int8_beside_one_in_float():
    pytest.importorskip("onnx", reason="needs the extra `onnx`")
    encoder = build_transformer(prompt="own: ").train()
    before, plain = state(encoder), encode(encoder, TEXTS)
    alone = [encode(encoder, TEXTS, prompt=prompt, precision="int8", batch_tokens=60) for prompt in PROMPTS[:2]]
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(lambda: [encode(encoder, TEXTS) for _ in range(20)])
        for rows, wanted in zip(together(encoder, 2, {"precision": "int8"}), alone, strict=True):
            np.testing.assert_array_equal(rows[0], wanted)
        for rows in beside.result():
            np.testing.assert_allclose(rows, plain, atol=1e-6)
    assert state(encoder) == before
    assert encoder.backbone.config._attn_implementation != "eager"


def test_encoders_of_two_lengths_may_share_a_tokenizer():
    tokenizer = build_tokenizer()
    encoders = [StaticEncoder.create(tokenizer, 8, seed=1, max_length=length) for length in (2, 40)]
    tokenizer.enable_padding(pad_id=0)  # after the encoders, which switch both off
    tokenizer.enable_truncation(11)
    texts = TEXTS[::4]
    wanted = [encoder.tokenize(texts).lengths for encoder in encoders]
    assert (int(wanted[0].max()), int(wanted[1].max()) > 11) == (2, True)
    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(lambda n: encoders[n % 2].tokenize(texts).lengths, range(200))):
            assert np.array_equal(found, wanted[number % 2])
    assert (tokenizer.truncation["max_length"], tokenizer.padding["pad_id"]) == (11, 0)


def test_a_copy_in_evaluation_mode_shares_the_weights():
    encoder = build_transformer().train()
    copied = evaluating(encoder)
    assert encoder.training
    assert not any(module.training for module in copied.modules())
    assert copied.backbone.config is encoder.backbone.config
    assert all(a is b for a, b in zip(encoder.parameters(), copied.parameters(), strict=True))
    assert evaluating(copied) is copied


def test_huge_and_tiny_vectors_have_length_one():
    encoder = static()
    encoder.max_length = 1  # the sum of two such rows does not fit float32
    for scale in (3e38, 1e-37):
        with torch.no_grad():
            encoder.table.copy_(torch.full_like(encoder.table, scale))
            encoder.token_weights.fill_(1)
        np.testing.assert_allclose(encode(encoder, ["cat"]), 0.25, rtol=1e-6)
    assert (encode(encoder, [""]) == 0).all()


FORKS = """
import os, signal, threading, time
from isoglot.encoders import load
encoder, texts = load({model!r}), ["a cat and dog number %d" % i for i in range(2000)]
expected, stop = encoder.encode(texts[:9]), threading.Event()
def work():
    while not stop.is_set():
        encoder.encode(texts)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    time.sleep(0.02)
    if not (child := os.fork()):
        signal.alarm(40)
        os._exit(0 if abs(encoder.encode(texts[:9]) - expected).max() < 1e-5 else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
stop.set()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
@pytest.mark.parametrize("kind", ["static", "transformer"])
def test_a_process_forked_while_threads_encode_encodes(toy_static, toy_transformer, tmp_path, kind):
    (toy_static if kind == "static" else toy_transformer()).save(tmp_path / "m")
    code = FORKS.format(model=str(tmp_path / "m"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.stdout.split() == ["0"] * 20, done.stderr
