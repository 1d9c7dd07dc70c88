"""deploy/: variables that the server reads, paths that it has, and more time to stop than it takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import build_tokenizer
from isoglot.encoders import StaticEncoder
from isoglot.serve import Limits, create_app

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy").iterdir())
yaml = pytest.importorskip("yaml")


def read_manifests(name):
    return list(yaml.safe_load_all((ROOT / "deploy" / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_variables_are_documented(path):
    documented = set(re.findall(r"ISOGLOT_[A-Z_]+", (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")))
    variables = set(re.findall(r"ISOGLOT_[A-Z_]+", path.read_text(encoding="utf-8")))
    assert variables
    assert variables <= documented


def test_probes_ask_for_paths_of_the_server():
    (container,) = read_manifests("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"]
    app = create_app(encoder=StaticEncoder.create(build_tokenizer(), 8, seed=1))
    paths = {route.path for route in app.routes}
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert {probe["path"] for probe in probes} == {"/health", "/ready"} <= paths
    assert {probe["port"] for probe in probes} == {port["name"] for port in container["ports"]}


def test_requests_under_way_are_answered_before_the_kill():
    seconds = [
        read_manifests("kubernetes.yaml")[0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
        int(read_manifests("compose.yaml")[0]["services"]["isoglot"]["stop_grace_period"].removesuffix("s")),
        int(re.search(r"^TimeoutStopSec=(\d+)$", (ROOT / "deploy" / "isoglot.service").read_text(), re.MULTILINE)[1]),
    ]
    assert min(seconds) > Limits().grace + 10  # the start of Python and the end of its threads


def test_the_service_of_kubernetes_leads_to_the_deployment():
    deployment, service = read_manifests("kubernetes.yaml")
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
