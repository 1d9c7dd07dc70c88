"""Requests and answers: search, OpenAI's interface, who may ask, and that nothing a client sends is answered by 500."""

import base64
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import ask, raw, started

from conftest import build_tokenizer
from index_folder import LINES, make_index
from isoglot import encode
from isoglot.encoders import StaticEncoder, load
from isoglot.index import Index, SearchError, Sentence
from isoglot.serve import create_app

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("cat") | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = ["query", "k", "languages", "input", "model", "dimensions", "encoding_format"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_index(
        tmp_path_factory.mktemp("toy", numbered=False), StaticEncoder.create(build_tokenizer(), 8, seed=1)
    )


@pytest.fixture(scope="module")
def encoder(folder):
    return load(folder.parent / "model")


@pytest.fixture(scope="module")
def index(folder):
    with Index.open(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(index, encoder):
    with started(create_app(index, encoder)) as made:
        yield made


def test_search_finds_and_names_languages(server):
    status, headers, body = ask(server, "POST", "/search", {"query": LINES["deu"][0], "k": 3})
    found = json.loads(body)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert len(found["hits"]) == 3
    first = found["hits"][0]
    assert (first["text"], first["language"], first["tag"]) == (LINES["deu"][0], "deu", "de")
    assert first["score"] == pytest.approx(1)
    body = ask(server, "POST", "/search", {"query": "cat", "languages": ["ar"], "k": 200})[2]
    assert {hit["text"] for hit in json.loads(body)["hits"]} == set(LINES["ara"])
    body = ask(server, "POST", "/search", {"query": "cat", "exclude": ["ar", "en"], "k": 200})[2]
    assert {hit["language"] for hit in json.loads(body)["hits"]} == {"deu", "tha"}


def test_a_hit_has_its_translation(encoder):
    texts = ["The cat", "A dog"]
    index = Index.build(encoder, texts, languages="en", translations=["고양이", None], translation_languages="ko")
    with started(create_app(index)) as server:
        hits = json.loads(ask(server, "POST", "/search", {"query": "The cat"})[2])["hits"]
    assert [hit["translation"] for hit in hits] == [{"text": "고양이", "language": "kor", "tag": "ko"}, None]


def test_entries_that_are_corrected_and_deleted_elsewhere(tmp_path, encoder):
    sides = [Sentence("u", "The cat", "en", "Kaze", "de"), Sentence("u", "Kaze", "de", "The cat", "en")]
    Index.build(encoder, [*sides, Sentence("v", "A dog", "en")], folder=tmp_path / "i").close()
    with Index.open(tmp_path / "i", encoder) as served, started(create_app(served)) as server:

        def found():
            hits = json.loads(ask(server, "POST", "/search", {"query": "The cat"})[2])["hits"]
            size = json.loads(ask(server, "GET", "/index")[2])["sentences"]
            return size, [(hit["id"], hit["count"], (hit["translation"] or {}).get("text")) for hit in hits], hits[0]

        size, hits, best = found()
        assert (size, hits) == (3, [("u", 1, "Kaze"), ("v", 1, None)])
        assert (best["text"], best["percent"]) == ("The cat", 100)
        with Index.open(tmp_path / "i", encoder) as other:
            other.update([Sentence("u", "The cat", "en", "Katze", "de"), Sentence("u", "Katze", "de", "The cat", "en")])
            assert found()[:2] == (3, [("u", 1, "Katze"), ("v", 1, None)])
            other.delete("u")
            assert found()[:2] == (1, [("v", 1, None)])


def test_the_index_tells_of_itself(server):
    found = json.loads(ask(server, "GET", "/index")[2])
    assert (found["model"], found["sentences"], found["kind"]) == ("toy", 8, "flat")
    assert {one["code"]: one["sentences"] for one in found["languages"]} == {c: len(x) for c, x in LINES.items()}
    assert json.loads(ask(server, "GET", "/health")[2]) == {"status": "ok"}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/search", b"", 400, "not JSON"),
        ("/search", b"[" * 40_000, 400, "not JSON"),
        ("/search", b"[" * 100_000, 400, "brackets"),
        ("/v1/embeddings", b'{"input": [' + b"[]," * 100_000 + b"[]]}", 400, "brackets"),
        ("/search", b'{"query": "a", "k": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        ("/search", b"\xff\xfe", 400, "not JSON"),
        ("/search", [], 400, "not an object"),
        ("/search", {}, 400, "'query'"),
        ("/search", {"query": " "}, 400, "'query'"),
        ("/search", {"query": "x" * 10_001}, 400, "'query'"),
        ("/search", {"query": "\ud800"}, 400, "surrogate"),
        ("/search", {"query": "a", "k": 0}, 400, "'k'"),
        ("/search", {"query": "a", "k": True}, 400, "'k'"),
        ("/search", {"query": "a", "k": 10**30}, 400, "'k'"),
        ("/search", {"query": "a", "languages": "deu"}, 400, "'languages'"),
        *(
            ("/search", {"query": "a", name: value}, 400, f"'{name}' must be a list")
            for name in ("languages", "exclude")
            for value in ("", False, {})
        ),
        ("/search", {"query": "a", "languages": ["qqqq"]}, 400, "unknown language"),
        ("/similarity", {"a": "x", "B": "y"}, 400, "no 'B'; its keys are a, b"),
        ("/search", {"query": "a", "language": ["deu"]}, 400, "no 'language'; its keys are query, k, languages"),
        ("/v1/embeddings", {}, 400, "'input'"),
        ("/v1/embeddings", {"input": []}, 400, "'input'"),
        ("/v1/embeddings", {"input": ["a"] * 2049}, 400, "'input'"),
        ("/v1/embeddings", {"input": ["a", "x" * 50_001]}, 400, "'input'"),
        ("/v1/embeddings", {"input": [[1, 2]]}, 400, "token numbers"),
        ("/v1/embeddings", {"input": [1, 2]}, 400, "token numbers"),
        ("/v1/embeddings", {"input": "\udfff"}, 400, "surrogate"),
        ("/v1/embeddings", {"input": "a", "model": "gpt"}, 404, "this server has 'toy'"),
        ("/v1/embeddings", {"input": "a", "dimensions": 9}, 400, "'dimensions'"),
        ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, 400, "'encoding_format'"),
        ("/v1/embeddings", {"input": "a", "encoding_format": []}, 400, "'encoding_format'"),
        ("/index", {}, 405, "method"),
        ("/nothing", {}, 404, "Not found."),
    ],
)
def test_what_cannot_be_answered_is_explained(server, path, body, status, message):
    found = ask(server, "POST", path, body)
    error = json.loads(found[2])["error"]
    assert (found[0], error["type"]) == (status, "invalid_request_error")
    assert message in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    if status == 405:
        assert "GET" in found[1]["Allow"]


