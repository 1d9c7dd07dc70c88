"""`isoglot wikipedia` as a user meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import locked_elsewhere, runner

from isoglot.cli.wikipedia import wikipedia
from isoglot.errors import CorpusError, IsoglotError, OutputError

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "wikipedia"))

from wiki_world import world

pytest.importorskip("mwparserfromhell", reason="needs the extra `wikipedia`")
pytest.importorskip("sentencex", reason="needs the extra `wikipedia`")

run = runner(wikipedia=wikipedia)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world(tmp_path)
    return tmp_path


def test_from_wikidata(project):
    told = run("en.xml", "ja.xml", "--wikidata", "wikidata.json", "-o", "out", "--min-links", 3)
    report = json.loads(Path("out/report.json").read_text())
    lines = Path("out/sentences.jsonl").read_text(encoding="utf-8").count("\n")
    assert lines == sum(counts["written"] for counts in report["instances"].values()) > 20
    assert [line for line in told.split("\n") if line][:4] == ["redirects", "entities", "tables", "articles"]
    written = report["instances"]["eng"]["written"]
    assert f"eng: {written} sentences with an entity of " in told
    assert sorted(p.name for p in project.iterdir() if p.name not in ("out",)) == [
        "en.xml", "ja.xml", "titles.tsv", "types.tsv", "wikidata.json"
    ]  # fmt: skip


def test_every_option_reaches_the_report(project):
    run(
        "en.xml", "de=ja.xml", "--titles", "titles.tsv", "--types", "types.tsv", "-o", "out", "--min-links", 2,
        "--count-language", "en", "--all-pages", "--keep-lonely", "--candidates", 3, "--per-entity", 4, "--sample", 5,
        "--min-length", 6, "--max-length", 99, "--seed", 7, "--work", "kept",
    )  # fmt: skip
    settings = json.loads(Path("out/report.json").read_text())["settings"]
    assert settings == {
        "dumps": ["en.xml", "de=ja.xml"], "wikidata": None, "titles": "titles.tsv", "types": "types.tsv",
        "limits": {"least": 6, "most": 99}, "min_links": 2, "count_language": "en", "all_pages": True,
        "keep_lonely": True, "candidates": 3, "share": 4, "size": 5, "seed": 7,
    }  # fmt: skip
    assert Path("kept").is_dir()


def test_mistakes_leave_nothing_that_looks_good(project):
    with pytest.raises(CorpusError, match=r"titles\.tsv: not a MediaWiki XML dump"):
        run("titles.tsv", "--titles", "titles.tsv", "-o", "out")
    with pytest.raises(IsoglotError, match=r"--wikidata"):
        run("en.xml", "-o", "out")
    assert not Path("out").exists()


def test_two_runs_in_one_work_folder(project):
    for held in ("kept", "out"):
        with locked_elsewhere(held), pytest.raises(OutputError, match=f"^{held}: another process"):
            run("en.xml", "--titles", "titles.tsv", "-o", "out", "--work", "kept")


def test_paths_without_a_name_or_an_end_are_one_line(project):
    words = ("en.xml", "--titles", "titles.tsv", "--types", "types.tsv", "-o")
    with pytest.raises(IsoglotError, match="contains the input"):
        run(*words, ".")
    Path("types.tsv").unlink()
    Path("types.tsv").symlink_to("types.tsv")
    with pytest.raises(CorpusError, match=r"types\.tsv"):
        run(*words, "out")
    Path("loop").symlink_to("loop")
    with pytest.raises((IsoglotError, OSError)):
        run("en.xml", "--titles", "titles.tsv", "-o", "loop")
    assert not Path("out").exists()
