"""The architecture, enforced: directions of import, exports, types, format, and a quick help."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import isoglot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "isoglot"
MODULES = sorted(SOURCE.rglob("*.py"))
# A module imports from its own layer and from those right of it.
LAYERS = [
    "cli", "training", "objectives", "encoders", "serve", "mining", "scale", "evaluation", "report", "index",
    "wikipedia", "search", "integrations", "model", "data", "core",
]  # fmt: skip
OWN_LAYER = {"__main__": "cli"}


def layer(name: str) -> str:
    part = name.split(".")[1] if "." in name else "isoglot"
    return OWN_LAYER.get(part, part)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


NAMES = {module_name(path): path for path in MODULES}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a module or statement, at any depth: an eighth of the time of all its nodes."""
    for part in (
        part for name in ("body", "orelse", "handlers", "finalbody", "cases") for part in getattr(node, name, ())
    ):
        yield part
        yield from statements(part)


@cache
def imports(path: Path, *, types: bool = False) -> set[str]:
    """The modules that one imports anywhere, inside functions too; inside `if TYPE_CHECKING:` if `types`."""
    names = set[str]()
    found = [*statements(parse(path))]
    blocks = [node for node in found if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = [statement for block in blocks for statement in block.body if not types]
    left_out = {inner for statement in for_types for inner in (statement, *statements(statement))}
    for node in found:
        if node in left_out:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            inner_names = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in NAMES else node.module for name in inner_names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_imports_only_go_rightwards():
    wrong = [
        f"{module} imports {name}"
        for module, path in NAMES.items()
        for name in imports(path)
        if module != "isoglot" and name.startswith("isoglot.") and layer(name) in LAYERS
        and LAYERS.index(layer(name)) < LAYERS.index(layer(module))
    ]  # fmt: skip
    assert wrong == []


TORCH = ("torch", "transformers", "peft")
TRAIN = {"training", "objectives", "encoders"}  # the half of the package that needs torch
# Modules of the other half that import torch when it is there, or when a call needs it.
MAY_IMPORT_TORCH = {
    "isoglot.data.batch",  # of the train half: batches and what makes them
    "isoglot.data.batching",
    "isoglot.evaluation.tasks.finetune",  # a fine-tuned classifier
    "isoglot.evaluation.tasks.linear",
    "isoglot.core.machine",  # of an accelerator
    "isoglot.search.device",  # products on an accelerator
}


def test_inference_needs_no_torch():
    importing = {
        module
        for module, path in NAMES.items()
        if layer(module) not in TRAIN and any(name.split(".")[0] in TORCH for name in imports(path))
    }
    assert importing == MAY_IMPORT_TORCH


def test_objectives_see_vectors_and_no_encoder():
    """Only the builder, which hands an encoder to an objective that copies it, knows what an encoder is."""
    for path in (SOURCE / "objectives").glob("*.py"):
        if path.name != "__init__.py":
            assert not any(name.startswith("isoglot.encoders") for name in imports(path)), path


def test_what_is_exported_is_there_and_nothing_else():
    assert set(isoglot.__all__) == set(isoglot._HOMES) - {"encode"} | {"__version__"}
    assert dir(isoglot) == sorted(isoglot.__all__)
    for name in isoglot.__all__:
        assert getattr(isoglot, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = isoglot.nonsense


def test_every_module_imports_and_says_what_it_is():
    for name in NAMES.keys() - {"isoglot.__main__"}:
        try:
            assert importlib.import_module(name).__doc__, name
        except ModuleNotFoundError as error:  # of an integration whose package is not installed
            if not name.startswith("isoglot.integrations.") or str(error.name).startswith("isoglot"):
                raise


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], pytest.param(["mypy"], marks=pytest.mark.slow)],
    ids=lambda c: " ".join(c),
)
def test_linters_are_content(command):
    tool = shutil.which(command[0], path=str(Path(sys.executable).parent)) or shutil.which(command[0])
    if tool is None:
        pytest.skip(f"{command[0]} is not installed (extra `dev`)")
    result = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_nothing_names_this_machine():
    """Paths of a home or of a workplace do not belong in files that travel."""
    forbidden = ["/" + "work/", "/" + "root/", "/" + "tmp/v"]
    for path in [*MODULES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "scripts").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in forbidden), path


# Phrases that readers must decode, each with what to write instead.
WORDING = {
    r"is no (folder|file|function|number|model|list|text|language)\b": "is not a ...",
    r"(tells?|told)\b": "reports, specifies",
    r"go(es)? on (with|from)\b": "resumes, continues",
    r"mend(s|ed)?\b": "fix",
    r"(give|name) one\b": "pass, set",
    r"in the clothes of\b": "wrapped as",
    r"in place of\b": "instead of",
    r"perhaps\b": "possibly",
    r"but for\b": "except for",
    r"lest\b|thereof\b|hitherto\b|wherein\b|whereby\b": "a plain conjunction",
    r"refuse[sd]? ": "rejects",
    r"an? (object|row|sentence|group|pair|score|text) an? (line|row|file|query|column|sentence)\b": "one ... per ...",
    r"one an? (line|row|file|query)\b": "one per ...",
    r"most (bytes|tokens|times|seconds|texts) of\b": "maximum",
}


