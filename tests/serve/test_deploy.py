"""deploy/ and the Dockerfile: valid files, variables that the server reads, paths that it has, more time to stop than
it takes, more memory than it needs, and a health check that a full server passes.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import serving
from serving import ask, limited

from isoglot.serve import Limits, create_app

encoder, slow = serving.encoder, serving.slow
ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy").iterdir())
yaml = pytest.importorskip("yaml")
COMPOSE, SERVICE = ((ROOT / "deploy" / name).read_text("utf-8") for name in ("compose.yaml", "isoglot.service"))
DEPLOYMENT, BALANCER = yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8"))
(CONTAINER,) = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
(COMPOSED,) = yaml.safe_load(COMPOSE)["services"].values()
IMAGE = (ROOT / "Dockerfile").read_text("utf-8")


def test_compose_follows_the_specification():
    specification = pytest.importorskip("compose_spec").PyCompose
    specification.from_yaml(COMPOSE).validate_volumes()
    with pytest.raises(ValueError, match="mem_limits"):
        specification.from_yaml(COMPOSE.replace("mem_limit", "mem_limits"))


@pytest.mark.parametrize("manifest", [DEPLOYMENT, BALANCER], ids=lambda manifest: manifest["kind"])
def test_manifests_follow_the_schema_of_kubernetes(manifest):
    validate = pytest.importorskip("kubernetes_validate")
    validate.validate(manifest, validate.latest_version(), strict=True)
    with pytest.raises(validate.ValidationError):
        validate.validate({**manifest, "specs": 1}, validate.latest_version(), strict=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / "isoglot.service"
    unit.write_text(SERVICE.replace("/opt/isoglot/bin/isoglot", shutil.which("true")), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "isoglot.service" in line]) == (0, [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_variables_are_documented(path):
    documented = set(re.findall(r"ISOGLOT_[A-Z_]+", (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")))
    variables = set(re.findall(r"ISOGLOT_[A-Z_]+", path.read_text(encoding="utf-8")))
    assert variables
    assert variables <= documented


def test_probes_ask_for_paths_of_the_server(encoder):
    paths = {route.path for route in create_app(encoder=encoder).routes}
    probes = [CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert {probe["path"] for probe in probes} == {"/health", "/ready"} <= paths
    assert {probe["port"] for probe in probes} == {port["name"] for port in CONTAINER["ports"]}


def test_requests_under_way_are_answered_before_the_kill():
    seconds = [
        DEPLOYMENT["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
        int(COMPOSED["stop_grace_period"].removesuffix("s")),
        int(re.search(r"^TimeoutStopSec=(\d+)$", SERVICE, re.MULTILINE)[1]),
    ]
    assert min(seconds) > Limits().grace + 10  # the start of Python and the end of its threads


def test_the_service_of_kubernetes_leads_to_the_deployment():
    assert BALANCER["spec"]["selector"] == DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"] == BALANCER["spec"]["selector"]


MEBIBYTES = {"1g": 1024, "1Gi": 1024, "1G": 1024}
# Of each file: variables beside those of the image, what clients call the server, and the limit of its memory.
STARTED = {
    "compose.yaml": (COMPOSED["environment"], "localhost:8765", COMPOSED["mem_limit"]),
    "isoglot.service": (
        dict(word.split("=") for word in re.search("^Environment=(.*)$", SERVICE, re.MULTILINE)[1].split()),
        "127.0.0.1:8765",
        re.search("^MemoryMax=(.*)$", SERVICE, re.MULTILINE)[1],
    ),
    "kubernetes.yaml": (
        {row["name"]: row.get("value", "") for row in CONTAINER["env"]},
        "10.1.2.3:8765",
        CONTAINER["resources"]["limits"]["memory"],
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", STARTED)
def test_what_a_file_starts_answers_its_probes_within_its_memory(name, tmp_path):
    variables, host, memory = STARTED[name]
    image = re.search(r"^ENV PATH=\S+ (.*)$", IMAGE, re.MULTILINE)[1]
    assert re.findall(r'^(?:ENTRYPOINT|CMD) \["(\w+)"\]$', IMAGE, re.MULTILINE) == ["isoglot", "serve"]
    assert re.search("^ExecStart=/opt/isoglot/bin/(.*)$", SERVICE, re.MULTILINE)[1] == "isoglot serve"
    environ = {word: os.environ[word] for word in ("PATH", "PYTHONPATH") if word in os.environ}
    environ |= dict(word.split("=") for word in shlex.split(image)) | variables
    environ |= {"ISOGLOT_CACHE": str(tmp_path), "ISOGLOT_SERVE_PORT": "0", "ISOGLOT_SERVE_TOKEN": "s3cret"}
    process = subprocess.Popen(
        [sys.executable, "-m", "isoglot", "serve"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        server = SimpleNamespace(port=int(re.search(rb":(\d+)/", process.stdout.readline())[1]))
        bearer = {"Host": host, "Authorization": "Bearer s3cret"}
        assert [ask(server, "GET", path, Host=host)[0] for path in ("/health", "/ready", "/metrics")] == [200, 200, 401]
        assert ask(server, "GET", "/metrics", **bearer)[0] == 200
        texts = {"input": [f"Sentence {number} about the weather in the mountains." for number in range(40)]}
        with ThreadPoolExecutor(8) as pool:
            replies = pool.map(lambda _: ask(server, "POST", "/v1/embeddings", texts, **bearer), range(8))
            assert {status for status, *_ in replies} == {200}
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024 < MEBIBYTES[memory] / 2
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
        assert time.monotonic() - began < 20
    finally:
        process.kill()
        process.wait()


def test_the_image_has_the_packages_of_every_kind_of_index_at_known_versions():
    (extras,) = re.findall(r'install --constraint /src/constraints\.txt "/src\[([a-z,]+)\]"', IMAGE)
    assert set(extras.split(",")) == {"serve", "models", "faiss"}
    assert set(extras.split(",")) <= set(metadata("isoglot").get_all("Provides-Extra"))


def test_what_is_copied_is_not_ignored():
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", IMAGE, re.MULTILINE):
        assert {f"!{name}" for name in line.split()} <= set(kept)


def test_a_full_server_is_healthy_and_not_ready(encoder, slow):
    """Healthy to the container, which would restart it."""
    slow.hold.clear()
    with limited(encoder, requests=1) as server:
        asking = threading.Thread(target=ask, args=(server, "POST", "/v1/embeddings", {"input": "cat"}))
        asking.start()
        assert slow.has_work.wait(30)
        assert ask(server, "GET", "/ready")[0] == 503
        assert check(server.port) == 0
        slow.hold.set()
        asking.join()
        assert ask(server, "GET", "/ready")[0] == 200
    assert check(server.port) != 0  # stopped


def check(port):
    (command,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", IMAGE, re.MULTILINE)
    _, *arguments = json.loads(command)
    variables = {**os.environ, "ISOGLOT_SERVE_PORT": str(port)}
    return subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, check=False).returncode
