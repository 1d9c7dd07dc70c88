"""Which packages a verb imports: none that it does not need, some of which take a second each, or are extras."""

import re
import subprocess
import sys

import pytest

from conftest import SENTENCES
from isoglot.core.errors import MissingExtraError, naming_extras
from isoglot.index import Index

# Without these a clean installation encodes, mines, searches and serves.
EXTRAS = ("sklearn", "scipy", "matplotlib", "plotly", "pandas", "pyarrow", "datasets", "faiss", "onnxruntime", "jinja2")
COMPILERS = ("torch._dynamo", "torch._inductor", "sympy", "torch.distributed.tensor")
VERBS = {
    "encode": "encode model a.eng -o a.npy",
    "mine": "mine model a.eng a.deu -o pairs.tsv",
    "index": "index model a.eng -o made",
    "search": "search index cat",
    "export": "export index -o out.tsv",
}
# Packages are looked for as if they were not installed, as `importlib.util.find_spec` sees it too.
RUN = """
import sys
from importlib.machinery import PathFinder
missing = {missing!r}

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, *given):
        return None if name.partition(".")[0] in missing else super().find_spec(name, *given)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
sys.argv = ["isoglot", *{words!r}]
try:
    from isoglot.cli.main import main
    main()
finally:
    print(*sorted(sys.modules), file=open("modules", "w"))
"""


@pytest.fixture
def folder(tmp_path, toy_static):
    toy_static.save(tmp_path / "model")
    for code in ("eng", "deu"):
        (tmp_path / f"a.{code}").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    Index.build(tmp_path / "model", SENTENCES, folder=tmp_path / "index").close()
    return tmp_path


def run(folder, words, missing=()):
    code = RUN.format(missing=missing, words=words.split())
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    return done, set((folder / "modules").read_text().split())


@pytest.mark.parametrize("verb", [pytest.param(verb, marks=pytest.mark.slow) for verb in VERBS])
def test_a_verb_needs_no_extra_and_imports_no_compiler(folder, verb):
    done, modules = run(folder, VERBS[verb], missing=EXTRAS)
    assert done.returncode == 0, done.stderr
    assert not modules & {*EXTRAS, *COMPILERS, "transformers", "openai", "starlette"}


def test_the_default_model_answers_without_transformers(tmp_path):
    program = "import sys, isoglot; isoglot.load().encode(['hello']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {*done.stdout.split()} & {"transformers", *COMPILERS}


@pytest.mark.slow
def test_searching_imports_neither_training_nor_the_tables_of_languages(folder):
    done, modules = run(folder, VERBS["search"])
    assert done.returncode == 0, done.stderr
    unused = {"averaging", "fitting", "vocabulary", "converters", "int8"}
    assert not modules & {"langcodes", "isoglot.training.settings", *(f"isoglot.encoders.{name}" for name in unused)}


@pytest.mark.parametrize("words", ["--help", "--version", pytest.param("train --help", marks=pytest.mark.slow)])
def test_help_and_version_import_nothing_heavy(tmp_path, words):
    done, modules = run(tmp_path, words)
    assert done.returncode == 0, done.stderr
    assert not modules & {"torch", "numpy", "transformers", "langcodes", "uvicorn", *EXTRAS}


@pytest.mark.slow
def test_serving_needs_no_extra_but_its_own(folder):
    code = "from isoglot.index import Index; from isoglot.serve import create_app; create_app(Index.open('index'))"
    kept = [name for name in EXTRAS if name != "jinja2"]
    program = RUN.format(missing=kept, words=[]).replace("from isoglot.cli.main import main\n    main()", code)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_verb_that_needs_an_extra_names_it(folder):
    done, _ = run(folder, "plot model a.eng -o map.png", missing=[name for name in EXTRAS if name != "jinja2"])
    assert done.returncode == 1
    assert 'pip install "isoglot[' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "install"),
    [
        ("sklearn.linear_model", 'pip install "isoglot[evaluate]"'),
        ("scipy", 'pip install "isoglot[evaluate]"'),
        ("pandas", "pip install pandas"),
        ("isoglot.none", ""),
    ],
)
def test_only_optional_packages_are_named(module, install):
    expected = MissingExtraError if install else ModuleNotFoundError
    with pytest.raises(expected, match=f"{re.escape(install)}$"), naming_extras():
        raise ModuleNotFoundError("No module", name=module)
