// The page is complete without this: sorting by column, filtering by language, enlarging maps.
"use strict";
{
  const number = (cell) => {
    const value = parseFloat(cell.textContent.replaceAll(",", ""));
    return Number.isNaN(value) ? -Infinity : value;
  };
  const sort = (header, body) => {
    const column = header.cellIndex, numeric = header.classList.contains("n");
    const up = header.getAttribute("aria-sort") === (numeric ? "descending" : "ascending");
    const turn = numeric === up ? 1 : -1;
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
    const rank = (a, b) => numeric
      ? number(a.cells[column]) - number(b.cells[column])
      : a.cells[column].textContent.localeCompare(b.cells[column].textContent);
    body.append(...[...body.rows].sort((a, b) => turn * rank(a, b)));
  };
  for (const table of document.querySelectorAll("table")) {
    if (table.tBodies[0].rows.length < 3) continue;
    for (const header of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(header, table.tBodies[0]));
      header.append(button);
    }
  }
  // The code of a language, whatever system it is written in: ja for jpn, zh for cmn and chi, de for ger.
  const language = (code) => {
    try {
      return new Intl.Locale(code.replace("_", "-")).language;
    } catch {
      return code.toLowerCase(); // not a language
    }
  };
  const box = document.querySelector(".filter");
  box.hidden = false;
  box.querySelector("input").addEventListener("input", (event) => {
    const typed = event.target.value.split(/[\s,]+/).filter(Boolean), words = typed.map(language);
    const named = typed.map((word) => word.toLowerCase()).filter((word) => word.length > 3);
    for (const item of document.querySelectorAll("[data-subset]")) {
      const subset = item.dataset.subset, known = [subset, ...subset.split("-")].map(language);
      const names = item.querySelector(".named")?.textContent.toLowerCase() ?? "";
      item.hidden = words.length > 0 && !words.some((word) => known.includes(word)) &&
        !named.some((word) => names.includes(word));
    }
  });
  for (const picture of document.querySelectorAll(".picture")) {
    picture.addEventListener("dblclick", () => picture.classList.toggle("large"));
  }
}
