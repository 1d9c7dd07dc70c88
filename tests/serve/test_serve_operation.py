"""What an operator needs: metrics, ids and a log without texts, a token, limits in time, and an end without losses."""

import json
import logging
import threading
import time

import numpy as np
import pytest
import serving
from serving import ask, connect, limited, received, started, until
from typer.testing import CliRunner

from isoglot.cli.main import app as verbs
from isoglot.index import Index
from isoglot.model import encode
from isoglot.serve import create_app, embeddings

SECRET = "a text that nobody may log"
encoder, slow = serving.encoder, serving.slow


def metrics_of(server, **headers):
    text = ask(server, "GET", "/metrics", **headers)[2].decode()
    rows = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in rows}


def test_requests_are_counted_by_route_and_status(encoder):
    with started(create_app(encoder=encoder)) as server:
        for _ in range(3):
            ask(server, "POST", "/v1/embeddings", {"input": ["cat", "dog"]})
        ask(server, "POST", "/v1/embeddings", {"input": []})
        ask(server, "GET", f"/{SECRET.replace(' ', '-')}")
        ask(server, "BREW", "/health")
        found = metrics_of(server)
        headers = ask(server, "GET", "/metrics")[1]
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert found['isoglot_requests_total{method="POST",route="/v1/embeddings",status="200"}'] == 3
    assert found['isoglot_requests_total{method="POST",route="/v1/embeddings",status="400"}'] == 1
    assert found['isoglot_requests_total{method="GET",route="-",status="404"}'] == 1
    assert found["isoglot_texts_total"] == 6
    assert found["isoglot_waiting_requests"] == 0
    assert found['isoglot_request_seconds_count{route="/v1/embeddings"}'] == 4
    assert not any(SECRET.split()[0] + "-" in name or "BREW" in name for name in found)


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2:3_x", True), ("x" * 65, False), ("two words", False), ("é", False), ("", False)]
)
def test_every_answer_has_an_id_and_a_line_of_the_log(encoder, caplog, given, kept):
    caplog.set_level(logging.INFO, "isoglot.serve")
    with started(create_app(encoder=encoder)) as server:
        head = {"X-Request-ID": given.encode()} if given else {}
        headers = ask(server, "POST", "/v1/embeddings", {"input": SECRET}, **head)[1]
        ids = {headers["X-Request-ID"], ask(server, "GET", "/nowhere")[1]["X-Request-ID"]}
    assert (given in ids) == kept
    assert len(ids) == 2
    lines = [one.getMessage() for one in caplog.records if one.name == "isoglot.serve"]
    assert len(lines) == 2
    assert "POST /v1/embeddings 200" in lines[0]
    assert lines[0].endswith(headers["X-Request-ID"])
    assert "GET - 404" in lines[1]
    assert SECRET not in caplog.text


def test_with_a_token_only_the_page_and_the_health_are_open(encoder):
    index = Index.build(encoder, ["cat"])
    with started(create_app(index, encoder, token="s3cret", allow_origins=["https://example.org"])) as server:
        for path in ("/", "/page.js", "/page.css", "/health", "/ready"):
            assert ask(server, "GET", path)[0] == 200
        for words in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
            for path in ("/index", "/metrics", "/v1/models", "/nowhere"):
                status, headers, body = ask(server, "GET", path, **words)
                assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
                assert "token" in json.loads(body)["error"]["message"]
            assert ask(server, "POST", "/search", {"query": "cat"}, **words)[0] == 401
        given = {"Authorization": "Bearer s3cret"}
        assert ask(server, "POST", "/search", {"query": "cat"}, **given)[0] == 200
        assert metrics_of(server, **given)['isoglot_requests_total{method="POST",route="/search",status="200"}'] == 1
        preflight = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
        assert ask(server, "OPTIONS", "/search", **preflight)[0] == 200
    for token in ("", " "):
        with pytest.raises(ValueError, match="blank"):
            create_app(encoder=encoder, token=token)


def test_a_token_may_have_any_letters(encoder):
    """Clients send them as UTF-8, and a header is read as Latin-1."""
    with started(create_app(encoder=encoder, token="schlüssel")) as server:
        given = {"Authorization": "Bearer schlüssel".encode().decode("latin-1")}
        assert ask(server, "GET", "/v1/models", **given)[0] == 200


