"""The documentation site: links that leave docs/, and a place for every page. `make docs` builds it."""

import re

import pytest

from conftest import load_script
from test_docs import ROOT, label

site_links = load_script("site_links")


def test_links_to_source_lead_to_the_repository():
    page = ROOT / "docs" / "methods" / "mpcl.md"
    text = "[loss](../../src/isoglot/objectives/multi_positive.py#L1) [EASE](ease.md) [data](../data.md)"
    address = "https://github.com/owner/name/blob/main/src/isoglot/objectives/multi_positive.py#L1"
    expected = f"[loss]({address}) [EASE](ease.md) [data](../data.md)"
    assert site_links.link_to_repository(text, page, "owner/name") == expected
    assert site_links.link_to_repository(text, page, "") == "loss [EASE](ease.md) [data](../data.md)"


def test_a_link_to_a_missing_source_file_stops_the_build():
    with pytest.raises(FileNotFoundError, match=r"\.\./src/isoglot/nothing\.py"):
        site_links.link_to_repository("[x](../src/isoglot/nothing.py)", ROOT / "docs" / "data.md", "")


def test_every_page_has_a_place_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    places = re.findall(r"[\w/-]+\.(?:md|ipynb)", navigation)
    docs = ROOT / "docs"
    pages = [label(path).removeprefix("docs/") for kind in ("md", "ipynb") for path in docs.rglob(f"*.{kind}")]
    assert sorted(places) == sorted(pages)
