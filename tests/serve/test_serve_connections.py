"""Slow, idle, malformed and too many connections cost honest requests nothing; and the server stops when asked to."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection

import pytest
import serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import SERVE, ask, connect, limited, raw, received, started, until

from index_folder import make_index
from isoglot.index import Index, SearchError
from isoglot.serve import Limits, Server, create_app, embeddings

HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\n"
encoder, slow = serving.encoder, serving.slow


@pytest.fixture(scope="module")
def server(encoder):
    with started(create_app(encoder=encoder)) as made:
        yield made


def is_quick(server):
    began = time.monotonic()
    assert ask(server, "POST", "/v1/embeddings", {"input": "cat"})[0] == 200
    return time.monotonic() - began < 5


def test_more_idle_connections_than_there_are_places_cost_an_honest_request_nothing(encoder):
    with limited(encoder, connections=20, seconds=60) as server:
        idle = [connect(server) for _ in range(200)]
        for connection in idle[1::2]:
            with suppress(OSError):  # the server may have closed it
                connection.sendall(HEAD)  # as far as the head, not to its end
        assert is_quick(server)
        assert received(idle[0]) == b""  # the longest idle one made room
        until(lambda: len(server.server_state.connections) <= 20)
        for connection in idle:
            connection.close()


BURST = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
from isoglot.encoders import load
from isoglot.serve import Server, create_app, Limits
server = Server(create_app(encoder=load({model!r})), "127.0.0.1", 0, Limits())
print(server.port, flush=True)
server.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("files", "burst", "most"), [(4096, 900, 512), (1024, 1600, 512), (256, 1600, 128)])
def test_a_burst_costs_neither_files_nor_lines_of_the_log(encoder, tmp_path, files, burst, most):
    """More connections than the server may open files: it keeps its limit, is silent, and answers others at once."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("needs a process that may open 2,000 files")
    encoder.save(tmp_path / "m")
    code = [sys.executable, "-c", BURST.format(model=str(tmp_path / "m"), files=files)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    idle = []
    try:
        with subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                port = int(process.stdout.readline())
                for _ in range(burst):
                    made = socket.socket()
                    made.setblocking(False)
                    made.connect_ex(("127.0.0.1", port))
                    idle.append(made)
                for _ in range(3):
                    began = time.monotonic()
                    assert b"200 OK" in health(port)
                    assert time.monotonic() - began < 5
                until(lambda: sum(map(is_open, idle)) <= most)
            finally:
                process.send_signal(signal.SIGTERM)
                _, err = process.communicate(timeout=60)
    finally:
        for one in idle:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert err == ""


def health(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return received(connection)


def is_open(connection):
    """Whether the other side has not closed a connection on which nothing is sent."""
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.mark.slow
def test_heads_and_bodies_that_trickle_are_cut_off(encoder):
    with limited(encoder, seconds=0.5) as server:
        silent, head, body = connect(server), connect(server), connect(server)
        body.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        head.sendall(b"GET /")
        stop = threading.Event()

        def drip(connection):
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        threads = [threading.Thread(target=drip, args=(one,)) for one in (head, body)]
        for thread in threads:
            thread.start()
        assert is_quick(server)
        assert received(silent) == b""
        replies = [received(one) for one in (head, body)]
        stop.set()
        for thread in threads:
            thread.join()
        for one in (silent, head, body):
            one.close()
    for reply in replies:
        assert reply.startswith(b"HTTP/1.1 408")
        assert b'{"error"' in reply


def test_an_answer_that_nobody_takes_is_dropped(encoder):
    with limited(encoder, seconds=0.5, answer=0.5, text=4 << 20) as server:
        texts = json.dumps({"input": ["cat"] * 2048}).encode()
        with connect(server) as slow:
            slow.sendall((HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(texts), texts)) * 20)
            until(lambda: not server.server_state.connections)


@pytest.mark.parametrize("declared", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_oversized_bodies_are_refused_with_a_reason(server, declared):
    body = b"x" * (5 << 20)
    if declared:
        status, _, found = ask(server, "POST", "/v1/embeddings", body)
        assert status == 413
    else:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[: 1 << 20],) * 5)
        reply = raw(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        assert reply.startswith(b"HTTP/1.1 413")
        found = reply.partition(b"\r\n\r\n")[2]
    assert "send fewer texts" in json.loads(found)["error"]["message"]


def test_a_client_that_asks_first_is_refused_before_it_sends(server):
    reply = raw(server, HEAD + b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 413")


def test_a_body_without_a_length_is_read(server):
    body = b'{"input": "cat"}'
    chunks = b"".join(b"1\r\n%c\r\n" % letter for letter in body) + b"0\r\n\r\n"
    reply = raw(server, HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert reply.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no Host
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1e3\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused_and_the_next_is_answered(server, data):
    reply = raw(server, data)
    assert reply.startswith(b"HTTP/1.1 400")
    assert b'{"error"' in reply
    assert is_quick(server)


def test_an_offer_of_another_protocol_is_answered_in_this_one(server):
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    request = HEAD + offer + b"Content-Length: 16\r\n\r\n" + b'{"input": "cat"}'
    with connect(server) as connection:
        connection.sendall(request)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(request + HEAD + b"Connection: close\r\nContent-Length: 16\r\n\r\n" + b'{"input": "cat"}')
        assert received(connection).count(b"HTTP/1.1 200") == 2


@pytest.mark.slow
def test_requests_that_wait_for_answers_are_not_read_without_end(slow, encoder):
    """Requests sent together are answered in turn; of a client that only sends, no more than one piece is read."""
    request = HEAD + b"Content-Length: 16\r\n\r\n" + b'{"input": "cat"}'
    slow.hold.clear()
    with limited(encoder) as server, connect(server) as connection:
        connection.settimeout(1)
        with suppress(TimeoutError):
            connection.sendall(request * 500_000)
        (busy,) = server.server_state.connections
        assert 0 < len(busy.pipeline) * len(request) <= 1 << 18
        slow.hold.set()
        until(lambda: slow.seen > 100)
        assert len(busy.pipeline) * len(request) <= 1 << 18


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), start=st.sampled_from([b"", b"GET ", HEAD, HEAD + b"Content-Length: 9\r\n\r\n"]))
def test_random_bytes_on_the_wire(server, data, start):
    with connect(server) as connection:
        connection.sendall(start + data)
    assert ask(server, "GET", "/v1/models")[0] == 200


@pytest.mark.slow
def test_large_requests_do_not_hold_up_small_ones(encoder, slow):
    with started(create_app(encoder=encoder)) as server:
        large = {"input": ["a text of some length " * 4] * 800}  # two seconds of work
        asked = [threading.Thread(target=ask, args=(server, "POST", "/v1/embeddings", large)) for _ in range(2)]
        for thread in asked:
            thread.start()
        until(lambda: slow.seen)
        for _ in range(3):
            began = time.monotonic()
            assert ask(server, "POST", "/v1/embeddings", {"input": "cat"})[0] == 200
            assert time.monotonic() - began < 1.5
        assert slow.seen < 1600
        for thread in asked:
            thread.join()


@pytest.mark.slow
def test_what_cannot_wait_is_turned_away(encoder, slow):
    with limited(encoder, requests=2, large=1, small=100) as server:
        slow.hold.clear()
        large = {"input": ["cat"] * 50}
        waiting = [
            threading.Thread(target=ask, args=(server, "POST", "/v1/embeddings", body))
            for body in (large, {"input": "cat"})
        ]
        for number, thread in enumerate(waiting, 1):
            thread.start()
            until(lambda number=number: len(server.server_state.tasks) == number)
            time.sleep(0.2)
            assert ask(server, "POST", "/v1/embeddings", large)[0] == 503  # though there is room for a small one
        status, headers, body = ask(server, "POST", "/v1/embeddings", {"input": "dog"})
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "try again later" in json.loads(body)["error"]["message"]
        assert ask(server, "GET", "/health")[0] == 200
        slow.hold.set()
        for thread in waiting:
            thread.join()
        assert is_quick(server)


def test_answers_of_many_vectors_leave_the_threads_to_small_requests(encoder, monkeypatch):
    opened, answer = threading.Event(), embeddings.answer

    def held(encoded, *form):
        assert len(encoded) == 1 or opened.wait(30)
        return answer(encoded, *form)

    monkeypatch.setattr(embeddings, "answer", held)
    with started(create_app(encoder=encoder)) as server, ThreadPoolExecutor(48) as pool:  # anyio has 40 threads
        try:
            large = [pool.submit(ask, server, "POST", "/v1/embeddings", {"input": ["a"] * 65}) for _ in range(48)]
            until(lambda: b"isoglot_texts_total %.1f" % (48 * 65) in ask(server, "GET", "/metrics")[2])
            assert ask(server, "POST", "/v1/embeddings", {"input": "cat"})[0] == 200
            assert not any(one.done() for one in large)
        finally:
            opened.set()
        assert {one.result()[0] for one in large} == {200}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body"), [("/v1/embeddings", {"input": ["a"] * 600}), ("/similarity", {"a": ["a"] * 600, "b": ["b"]})]
)
def test_small_bodies_of_many_texts_are_large_requests(encoder, slow, path, body):
    with limited(encoder, large=1) as server:
        slow.hold.clear()
        found = []
        asking = threading.Thread(target=lambda: found.append(ask(server, "POST", path, body)[0]))
        asking.start()
        until(lambda: b"isoglot_waiting_requests 1.0\n" in ask(server, "GET", "/metrics")[2])
        opening = threading.Timer(20, slow.hold.set)  # if both were accepted, the second would be answered too
        opening.start()
        status, headers, reply = ask(server, "POST", path, body)
        opening.cancel()
        slow.hold.set()
        asking.join()
        assert (status, headers["Retry-After"], found) == (503, "1", [200])
        assert "large requests" in json.loads(reply)["error"]["message"]
        assert ask(server, "POST", path, body)[0] == 200  # the place is free again


