"""The README and the quickstart run as printed: all blocks in order, in an empty folder, in the environment they name.

`pip install .` in the text of a page, or a `pip install ".[EXTRA]"`, says what is there for the blocks that follow;
packages of other extras fail to import. A recipe is saved as `mine.toml`, as the page says.
"""

import html
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isoglot.model import DEFAULT
from test_docs import FENCE, ROOT

PACKAGES = {
    "torch": ("torch", "transformers", "onnx", "peft"),
    "evaluate": ("scipy", "sklearn", "matplotlib"),
    "serve": ("starlette", "uvicorn"),
    "plot": ("plotly",),
    "faiss": ("faiss",),
    "interop": ("sentence_transformers", "mteb"),
}
INSTALLED = re.compile(r'pip install (?:--constraint constraints.txt )?(?:"?\.\[(?P<extras>[a-z,]+)\]"?|\.(?=[\s`]))')
PREPARES = re.compile(r"^(make|pip|source|isoglot demo)\b.*\n", re.MULTILINE)  # what the fixtures do
TEXTS = ROOT / "src" / "isoglot" / "bundled" / "mine"


def environment(folder: Path, extras: set[str]) -> dict[str, str]:
    """`isoglot` and `python` on the path, and the packages of these extras alone."""
    there = extras | ({"torch"} if extras & {"train", "models"} else set())
    there |= {"evaluate"} if "plot" in there else set()
    site = folder / ("site-" + "-".join(sorted(there)))
    for extra in PACKAGES.keys() - there:
        for name in PACKAGES[extra]:
            (site / name).mkdir(parents=True, exist_ok=True)
            (site / name / "__init__.py").write_text(
                f'raise ModuleNotFoundError("No module named {name}", name="{name}")'
            )
    for name, words in (("isoglot", ["-m", "isoglot"]), ("python", [])):
        script = folder / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *words])} "$@"\n')
        script.chmod(0o755)
    own = {name: value for name, value in os.environ.items() if not name.startswith("ISOGLOT_")}
    return own | {
        "PATH": os.pathsep.join([str(folder / "bin"), own["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT / "src")]),
        "ISOGLOT_CACHE": str(folder / "cache"),
        "HTTPS_PROXY": "http://127.0.0.1:9",
    } | ({} if default_is_light() else {"ISOGLOT_MODEL": "isoglot-static"})  # fmt: skip


def default_is_light() -> bool:
    """Whether the default model has a graph, and so needs no torch."""
    return any((ROOT / "src" / "isoglot" / "models" / DEFAULT).rglob("*.onnx"))


def run(page: Path, folder: Path, work: Path) -> None:
    """All blocks of a page; a block of Python follows those before it."""
    text = page.read_text(encoding="utf-8")
    extras: set[str] = set()
    code, end = "", 0
    for block in FENCE.finditer(text):
        for found in INSTALLED.finditer(text, end, block.end()):
            extras = extras | set(found["extras"].split(",")) if found["extras"] else set()
        end = block.end()
        if block["kind"] == "toml":
            (work / "mine.toml").write_text(block["text"], encoding="utf-8")
        elif block["kind"] in ("sh", "python"):
            shell = block["kind"] == "sh"
            code = code if shell else code + block["text"]
            words = ["bash", "-euo", "pipefail", "-c", PREPARES.sub("", block["text"])]
            done = subprocess.run(
                words if shell else [sys.executable, "-c", code], cwd=work, env=environment(folder, extras),
                capture_output=True, text=True, check=False, timeout=900,
            )  # fmt: skip
            line = text.count("\n", 0, block.start()) + 1
            assert done.returncode == 0, f"{page.name}:{line} with {sorted(extras)}:\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What `make demo` writes, by the commands of the Makefile."""
    folder = tmp_path_factory.mktemp("demo")
    (target,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    printed = []
    for line in target.replace("$(BIN)/", "").splitlines():
        shown = line.strip().removeprefix('@echo "next: ')
        printed += [shown.rstrip('"')] if shown != line.strip() else []
        command = printed[-1] if shown != line.strip() else line.strip()
        subprocess.run(["bash", "-ec", command], cwd=folder, env=environment(folder, {"train", "evaluate"}), check=True)
    assert printed
    return folder / "build"


@pytest.mark.slow
def test_the_readme_runs(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    run(ROOT / "README.md", tmp_path, work)
    pairs, right = count(work / "pairs.tmx")
    assert 590 <= pairs <= 615
    assert right >= (565 if default_is_light() else 535)


@pytest.mark.slow
def test_the_quickstart_runs(tmp_path, demo):
    work = tmp_path / "work"
    shutil.copytree(demo, work / "build")
    run(ROOT / "docs" / "quickstart.md", tmp_path, work)


def count(memory: Path) -> tuple[int, int]:
    """(pairs of the memory, those that are right)."""
    german, english = (
        lzma.decompress((TEXTS / f"deu-eng.{code}.xz").read_bytes()).decode().split("\n") for code in ("deu", "eng")
    )
    rows = (TEXTS / "deu-eng.gold.tsv").read_text().splitlines()[1:]
    gold = {(german[int(a) - 1], english[int(b) - 1]) for a, b in (row.split("\t") for row in rows)}
    found = [html.unescape(text) for text in re.findall("<seg>(.*?)</seg>", memory.read_text(encoding="utf-8"))]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    return len(pairs), sum(pair in gold for pair in pairs)