@pytest.mark.parametrize("path", ["/index/", "/search/", "/v1/embeddings/", "/health/"])
def test_a_slash_too_many_is_not_redirected(server, path):
    status, headers, body = ask(server, "GET", path)
    assert (status, headers["Location"]) == (404, None)
    assert json.loads(body)["error"]["message"] == "Not found."


def test_null_is_the_default(server):
    given = {"input": "cat", "model": None, "encoding_format": None, "dimensions": None}
    status, _, body = ask(server, "POST", "/v1/embeddings", given)
    assert (status, body) == (200, ask(server, "POST", "/v1/embeddings", {"input": "cat"})[2])


def test_texts_are_tokenised_once(server, encoder, monkeypatch):
    seen, tokenize = [], type(encoder).tokenize

    def count(self, texts, **options):
        seen.extend(texts)
        return tokenize(self, texts, **options)

    monkeypatch.setattr(type(encoder), "tokenize", count)
    body = ask(server, "POST", "/v1/embeddings", {"input": ["a cat", "dog", "a cat"]})[2]
    ask(server, "POST", "/similarity", {"a": ["the mat"], "b": ["the dog"]})
    monkeypatch.undo()
    assert seen == ["a cat", "dog", "the mat", "the dog"]
    lengths = encoder.tokenize(["a cat", "dog", "a cat"]).lengths
    assert json.loads(body)["usage"]["prompt_tokens"] == int(lengths.sum())
    vectors = [one["embedding"] for one in json.loads(body)["data"]]
    np.testing.assert_allclose(
        vectors, encode(encoder, ["a cat", "dog", "a cat"], normalize_embeddings=True), atol=1e-6
    )


