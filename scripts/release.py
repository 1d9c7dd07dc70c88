"""Make a release: set the version, build wheel and sdist into dist/, and check them as a user would.

    make release VERSION=0.2.0      # or: python scripts/release.py 0.2.0

The version is written to the package, CITATION.cff and CHANGELOG.md, where "Unreleased" becomes the version with the
date of today. Nothing is uploaded: commit, and push the tag that is printed; the workflow release.yml publishes it.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
QUESTION = """
import sys
from pathlib import Path

import isoglot

assert Path(isoglot.__file__).is_relative_to(sys.prefix), isoglot.__file__
assert isoglot.__version__ == sys.argv[1], isoglot.__version__
vectors = isoglot.load().encode(["Guten Morgen!", "Good morning!", "The bill was rejected."])
assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
assert "torch" not in sys.modules
"""


def set_version(root: Path, version: str, date: datetime.date) -> None:
    """Write the version to the package, CITATION.cff and CHANGELOG.md.

    Raises ValueError, and changes nothing, if a file has no place for it or the changelog has this version already.
    """
    places = {
        "src/isoglot/core/__init__.py": (r'^__version__ = ".*"$', f'__version__ = "{version}"'),
        "CITATION.cff": (r"^version: .*$", f"version: {version}"),
        "CHANGELOG.md": (r"^## Unreleased$", f"## {version} - {date}"),
    }
    contents = {}
    for name, (pattern, line) in places.items():
        text = (root / name).read_text(encoding="utf-8")
        if name == "CHANGELOG.md" and re.search(rf"^## {re.escape(version)}\b(?!\.)", text, re.MULTILINE):
            raise ValueError(f"{name}: version {version} is there already; choose a later one")
        contents[name], count = re.subn(pattern, line, text, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"{name}: {count} lines match {pattern}, where the version belongs; one must")
    for name, text in contents.items():
        (root / name).write_text(text, encoding="utf-8")


def build_distributions(folder: Path) -> list[Path]:
    """Build an sdist, and from what it contains a wheel, into an empty `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    hatch = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "--target"]
    subprocess.run([*hatch, "sdist"], cwd=ROOT, check=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as source:
        shutil.unpack_archive(sdist, source, filter="data")
        subprocess.run([*hatch, "wheel"], cwd=Path(source) / sdist.name.removesuffix(".tar.gz"), check=True)
    return [sdist, *folder.glob("*.whl")]


def check_distributions(distributions: list[Path], version: str) -> None:
    """Check the metadata, and encode with the wheel alone, installed in an empty environment."""
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *distributions], check=True)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", distributions[-1]], check=True)
        subprocess.run([python, "-c", QUESTION, version], cwd=folder, check=True)


def main() -> None:
    """Set the version, build, check, and say what to do next."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="three numbers, such as 0.2.0, with a1, b1 or rc1 behind a pre-release")
    parser.add_argument("--built", action="store_true", help="the version is set already: build and check it")
    arguments = parser.parse_args()
    version = arguments.version
    if not VERSION.fullmatch(version):
        parser.error(f"{version!r} is not a version such as 0.2.0")
    if not arguments.built:
        set_version(ROOT, version, datetime.datetime.now(datetime.timezone.utc).date())
    distributions = build_distributions(ROOT / "dist")
    check_distributions(distributions, version)
    for path in distributions:
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.relative_to(ROOT)}")
    print(f"next: git commit --all --message 'Version {version}' && git tag v{version}, then push both")


if __name__ == "__main__":
    main()
