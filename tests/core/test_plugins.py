"""Plug-ins of other distributions, and modules that are imported by name."""

import subprocess
import sys
from types import ModuleType

import pytest

from conftest import replace_unseen
from isoglot.core.errors import PluginError, RecipeError
from isoglot.core.plugins import source_of
from isoglot.data import Group
from isoglot.data.corpus import Corpus, FileSource
from isoglot.data.readers import READERS, read
from isoglot.evaluation import TASKS
from isoglot.objectives import OBJECTIVES, InfoNCE
from isoglot.training import recipe as recipes

ENTRIES = """[isoglot.readers]
colon = acme_plugin:read_colon
tsv = acme_plugin:missing
broken = acme_plugin:missing
worse = acme_nothing:read
number = acme_plugin:NUMBER
[isoglot.objectives]
acme_nce = acme_plugin:AcmeNCE
not_one = acme_plugin:read_colon
[isoglot.tasks]
acme/task = acme_plugin:TASK
"""
MODULE = '''
from isoglot.data import Group
from isoglot.objectives import InfoNCE

NUMBER = 3

def read_colon(path, *, language: str = "und"):
    """A reader."""
    for line in open(path):
        yield Group(tuple(line.strip().split(":")), (language, language))

class AcmeNCE(InfoNCE):
    """An objective."""

class _Task:
    name = "acme/task"
    def run(self, encode, data, *, languages=()):
        return []

TASK = _Task()
'''


@pytest.fixture
def acme(tmp_path, monkeypatch):
    (tmp_path / "acme_plugin.py").write_text(MODULE)
    info = tmp_path / "acme_isoglot-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-isoglot\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (READERS, OBJECTIVES, TASKS):
        monkeypatch.setattr(registry, "data", dict(registry.data))
    yield tmp_path
    sys.modules.pop("acme_plugin", None)


def test_names_of_plugins_are_found_checked_and_listed(acme):
    (acme / "text").write_text("a:b\n")
    assert list(read("colon", acme / "text", language="deu")) == [Group(("a", "b"), ("deu", "deu"))]
    assert issubclass(OBJECTIVES["acme_nce"], InfoNCE)
    assert TASKS["acme/task"].name == "acme/task"
    assert "colon" in READERS
    assert "colon" in [*READERS]
    assert READERS.get("nothing") is None
    with pytest.raises(RecipeError, match=r"^'langage': reader colon .*'language'"):
        READERS.check("colon", {"langage": "deu"})
    with pytest.raises(RecipeError, match="'colon'"):
        READERS.check("colom", {})


def test_our_own_names_stay_ours(acme):
    assert READERS["tsv"].__module__ == "isoglot.data.readers.tsv"
    assert len(READERS) == len([*READERS]) == len({*READERS})
    with pytest.raises(PluginError, match=r"readers.*'tsv'"):
        READERS["tsv"] = READERS["jsonl"]
    assert READERS["tsv"].__module__ == "isoglot.data.readers.tsv"


@pytest.mark.parametrize(
    "registry, name", [(READERS, "broken"), (READERS, "worse"), (READERS, "number"), (OBJECTIVES, "not_one")]
)
def test_a_broken_plugin_is_one_error_that_names_its_distribution(acme, registry, name):
    assert name in registry  # found without being imported
    with pytest.raises(PluginError) as error:
        registry[name]
    assert f"'{name}' of acme-isoglot 1.2" in str(error.value)


@pytest.mark.parametrize(("registry", "wrong"), [(READERS, 3), (OBJECTIVES, dict), (TASKS, InfoNCE)])
def test_an_entry_of_another_kind_is_an_error_where_it_is_made(registry, wrong):
    with pytest.raises(PluginError, match=f"isoglot.*'wrong'.*{registry.kind}"):
        registry["wrong"] = wrong
    assert "wrong" not in registry


@pytest.mark.slow
def test_a_module_is_imported_by_the_command_line(tmp_path):
    (tmp_path / "my_readers.py").write_text(
        "from isoglot.data.readers import READERS\nREADERS['mine'] = lambda path: iter(())\n"
    )
    (tmp_path / "r.toml").write_text(
        'extends = "demo/pairs"\nname = "x"\nstreams = [{ objectives = [{ name = "info_nce" }], '
        'sources = [{ reader = "mine", path = "r.toml" }] }]\n'
    )
    recipes.load(tmp_path / "r.toml")

    def run(*arguments):
        command = [sys.executable, "-m", "isoglot", *arguments, "recipe", "check", "r.toml"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert run("--import", "my_readers").returncode == 0
    assert "'mine'" in run().stderr
    wrong = run("--import", "my_writers")
    assert wrong.returncode == 1
    assert wrong.stderr.count("\n") == 1
    assert "my_writers" in wrong.stderr


def test_the_module_of_a_plug_in_is_a_part_of_what_identifies_text(acme, tmp_path, monkeypatch):
    """A table of token ids, and a run, are made again when the reader changes."""
    (tmp_path / "pairs.txt").write_text("a:b\n")
    corpus = Corpus([FileSource("colon", tmp_path / "pairs.txt")])
    before = corpus.digest()
    assert corpus.digest() == before
    replace_unseen(tmp_path / "acme_plugin.py", MODULE.replace('split(":")', 'split("b")').encode())
    assert corpus.digest() != before
    assert source_of(OBJECTIVES["acme_nce"]) == source_of(TASKS["acme/task"]) == tmp_path / "acme_plugin.py"
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # a notebook, which has no file
    digests = []

    def one(path):
        return []

    def other(path):
        return [Group(("a",), ("eng",))]

    for reader in (one, other, one):
        reader.__module__, reader.__name__ = "__main__", "read_mine"
        monkeypatch.setitem(READERS, "mine", reader)
        digests.append(Corpus([FileSource("mine", tmp_path / "pairs.txt")]).digest())
    assert digests[0] == digests[2] != digests[1]


def test_groups_of_a_reader_are_those_of_any_data(acme, monkeypatch):
    """Codes become canonical, groups without text are left out, and what is no group is one error."""
    monkeypatch.setitem(READERS, "mine", lambda path: [Group(("a", "b"), ("en", "pt_BR")), Group((), ())])
    assert list(read("mine", "x")) == [Group(("a", "b"), ("eng", "por"))]
    monkeypatch.setitem(READERS, "mine", lambda path: 3)
    with pytest.raises(TypeError, match="data is a value of type int"):
        list(read("mine", "x"))


def test_files_of_our_own_are_not_plug_ins(acme, tmp_path):
    own = [found for registry in (READERS, OBJECTIVES, TASKS) for found in registry.data.values()]
    assert [found for found in own if source_of(found) not in (None, tmp_path / "acme_plugin.py")] == []
