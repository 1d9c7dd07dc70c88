"""The page of `isoglot serve` in a browser: against a real server, and in frames as wide as a phone and a screen."""

import html
import json
import re
import subprocess
import sys
from importlib.resources import files
from urllib.parse import quote

import pytest
from serving import SERVE

from index_folder import LINES, make_index

FIELDS = ("score", "percent", "count", "id", "text", "language", "tag", "translation")
ROWS = [
    (0.9, 97.4, 1, "x" * 200, "<img src=x onerror=alert(1)>" + "w" * 300, "eng", "en", None),
    (0.5, 40, 3, "b", LINES["ara"][0], "ara", "ar", {"text": "<b>Query</b> of a cat", "language": "eng", "tag": "en"}),
    (-0.5, 0, 1, "c", LINES["tha"][0], "und", None, None),
]
HITS = [dict(zip(FIELDS, row, strict=True)) for row in ROWS]
ABOUT = {"model": "m" * 80, "sentences": 3, "kind": "flat", "languages": [{"code": "ara", "tag": "ar", "sentences": 1}]}
# Instead of the server: answers, and a walk with the keyboard once the answer is there.
PROBE = """
const asked = [], sleep = (time) => new Promise((done) => setTimeout(done, time));
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
window.fetch = async (path, options) => {
  if (options.body) asked.push(JSON.parse(options.body));
  return { ok: true, json: async () => (path === "index" ? ABOUT : { hits: HITS }) };
};
history.pushState = () => {};
addEventListener("load", async () => {
  await sleep(50);
  const here = () => document.activeElement;
  const focus = () => here().id || here().closest("li").querySelector(".id").textContent;
  const walk = [focus()];
  document.getElementById("query").value = "a query";
  press("Enter");
  await sleep(50);
  for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowDown", "/"]) {
    press(key);
    walk.push(focus());
  }
  const root = document.documentElement, right = document.querySelectorAll("li .text")[1];
  const direction = getComputedStyle(right).direction;  // before another search replaces it
  const chosen = document.getElementById("others"), before = chosen.disabled;
  language.value = "ara";
  language.dispatchEvent(new Event("change"));
  chosen.click();
  const marks = [...document.querySelectorAll("mark")].map((one) => one.textContent);
  const scores = [...document.querySelectorAll(".score")].map((one) => one.textContent);
  const copies = [...document.querySelectorAll(".copy")], selected = [];
  document.execCommand = () => selected.push(document.activeElement.value);
  Object.defineProperty(navigator, "clipboard", { value: undefined });
  copies[2].click();
  await sleep(0);
  const times = document.querySelector(".times").textContent, said = copies[2].textContent;
  document.querySelectorAll(".more")[1].click();
  const found = { walk, asked, wide: root.scrollWidth, width: root.clientWidth, images: document.images.length,
    direction, dir: right.dir, lang: right.lang,
    translation: document.querySelector(".translation").textContent, before,
    marks, scores, copies: copies.length, selected, times, said,
    first: document.querySelector("li .text").textContent, languages: language.options.length };
  const pre = parent.document.createElement("pre");
  pre.id = "found";
  pre.textContent = JSON.stringify(found);
  parent.document.body.append(pre);
});
"""


@pytest.mark.slow
def test_a_search_in_a_browser(tmp_path, toy_static, browser):
    folder = make_index(tmp_path, toy_static)
    server = subprocess.Popen([sys.executable, "-c", SERVE, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        page = browser(f"{address}?q={quote(LINES['eng'][2])}&k=25&language=eng")
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    assert "3 entries, nearest first" in page
    marked = re.search('<p class="text" dir="auto" lang="en">(.*?)</p>', page)[1].replace('<mark class="">', "<mark>")
    words = ("script", "alert", "1", "script", "b", "bold", "b")
    assert html.escape(LINES["eng"][2], quote=False) == re.sub("</?mark>", "", marked)
    assert re.findall("<mark>(.*?)</mark>", marked) == [*words]
    assert f"8 sentences, 4 languages; {tmp_path.name}" in page
    assert re.search(r'<option class="" value="ara">Arabic \(2\)</option>', page)
    assert "100 %" in page


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1400])
def test_on_a_phone_and_a_screen_with_a_keyboard_and_from_right_to_left(tmp_path, browser, width):
    source = files("isoglot.serve")
    page, style, script = (source.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    theme = files("isoglot.report").joinpath("templates/theme.css").read_text("utf-8")
    page = page.replace('<link rel="stylesheet" href="page.css">', f"<style>{theme}{style}</style>")
    probe = PROBE.replace("ABOUT", json.dumps(ABOUT)).replace("HITS", json.dumps(HITS))
    page = page.replace('<script src="page.js" defer></script>', f"<script>{probe}</script>")
    page = page.replace("</body>", f"<script>{script}</script></body>")
    path = tmp_path / "page.html"
    inner = html.escape(page)
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><iframe width="{width}" srcdoc="{inner}">', encoding="utf-8")
    shown = browser(path.as_uri())
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*)</pre>', shown)[1]))
    assert found["walk"] == ["query", "x" * 200, "b", "x" * 200, "query", "x" * 200, "query"]
    assert [one["query"] for one in found["asked"]] == ["a query", "a query", "a query", LINES["ara"][0]]
    kept = [(one.get("languages"), one.get("exclude")) for one in found["asked"]]
    assert kept == [([], None), (["ara"], None), (None, ["ara"]), (None, ["ara"])]
    assert (found["before"], found["translation"]) == (True, "<b>Query</b> of a cat")
    assert width - 30 < found["width"] <= width
    assert found["wide"] == found["width"]
    assert (found["direction"], found["dir"], found["lang"]) == ("rtl", "auto", "ar")
    assert (found["images"], found["first"]) == (0, HITS[0]["text"])
    assert found["languages"] == 2
    assert (found["marks"], found["scores"], found["times"]) == (["Query", "a"], ["97 %", "40 %", "0 %"], "3 times")
    assert (found["copies"], found["selected"], found["said"]) == (4, ["<b>Query</b> of a cat"], "Copied")