@pytest.mark.parametrize(
    "path",
    [
        *("/../index.sqlite", "/index.sqlite", "/..%2f..%2fetc/passwd", "//etc/passwd", "/page.css/../../answers.py"),
        *("/%2e%2e/x", "/vectors.npy", "/\0", "/v1/models/../x", "file:///etc/passwd", "http://example.org/"),
        *("/page.html", "/application.py", "/page.css%00", "/./page.css", "/%ff", "/v1/models/%ff"),
    ],
)
def test_no_file_can_be_read(server, path):
    reply = raw(server, b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert reply.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
    assert b'{"error"' in reply
    assert b"root:" not in reply


OBJECTS = st.dictionaries(st.sampled_from(KEYS), JSON)
BODIES = st.binary() | (JSON | OBJECTS).map(lambda found: json.dumps(found).encode())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, path=st.sampled_from(["/search", "/v1/embeddings"]))
def test_any_body_gets_an_answer_that_is_not_a_fault(server, connection, body, path):
    connection.request("POST", path, body)
    reply = connection.getresponse()
    assert reply.status in (200, 400, 404)
    json.loads(reply.read())


@pytest.fixture
def connection(server):
    made = HTTPConnection("127.0.0.1", server.port, timeout=30)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost"}, 200),
        ({"Host": "127.0.0.1:80"}, 200),
        ({"Host": "[::1]:9"}, 200),
        ({"Host": "192.168.1.5"}, 200),  # nobody can point an address anywhere
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:8765", "Origin": "http://localhost:9999"}, 403),
        ({"Host": "localhost:8765", "Origin": "http://localhost:8765"}, 200),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),  # DNS rebinding
    ],
)
def test_pages_of_other_sites_may_not_ask(server, headers, status):
    for method, path, body in (("POST", "/search", {"query": "cat"}), ("GET", "/index", None)):
        found = ask(server, method, path, body, **headers)
        assert found[0] == status
        assert ("error" in json.loads(found[2])) == (status != 200)
        assert "Access-Control-Allow-Origin" not in found[1]


def test_hosts_and_origins_can_be_allowed(index, encoder):
    app = create_app(index, encoder, allow_hosts=["Search.Example.org"], allow_origins=["https://App.example/"])
    with started(app) as server:
        app_page = {"Origin": "https://app.example", "Host": "search.example.org:443"}
        status, headers, _ = ask(server, "POST", "/search", {"query": "cat"}, **app_page)
        assert (status, headers["Access-Control-Allow-Origin"]) == (200, "https://app.example")
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-other"}
        status, headers, _ = ask(server, "OPTIONS", "/search", None, **app_page, **preflight)
        assert (status, headers["Access-Control-Allow-Origin"]) == (200, "https://app.example")
        assert ask(server, "GET", "/index", Origin="https://other.example")[0] == 403
    with started(create_app(index, encoder, allow_hosts=["*"], allow_origins=["*"])) as server:
        assert ask(server, "GET", "/index", Host="any.example", Origin="null")[0] == 200
    for wrong in ("example.org", "https://", "https://example.org/path", ""):
        with pytest.raises(ValueError, match="not an origin"):
            create_app(index, encoder, allow_origins=[wrong])
    with pytest.raises(ValueError, match=r"https://example\.org.* is not a host"):
        create_app(index, encoder, allow_hosts=["https://example.org"])


