"""The Dockerfile: its packages, and its health check run against a server."""

import json
import os
import re
import subprocess
import sys
import threading
from importlib.metadata import metadata
from pathlib import Path

import serving
from serving import ask, held, limited

encoder = serving.encoder
ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_image_has_the_packages_of_every_kind_of_index_at_known_versions():
    (extras,) = re.findall(r'install --constraint /src/constraints\.txt "/src\[([a-z,]+)\]"', DOCKERFILE)
    assert set(extras.split(",")) == {"serve", "models", "faiss"}
    assert set(extras.split(",")) <= set(metadata("isoglot").get_all("Provides-Extra"))


def test_what_is_copied_is_not_ignored():
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert {f"!{name}" for name in line.split()} <= set(kept)


def test_a_full_server_is_healthy_and_not_ready(encoder, monkeypatch):
    """Healthy to the container, which would restart it."""
    with held(monkeypatch) as (goes, has_work), limited(encoder, requests=1) as server:
        asking = threading.Thread(target=ask, args=(server, "POST", "/v1/embeddings", {"input": "cat"}))
        asking.start()
        assert has_work.wait(30)
        assert ask(server, "GET", "/ready")[0] == 503
        assert check(server.port) == 0
        goes.set()
        asking.join()
        assert ask(server, "GET", "/ready")[0] == 200
    assert check(server.port) != 0  # stopped


def check(port):
    (command,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    _, *arguments = json.loads(command)
    variables = {**os.environ, "ISOGLOT_SERVE_PORT": str(port)}
    return subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, check=False).returncode
