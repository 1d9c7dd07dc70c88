"""The wheel has every file of the package, is small enough, and answers without the source and a network."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ASK = """
import pathlib, sys, isoglot
assert pathlib.Path(isoglot.__file__).is_relative_to(sys.argv[1]), isoglot.__file__
vectors = isoglot.load().encode(["Guten Morgen", "Good morning", "The bill was rejected."])
assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_has_every_file_and_is_small(wheel):
    files = {path.relative_to(ROOT / "src") for path in (ROOT / "src" / "isoglot").rglob("*") if path.is_file()}
    ours = {path.as_posix() for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        there = set(archive.namelist())
    assert ours <= there
    assert {Path(name).parts[0] for name in there - ours} == {wheel.name.split("-py3")[0] + ".dist-info"}
    assert wheel.stat().st_size < 90e6


@pytest.mark.slow
def test_the_installed_wheel_answers_offline(wheel, tmp_path):
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--target", site, wheel], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ISOGLOT_")}
    environment |= {
        "PYTHONPATH": str(site),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "ISOGLOT_CACHE": str(tmp_path / "cache"),
    }
    subprocess.run([sys.executable, "-c", ASK, site], cwd=tmp_path, env=environment, check=True)
    command = [sys.executable, "-m", "isoglot", "models", "list"]
    listed = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
    assert "isoglot-small" in listed