def test_the_real_client_is_content(server, encoder):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{server.url}v1", api_key="none", max_retries=0)
    expected = encode(encoder, ["cat", "dog"], normalize_embeddings=True)
    for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        made = client.embeddings.create(model="toy", input=["cat", "dog"], **options)
        values = [one.embedding for one in made.data]
        if options.get("encoding_format") == "base64":
            values = [np.frombuffer(base64.b64decode(value), "<f4") for value in values]
        np.testing.assert_allclose(values, expected, atol=1e-6)
        assert made.usage.prompt_tokens > 0
    short = client.embeddings.create(model="toy", input="cat", dimensions=3).data[0].embedding
    cut = expected[0][:3] / np.linalg.norm(expected[0][:3])
    np.testing.assert_allclose(short, cut, atol=1e-6)
    assert [one.id for one in client.models.list()] == ["toy"]
    assert client.models.retrieve("toy").owned_by == "isoglot"
    with pytest.raises(openai.NotFoundError, match="this server has 'toy'") as error:
        client.embeddings.create(model="text-embedding-3-small", input="cat")
    assert error.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="'input'"):
        client.embeddings.create(model="toy", input=[])


def test_two_hundred_clients_at_once_get_their_own_vectors(server, encoder):
    texts = [f"client {number} asks for cat number {number % 7}" for number in range(200)]
    expected = encode(encoder, texts, normalize_embeddings=True)
    barrier = threading.Barrier(200)

    def client(number):
        barrier.wait()
        status, _, body = ask(server, "POST", "/v1/embeddings", {"input": texts[number]})
        return status, json.loads(body)["data"][0]["embedding"]

    with ThreadPoolExecutor(200) as pool:
        found = list(pool.map(client, range(200)))
    assert {status for status, _ in found} == {200}
    np.testing.assert_allclose([vector for _, vector in found], expected, atol=1e-6)


def test_an_encoder_alone_gives_embeddings_and_another_application_can_mount_it(index, encoder):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    alone = create_app(encoder=encoder, name="toy")
    app = Starlette(routes=[Mount("/vectors", alone), Mount("/news", create_app(index))])
    with started(app) as server:
        body = {"input": "cat", "model": "toy"}
        assert ask(server, "POST", "/vectors/v1/embeddings", body)[0] == 200
        assert ask(server, "POST", "/vectors/search", {"query": "cat"})[0] == 404
        page = ask(server, "GET", "/news/")[2].decode()
        assert 'src="page.js"' in page  # relative: found below the mount too
        assert ask(server, "GET", "/news/page.js")[0] == 200
        assert ask(server, "POST", "/news/search", {"query": "cat"})[0] == 200


def test_an_application_needs_the_model_of_its_index(index, toy_tokenizer):
    with pytest.raises(ValueError, match="index, an encoder"):
        create_app()
    with pytest.raises(SearchError, match="is not the model of this index"):
        create_app(index, StaticEncoder.create(toy_tokenizer, 8, seed=9))
    with pytest.raises(ValueError, match="effort is 0"):
        create_app(index, effort=0)


def test_a_fault_inside_is_an_answer_too(index, encoder, monkeypatch, caplog):
    def broken(*_request, **_options):
        raise RuntimeError("inside")

    with started(create_app(index, encoder)) as server:
        monkeypatch.setattr(index, "search", broken)
        status, headers, body = ask(server, "POST", "/search", {"query": "cat"}, **{"X-Request-ID": "mine"})
        assert (status, headers["X-Request-ID"]) == (500, "mine")
        assert json.loads(body)["error"]["type"] == "server_error"
        assert b"inside" not in body
    assert "RuntimeError: inside" in caplog.text


@pytest.mark.slow
def test_a_missing_extra_names_the_command_to_type():
    code = "import sys; sys.modules['uvicorn'] = None\nimport isoglot.serve"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        'MissingExtraError: uvicorn is not installed, and this needs it: pip install "isoglot[serve]"'
        in done.stderr.splitlines()[-1]
    )
