"""A release: the version is written to all its places, or to none."""

import datetime
import re
import shutil

import pytest

from conftest import load_script
from test_docs import ROOT

release = load_script("release")
PLACES = ("src/isoglot/core/__init__.py", "CITATION.cff", "CHANGELOG.md")
DATE = datetime.date(2030, 1, 2)


@pytest.fixture
def root(tmp_path):
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    if "## Unreleased" not in changelog:
        (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n" + changelog, encoding="utf-8")
    return tmp_path


def test_a_version_is_written_to_all_places(root):
    release.set_version(root, "7.8.9", DATE)
    lines = ('__version__ = "7.8.9"', "version: 7.8.9", "## 7.8.9 - 2030-01-02")
    for name, line in zip(PLACES, lines, strict=True):
        assert line in (root / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("CHANGELOG.md", "## Unreleased", "## Unreleased changes"),
        ("CITATION.cff", "version: ", "release: "),
        ("src/isoglot/core/__init__.py", "__version__ = ", "VERSION = "),
        ("CHANGELOG.md", "## Unreleased", "## 7.8.9\n\n## Unreleased"),
    ],
)
def test_a_missing_place_changes_nothing(root, name, old, new):
    path = root / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    before = {place: (root / place).read_text(encoding="utf-8") for place in PLACES}
    with pytest.raises(ValueError, match=re.escape(name)):
        release.set_version(root, "7.8.9", DATE)
    assert {place: (root / place).read_text(encoding="utf-8") for place in PLACES} == before


def test_the_citation_has_the_version_of_the_package():
    import isoglot

    assert f"version: {isoglot.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
