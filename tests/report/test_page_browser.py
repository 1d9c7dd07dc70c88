"""The page in a browser: it fits a phone and fills a screen, everything unfolded, and its script sorts and filters."""

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
const counts = [...table.tBodies[0].rows].map((row) => row.cells[row.cells.length - 1]);
counts[5].textContent = "1,997"; // the others are 400
table.tHead.querySelectorAll("button")[counts[5].cellIndex].click();
const most = table.tBodies[0].rows[0].cells[counts[5].cellIndex].textContent;
const box = document.querySelector("input");
const typed = (words) => {
  box.value = words;
  box.dispatchEvent(new Event("input"));
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  return rows.map((row) => row.cells[0].firstChild.textContent.trim());
};
const asked = ["DE, kor ja", "zh", "jav", "tl", "eng", "j", "Korean"];
const left = Object.fromEntries(asked.map((words) => [words, typed(words)]));
typed("");
const hidden = [...document.querySelectorAll("h2")].filter((heading) => {
  heading.parentElement.scrollIntoView();
  return heading.getBoundingClientRect().top < document.querySelector(".filter").getBoundingClientRect().bottom;
}).map((heading) => heading.textContent);
const scale = Math.min(...[...document.querySelectorAll("img")].map((found) => found.clientWidth / found.naturalWidth));
const heads = [...document.querySelectorAll("thead th")].filter((head) => head.scrollWidth > head.clientWidth).length;
const edges = [...document.querySelectorAll("img, table, .bars")].map((found) => found.getBoundingClientRect().right);
const filled = edges.filter((edge) => edge > 0.6 * width).length / edges.length;
const found = { width, wide, values, most, left, hidden, scale, heads, filled };
parent.document.documentElement.innerHTML = "<pre>" + JSON.stringify(found) + "</pre>";
}
</script>
"""


CLOSED = """
<script>
{
const closed = [...document.querySelectorAll("#scores details:not([open]), #summary details:not([open])")];
const rows = closed.flatMap((fold) => [...fold.querySelectorAll("tbody tr, p")]);
const low = rows.filter((row) => row.getBoundingClientRect().height < 10).length;
const sentences = [...document.querySelectorAll("figure td, .folds td")].filter((cell) => cell.offsetHeight > 0).length;
const counts = { closed: closed.length, rows: rows.length, low, sentences };
document.documentElement.innerHTML = "<pre>" + JSON.stringify(counts) + "</pre>";
}
</script>
"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1400])
def test_in_a_browser_it_fits_the_window_and_its_script_works(tmp_path, browser, width):
    path = tmp_path / "page.html"
    document = page([one(), one("runs/second/model", seed=1, lift=0.1)], seen=["de", "fr"])
    # A window has at least 500 pixels there, a frame in it may have fewer.
    inner = html.escape(document.replace("</body>", f"{PROBE}</body>"))
    path.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><iframe width="{width}" height="700" srcdoc="{inner}">', encoding="utf-8"
    )
    shown = browser(path.as_uri())
    found = json.loads(re.search(r"<pre>(.*)</pre>", shown)[1])
    assert width - 30 < found["width"] <= width
    assert found["wide"] == found["width"]
    assert found["filled"] > 0.3  # of the figures and tables begin or reach far right of the middle
    assert len(found["values"]) == 112
    assert found["values"] == sorted(found["values"], reverse=True)
    assert found["most"] == "1,997"
    assert [len(codes) for codes in found["left"].values()] == [3, 1, 1, 1, 112, 0, 1]
    assert {code for codes in list(found["left"].values())[:4] for code in codes} == {
        *("deu-eng", "kor-eng", "jpn-eng", "cmn-eng", "jav-eng", "tgl-eng")
    }
    assert found["left"]["Korean"] == ["kor-eng"]
    assert found["hidden"] == []
    assert found["scale"] >= 0.75  # the smallest letters are 8 points, which are 10.7 pixels
    assert found["heads"] == 0  # none runs over into the next


@pytest.mark.slow
def test_long_tables_of_scores_and_the_list_of_averages_are_printed_whole(tmp_path, browser):
    path = tmp_path / "page.html"
    document = page([one()]).replace("@media print", "@media all")
    path.write_text(document.replace("</body>", f"{CLOSED}</body>"), encoding="utf-8")
    found = json.loads(re.search(r"<pre>(.*)</pre>", browser(path.as_uri()))[1])
    # 112 languages with their mean, and what it is over.
    assert found == {"closed": 1, "rows": 114, "low": 0, "sentences": 0}
