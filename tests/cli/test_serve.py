"""The server's answers, its shape for OpenAI's clients, and that nothing a client sends brings it down."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_folder import LINES, make_index

from isoglot import encode
from isoglot.cli.serve.answers import Answers
from isoglot.cli.serve.batching import Batching
from isoglot.cli.serve.connections import Limits, Server, is_loopback
from isoglot.encoders import load
from isoglot.index import Index, SearchError

pytest.importorskip("faiss")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("cat") | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = ["query", "k", "languages", "input", "model", "dimensions", "encoding_format"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    from conftest import build_tokenizer
    from isoglot.encoders import StaticEncoder

    folder = make_index(tmp_path_factory.mktemp("serve"), StaticEncoder.create(build_tokenizer(), 8, seed=1))
    with Index.open(folder) as index:
        yield Answers(index, load(folder.parent / "model"))


@pytest.fixture
def server(answers):
    with started(answers) as made:
        yield made


class started:  # noqa: N801 - used as a function
    """A server in a thread of its own."""

    def __init__(self, answer, **limits):
        self.server = Server("127.0.0.1", 0, answer, Limits(**limits))

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self.server

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()


def ask(server, method, path, body=None, **headers):
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, headers)
    reply = connection.getresponse()
    found = reply.status, dict(reply.headers), reply.read()
    connection.close()
    return found


def raw(server, data, *, wait=20.0, end=True):
    """Everything that comes back for some bytes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=wait) as connection:
        try:
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        except ConnectionError:
            pass
        return b"".join(parts)


def test_search_finds_and_names_languages(server):
    status, headers, body = ask(server, "POST", "/search", {"query": LINES["deu"][0], "k": 3})
    found = json.loads(body)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert len(found["hits"]) == 3
    first = found["hits"][0]
    assert (first["text"], first["language"], first["tag"]) == (LINES["deu"][0], "deu", "de")
    assert first["score"] == pytest.approx(1)
    body = ask(server, "POST", "/search", {"query": "cat", "languages": ["ar"]})[2]
    assert {hit["text"] for hit in json.loads(body)["hits"]} == set(LINES["ara"])


def test_the_index_tells_of_itself(server):
    found = json.loads(ask(server, "GET", "/index")[2])
    assert (found["model"], found["sentences"], found["kind"]) == ("model", 8, "flat")
    assert {one["code"]: one["sentences"] for one in found["languages"]} == {c: len(x) for c, x in LINES.items()}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/search", b"", 400, "not JSON"),
        ("/search", b"[" * 100_000, 400, "not JSON"),
        ("/search", b'{"query": "a", "k": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        ("/search", b"\xff\xfe", 400, "not JSON"),
        ("/search", [], 400, "no object"),
        ("/search", {}, 400, "'query'"),
        ("/search", {"query": " "}, 400, "'query'"),
        ("/search", {"query": "x" * 10_001}, 400, "'query'"),
        ("/search", {"query": "\ud800"}, 400, "surrogate"),
        ("/search", {"query": "a", "k": 0}, 400, "'k'"),
        ("/search", {"query": "a", "k": True}, 400, "'k'"),
        ("/search", {"query": "a", "languages": "deu"}, 400, "'languages'"),
        ("/search", {"query": "a", "languages": ["qqqq"]}, 400, "unknown language"),
        ("/v1/embeddings", {}, 400, "'input'"),
        ("/v1/embeddings", {"input": []}, 400, "'input'"),
        ("/v1/embeddings", {"input": ["a"] * 2049}, 400, "'input'"),
        ("/v1/embeddings", {"input": [[1, 2]]}, 400, "token numbers"),
        ("/v1/embeddings", {"input": [1, 2]}, 400, "token numbers"),
        ("/v1/embeddings", {"input": "\udfff"}, 400, "surrogate"),
        ("/v1/embeddings", {"input": "a", "model": "gpt"}, 404, "this server has 'model'"),
        ("/v1/embeddings", {"input": "a", "dimensions": 9}, 400, "'dimensions'"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, 400, "'encoding_format'"),
        ("/index", {}, 405, "GET only"),
        ("/nothing", {}, 404, "nothing here"),
    ],
)
def test_what_cannot_be_answered_is_explained(server, path, body, status, message):
    found = ask(server, "POST", path, body)
    error = json.loads(found[2])["error"]
    assert (found[0], error["type"]) == (status, "invalid_request_error")
    assert message in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    if status == 405:
        assert found[1]["Allow"] == "GET"


