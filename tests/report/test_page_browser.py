"""The page in a browser: it fits a phone with everything unfolded, and its script sorts and filters."""

from __future__ import annotations

import html
import json
import re

import pytest
from page_results import one

from isoglot.report.page import page

PROBE = """
<script>
{
for (const fold of document.querySelectorAll("details")) fold.open = true;
const wide = document.documentElement.scrollWidth, width = document.documentElement.clientWidth;
const table = [...document.querySelectorAll("#scores table")].find((found) => found.tBodies[0].rows.length > 100);
table.tHead.querySelectorAll("button")[1].click();
const values = [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[1].textContent));
const box = document.querySelector("input");
box.value = "deu, kor";
box.dispatchEvent(new Event("input"));
const left = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
parent.document.documentElement.innerHTML = "<pre>" + JSON.stringify({ width, wide, values, left }) + "</pre>";
}
</script>
"""


@pytest.mark.slow
def test_in_a_browser_it_fits_a_phone_and_its_script_works(tmp_path, browser):
    path = tmp_path / "page.html"
    document = page([one(), one("runs/second/model", seed=1, lift=0.1)], seen=["de", "fr"])
    # A window has at least 500 pixels there, a frame in it may have fewer.
    inner = html.escape(document.replace("</body>", f"{PROBE}</body>"))
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><iframe width="390" srcdoc="{inner}">', encoding="utf-8")
    shown = browser(path.as_uri())
    found = json.loads(re.search(r"<pre>(.*)</pre>", shown)[1])
    assert 360 < found["width"] <= 390
    assert found["wide"] == found["width"]
    assert len(found["values"]) == 112
    assert found["values"] == sorted(found["values"], reverse=True)
    assert found["left"]
    assert all("deu" in code or "kor" in code for code in found["left"])
