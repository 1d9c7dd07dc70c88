"""`isoglot wikipedia` as a user meets it."""

import json
from pathlib import Path

import pytest
from command_line import runner
from wiki_world import world

from isoglot.cli.wikipedia import wikipedia

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