def test_similarities_are_cosines(encoder):
    a, b = ["the cat", "a dog", ""], ["a cat", "the mat"]
    x, y = (encode(encoder, texts, normalize_embeddings=True) for texts in (a, b))
    with started(create_app(encoder=encoder)) as server:
        found = json.loads(ask(server, "POST", "/similarity", {"a": a, "b": b})[2])["similarity"]
        np.testing.assert_allclose(found, x @ y.T, atol=1e-5)
        found = json.loads(ask(server, "POST", "/similarity", {"a": a})[2])["similarity"]
        np.testing.assert_allclose(found, x @ x.T, atol=1e-5)
        for wrong in ({}, {"a": []}, {"a": [1]}, {"a": ["x"], "b": []}, {"a": ["x"] * 400}):
            assert ask(server, "POST", "/similarity", wrong)[0] == 400


def test_a_request_that_takes_too_long_is_dropped(encoder, slow):
    slow.hold.clear()
    with limited(encoder, work=0.2) as server:
        status, _, body = ask(server, "POST", "/v1/embeddings", {"input": "cat"})
        assert status == 504
        assert "0.2 seconds" in json.loads(body)["error"]["message"]
        slow.hold.set()
        time.sleep(0.1)
        assert ask(server, "POST", "/v1/embeddings", {"input": "cat"})[0] == 200


def test_a_server_whose_worker_has_ended_is_not_ready(encoder, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    ended, threads = threading.Event(), []

    def end(*_arguments):
        threads.append(threading.current_thread())
        ended.set()
        raise SystemExit

    monkeypatch.setattr("isoglot.serve.work.Worker._adapt", end)
    with started(create_app(encoder=encoder)) as server:
        assert ask(server, "GET", "/ready")[0] == 200
        assert ask(server, "POST", "/v1/embeddings", {"input": "cat"})[0] == 200
        assert ended.wait(30)
        threads[0].join(30)
        assert ask(server, "GET", "/ready")[0] == 503
        assert ask(server, "GET", "/health")[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["body", "read", "answer"])
def test_a_request_that_is_cut_off_when_the_server_stops_is_answered_without_a_traceback(
    encoder, monkeypatch, caplog, stage
):
    entered, opened = threading.Event(), threading.Event()

    def wait(*_arguments):
        entered.set()
        assert opened.wait(30)

    body = json.dumps({"input": ["a long text"] * 200}).encode()
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    # The body is large, and so is the answer.
    with limited(encoder, grace=1, small=100) as server, connect(server) as client:
        try:
            if stage == "body":
                client.sendall(head + body[:200])
                until(lambda: server.server_state.tasks)
            else:
                monkeypatch.setattr(embeddings, stage, wait)
                client.sendall(head + body)
                assert entered.wait(30)
            server.should_exit = True
            reply = received(client)
        finally:
            opened.set()
    assert reply.startswith(b"HTTP/1.1 503")
    assert b"shutting down" in reply
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_a_request_under_way_is_answered_when_the_server_stops(encoder, slow):
    found = []
    slow.hold.clear()
    with started(create_app(encoder=encoder), grace=30) as server:
        asking = threading.Thread(target=lambda: found.append(ask(server, "POST", "/v1/embeddings", {"input": "cat"})))
        asking.start()
        assert slow.has_work.wait(30)
        server.should_exit = True
        time.sleep(0.3)
        slow.hold.set()
        asking.join(30)
    assert found[0][0] == 200


def test_settings_come_from_the_environment(monkeypatch, encoder, tmp_path):
    given = {}
    monkeypatch.setattr("isoglot.serve.serve", lambda app, **options: given.update(options, app=app))
    for name, value in {"HOST": "0.0.0.0", "PORT": "9000", "TIMEOUT": "7", "GRACE": "9", "TOKEN": "x"}.items():
        monkeypatch.setenv(f"ISOGLOT_SERVE_{name}", value)
    monkeypatch.setenv("ISOGLOT_SERVE_HOSTS", "a.example b.example")
    encoder.save(tmp_path / "model")
    done = CliRunner().invoke(verbs, ["serve", str(tmp_path / "model")], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert (given["host"], given["port"]) == ("0.0.0.0", 9000)
    assert (given["limits"].work, given["limits"].grace) == (7, 9)
    options = {name: value for one in given["app"].user_middleware for name, value in one.kwargs.items()}
    assert options["hosts"] == ["0.0.0.0", "a.example", "b.example"]
    assert options["token"] == "x"