@pytest.mark.slow
def test_work_for_clients_that_went_away_is_dropped(encoder, slow):
    with started(create_app(encoder=encoder)) as server:
        body = json.dumps({"input": ["a text of some length " * 4] * 2000}).encode()
        gone = connect(server)
        gone.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        until(lambda: slow.seen)
        gone.close()
        until(lambda: not server.server_state.tasks)
        time.sleep(0.5)
        seen = slow.seen
        time.sleep(0.5)
        assert slow.seen == seen < 2000


def test_a_taken_port_and_an_impossible_one_are_said(server, encoder):
    app = create_app(encoder=encoder)
    for host, port in (("127.0.0.1", 70_000), ("127.0.0.1", server.port), ("192.0.2.1", 0), ("nowhere.invalid", 0)):
        with pytest.raises(SearchError, match="can't listen"):
            Server(app, host, port, Limits())


HEAVY = """
import time
from isoglot.encoders import load
from isoglot.serve import Limits, create_app, embeddings, serve
real = embeddings.encode
def encode(encoder, texts):
    time.sleep(len(texts) * {seconds})
    return real(encoder, texts)
embeddings.encode = encode
limits = Limits({limits})
app = create_app(encoder=load({model!r}), limits=limits)
serve(app, port=0, limits=limits, started=lambda url: print(url, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "accepted", "answered"), [("", 16, 16), ("large=20", 20, 20), ("grace=1", 16, 0)])
def test_large_requests_under_way_are_answered_within_the_grace(encoder, tmp_path, limits, accepted, answered):
    """Twenty at once, twelve seconds of work; sixteen are accepted unless the limit is another one."""
    encoder.save(tmp_path / "m")
    code = HEAVY.format(model=str(tmp_path / "m"), limits=limits, seconds=12 / (accepted * 600))
    with (
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        ThreadPoolExecutor(20) as pool,
    ):
        port = int(process.stdout.readline().decode().rstrip("/\n").rpartition(":")[2])
        body = json.dumps({"input": ["a text of some length " * 8] * 600}).encode()  # some 100 KiB

        def request(method, path, content=None):
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, path, content)
            reply = connection.getresponse()
            return reply.status, reply.read()

        asked = [pool.submit(request, "POST", "/v1/embeddings", body) for _ in range(20)]
        until(lambda: b"isoglot_waiting_requests %.1f\n" % accepted in request("GET", "/metrics")[1])
        until(lambda: sum(one.done() for one in asked) == 20 - accepted)
        process.send_signal(signal.SIGTERM)
        replies = [one.result() for one in asked]
        process.wait(30)
    assert [len(json.loads(found)["data"]) for status, found in replies if status == 200] == [600] * answered
    refused = [json.loads(found)["error"]["message"] for status, found in replies if status == 503]
    assert len(refused) == 20 - answered
    assert sum("shutting down" in words for words in refused) == accepted - answered


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_the_server_without_a_word(tmp_path, encoder, number):
    folder = make_index(tmp_path, encoder)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.stdout.readline().startswith("http://127.0.0.1:")
    server.send_signal(number)
    _, err = server.communicate(timeout=60)
    assert server.returncode == 0
    device, *rest = err.splitlines()
    assert device.startswith("device: ")
    assert rest == ["8 sentences; stop with Ctrl-C", "stopped"]
    with Index.open(folder) as index:
        assert len(index) == 8


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_wait_for_a_request_without_a_word(encoder, tmp_path):
    """The thread of the model computed on when the interpreter ended, which aborts the process in ONNX Runtime."""
    encoder.save(tmp_path / "m")
    code = [sys.executable, "-c", HEAVY.format(model=str(tmp_path / "m"), limits="", seconds=0.02)]
    with (
        subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        socket.socket() as client,
    ):
        client.connect(("127.0.0.1", int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])))
        body = json.dumps({"input": ["a text"] * 2000}).encode()
        client.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert b"shutting down" in received(client)
        _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