def wording(text: str) -> list[str]:
    plain = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    found = ((re.search(rf"\b(?:{phrase})", plain, re.IGNORECASE), instead) for phrase, instead in WORDING.items())
    return [f"{match[0]!r}: write {instead}" for match, instead in found if match]


def strings(tree: ast.AST) -> str:
    """The messages and the help of a module: its strings of more than two words."""
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return "\n".join(value for value in values if value.count(" ") > 1)


def test_the_wording_of_docs_help_and_errors_is_plain():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]
    history = {"results.md", "log.md", "CHANGELOG.md"}
    texts = {path: path.read_text(encoding="utf-8") for path in pages if path.name not in history}
    texts |= {path: strings(parse(path)) for path in MODULES}
    assert {str(path.relative_to(ROOT)): found for path, text in texts.items() if (found := wording(text))} == {}
    assert wording("'x' is no folder, one a line") == [
        "'is no folder': write is not a ...",
        "'one a line': write one per ...",
    ]


# What one opens to follow a sentence from a list in memory over a batch and its vectors to a loss and the step that
# updates the weights, and what these modules use that need not be read for it: codes of languages, checks of arguments,
# saved folders. The second list only becomes shorter.
BEGINNINGS = ["data.groups", "data.batching", "encoders.static", "objectives.info_nce", "training.step"]
ASIDE = {"data.languages"}
ASIDE_PACKAGES = ("core.", "model.")  # model is inference: an encoder has it by inheritance
MOST_FILES, MOST_LINES = 12, 2620


def test_the_path_of_a_newcomer_stays_short():
    path, left = {}, list(BEGINNINGS)
    while left:
        name = left.pop()
        file = SOURCE / Path(*name.split(".")).with_suffix(".py")
        if name in path or name in ASIDE or name.startswith(ASIDE_PACKAGES) or not file.is_file():
            continue
        path[name] = file.read_text(encoding="utf-8").count("\n")
        for node in parse(file).body:  # not the statements of functions, nor those for types alone
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isoglot"):
                names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            left += [name.removeprefix("isoglot.") for name in names if name.startswith("isoglot.")]
    assert {"data.groups", "data.batching", "data.batch", "encoders.base", "objectives.kernel"} <= set(path)
    assert "optimizer.step()" in (SOURCE / "training" / "step.py").read_text(encoding="utf-8")  # the path ends there
    assert len(path) <= MOST_FILES, sorted(path)
    assert sum(path.values()) <= MOST_LINES, path


def count_code(path: Path) -> int:
    """Lines of code: without docstrings, comments and blank lines, which are left out of longer strings too."""
    tree, lines = parse(path), path.read_text(encoding="utf-8").split("\n")
    code = {number for number, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")}
    docstrings = set[int]()
    for node in [tree, *statements(tree)]:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            value = first.value if isinstance(first, ast.Expr) else None
            if first and isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings |= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
    return len(code - docstrings)


def test_no_package_grows_without_a_reason():
    """lines.toml has the limit of each package; one that has become smaller gets a smaller limit."""
    table = tomllib.loads((ROOT / "tests" / "lines.toml").read_text(encoding="utf-8"))
    code: Counter[str] = Counter()
    for path in MODULES:
        parts = path.relative_to(SOURCE).parts
        code[parts[0] if len(parts) > 1 else "modules"] += count_code(path)
    limits = Counter(table["limits"])
    for growth in table["growth"]:
        assert growth["reason"]
        limits[growth["package"]] += growth["lines"]
    assert code.keys() == limits.keys()
    assert {name: code[name] - limits[name] for name in code if code[name] > limits[name]} == {}, "write why"
    slack = {name: code[name] for name in code if code[name] < limits[name] - 40}
    assert slack == {}, "lower these limits of tests/lines.toml"


def find_circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that import each other, directly or by way of others."""
    reach = {name: set(targets) for name, targets in graph.items()}
    for middle in graph:
        for targets in reach.values():
            if middle in targets:
                targets |= reach[middle]
    circles = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph}
    return sorted((set(circle) for circle in circles if circle), key=len)


def test_no_modules_import_each_other():
    """Not for types alone, nor by name: a module is imported by a statement."""
    graph = {name: imports(path, types=True) & NAMES.keys() - {name} for name, path in NAMES.items()}
    assert find_circles(graph) == []
    assert find_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