@pytest.mark.parametrize(
    "path",
    [
        *("/../index.sqlite", "/index.sqlite", "/..%2f..%2fetc/passwd", "//etc/passwd", "/page.css/../../answers.py"),
        *("/%2e%2e/x", "/vectors/00000-8.npy", "/\0", "/v1/models/../x", "file:///etc/passwd", "http://example.org/"),
        *("/page.html", "/answers.py", "/page.css/", "/page.css%00", "/./page.css"),
    ],
)
def test_no_file_can_be_read(server, path):
    reply = raw(server, b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert reply.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
    assert b"root:" not in reply


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n\r\n", b""),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
        (b"BREW / HTTP/1.1\r\n\r\n", b"501"),
        (b"POST /search HTTP/1.1\r\n\r\n", b"411"),
        (b"POST /search HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
        (b"POST /search HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /search HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", b"400"),
        (b"POST /search HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400"),
        (b"POST /search HTTP/1.1\r\nContent-Length: 99\r\n\r\n{}", b"400"),
        (b"POST /search HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n{}", b"413"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
    ],
)
def test_malformed_requests_are_refused_and_the_next_is_answered(server, data, status):
    reply = raw(server, data)
    assert reply[9:12] == status
    if reply:
        assert b'{"error"' in reply
    assert ask(server, "GET", "/index")[0] == 200


def test_oversize_bodies_are_refused_with_a_reason(server):
    status, _, body = ask(server, "POST", "/v1/embeddings", b"x" * (5 << 20))
    assert status == 413
    assert "send fewer texts" in json.loads(body)["error"]["message"]


@settings(max_examples=150, deadline=None)
@given(found=JSON | st.dictionaries(st.sampled_from(KEYS), JSON), path=st.sampled_from(["/search", "/v1/embeddings"]))
def test_any_json_gets_an_answer(answers, found, path):
    reply = answers("POST", path, json.dumps(found).encode())
    assert reply.status in (200, 400, 404)
    json.loads(reply.body)


@settings(max_examples=100, deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "PUT"]), target=st.text() | st.from_regex(r"/v1/models/.*"), body=st.binary()
)
def test_any_bytes_get_an_answer(answers, method, target, body):
    reply = answers(method, target, body)
    assert 200 <= reply.status < 500
    assert answers("POST", "/search", body).status == 400


@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=200), start=st.sampled_from([b"", b"GET ", b"POST /search HTTP/1.1\r\n"]))
def test_random_bytes_on_the_wire(module_server, data, start):
    raw(module_server, start + data)
    assert ask(module_server, "GET", "/v1/models")[0] == 200


@pytest.fixture(scope="module")
def module_server(answers):
    with started(answers) as made:
        yield made


def test_two_hundred_clients_at_once_get_their_own_vectors(server, answers):
    texts = [f"client {number} asks for cat number {number % 7}" for number in range(200)]
    expected = encode(answers.encoder, texts, normalize=True)
    barrier = threading.Barrier(200)

    def client(number):
        barrier.wait()
        status, _, body = ask(server, "POST", "/v1/embeddings", {"input": texts[number]})
        return status, json.loads(body)["data"][0]["embedding"]

    with ThreadPoolExecutor(200) as pool:
        found = list(pool.map(client, range(200)))
    assert {status for status, _ in found} == {200}
    np.testing.assert_allclose([vector for _, vector in found], expected, atol=1e-6)


def test_slow_clients_are_cut_off_and_others_served_meanwhile(answers):
    with started(answers, seconds=0.5, threads=3) as server:
        address = ("127.0.0.1", server.server_port)
        slow = [socket.create_connection(address, timeout=20) for _ in range(3)]
        stop = threading.Event()

        def drip(connection):
            connection.sendall(b"POST /search HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
            while not stop.wait(0.1):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        threads = [threading.Thread(target=drip, args=(one,)) for one in slow]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        assert ask(server, "GET", "/index")[0] == 200  # after the first of the three has been cut off
        assert time.monotonic() - began < 10
        replies = [one.recv(4096) for one in slow]
        stop.set()
        for thread, one in zip(threads, slow, strict=True):
            thread.join()
            one.close()
    assert all(reply.startswith(b"HTTP/1.1 408") for reply in replies)


def test_what_cannot_wait_is_turned_away(answers):
    with started(answers, seconds=5, threads=1, connections=2) as server:
        held = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(2)]
        time.sleep(0.2)
        reply = raw(server, b"", end=False)
        assert reply.startswith(b"HTTP/1.1 503")
        assert b"try again later" in reply
        for one in held:
            one.close()
        time.sleep(0.2)
        assert ask(server, "GET", "/index")[0] == 200


@pytest.mark.parametrize(
    ("host", "status"), [("localhost", 200), ("127.0.0.1:80", 200), ("[::1]:9", 200), ("evil.example", 421), ("", 421)]
)
def test_on_loopback_only_its_own_names_are_answered(server, host, status):
    assert ask(server, "GET", "/index", Host=host)[0] == status


def test_hosts():
    assert is_loopback("127.0.0.2")
    assert not any(map(is_loopback, ("0.0.0.0", "example.org", "127.0.0.1.example.org", "")))


def test_a_taken_port_and_an_impossible_one_are_said(server, answers):
    for port in (70_000, server.server_port):
        with pytest.raises(SearchError, match="cannot listen"):
            Server("127.0.0.1", port, answers, Limits())
    with pytest.raises(SearchError, match="cannot listen"):
        Server("192.0.2.1", 0, answers, Limits())


def test_a_fault_inside_is_an_answer_too(capsys):
    def broken(*_request):
        raise RuntimeError("inside")

    with started(broken) as server:
        status, _, body = ask(server, "GET", "/")
        assert (status, json.loads(body)["error"]["type"]) == (500, "server_error")
        assert b"inside" not in body
    assert "RuntimeError: inside" in capsys.readouterr().err


def test_batching_gives_each_caller_its_own_and_errors_to_whom_they_belong():
    calls, started_first, go = [], threading.Event(), threading.Event()

    def work(texts):
        calls.append(len(texts))
        started_first.set()
        go.wait(10)
        if "bad" in texts:
            raise ValueError("bad text")
        return [text.upper() for text in texts]

    batching = Batching(work, threading.Lock())
    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(batching, ["first"])
        started_first.wait(10)
        others = [pool.submit(batching, [f"t{number}", "x"]) for number in range(10)]
        bad = pool.submit(batching, ["bad"])
        while len(batching._waiting) < 11:
            time.sleep(0.01)
        go.set()
        assert list(first.result()) == ["FIRST"]
        assert [list(one.result()) for one in others] == [[f"T{number}", "X"] for number in range(10)]
        with pytest.raises(ValueError, match="bad text"):
            bad.result()
    assert calls[:2] == [1, 21]


def test_vectors_in_both_formats_are_those_of_the_encoder(server, answers):
    texts = [LINES["eng"][0], "", LINES["tha"][0]]
    expected = encode(answers.encoder, texts, normalize=True)
    for encoding in ("float", "base64"):
        body = ask(server, "POST", "/v1/embeddings", {"input": texts, "model": "model", "encoding_format": encoding})[2]
        found = json.loads(body)
        values = [one["embedding"] for one in found["data"]]
        if encoding == "base64":
            values = [np.frombuffer(base64.b64decode(value), "<f4") for value in values]
        np.testing.assert_allclose(values, expected, atol=1e-6)
        assert [one["index"] for one in found["data"]] == [0, 1, 2]
        tokens = int(answers.encoder.tokenize(texts).lengths.sum())
        assert found["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_the_real_client_is_content(server, answers):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{server.url}v1", api_key="none", max_retries=0)
    expected = encode(answers.encoder, ["cat", "dog"], normalize=True)
    for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        made = client.embeddings.create(model="model", input=["cat", "dog"], **options)
        values = [one.embedding for one in made.data]
        if options.get("encoding_format") == "base64":
            values = [np.frombuffer(base64.b64decode(value), "<f4") for value in values]
        np.testing.assert_allclose(values, expected, atol=1e-6)
        assert made.usage.prompt_tokens > 0
    short = client.embeddings.create(model="model", input="cat", dimensions=3).data[0].embedding
    cut = expected[0][:3] / np.linalg.norm(expected[0][:3])
    np.testing.assert_allclose(short, cut, atol=1e-6)
    assert [one.id for one in client.models.list()] == ["model"]
    assert client.models.retrieve("model").owned_by == "isoglot"
    with pytest.raises(openai.NotFoundError, match="this server has 'model'") as error:
        client.embeddings.create(model="text-embedding-3-small", input="cat")
    assert error.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="'input'"):
        client.embeddings.create(model="model", input=[])
