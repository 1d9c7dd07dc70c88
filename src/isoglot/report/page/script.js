// The page is whole without this: columns that sort, and a box that leaves only the languages one looks for.
"use strict";
{
  const figure = (cell) => {
    const found = parseFloat(cell.textContent.replace("−", "-"));
    return Number.isNaN(found) ? -Infinity : found;
  };
  const sort = (header, body) => {
    const column = header.cellIndex, numeric = header.classList.contains("n");
    const up = header.getAttribute("aria-sort") === (numeric ? "descending" : "ascending");
    const turn = numeric === up ? 1 : -1;
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
    const rank = (a, b) => numeric
      ? figure(a.cells[column]) - figure(b.cells[column])
      : a.cells[column].textContent.localeCompare(b.cells[column].textContent);
    body.append(...[...body.rows].sort((a, b) => turn * rank(a, b)));
  };
  for (const table of document.querySelectorAll("table")) {
    if (table.tBodies.length === 0 || table.tBodies[0].rows.length < 3) continue;
    for (const header of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(header, table.tBodies[0]));
      header.append(button);
    }
  }
  const box = document.querySelector(".filter");
  box.hidden = false;
  box.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    for (const item of document.querySelectorAll("[data-words]")) {
      const known = item.dataset.words.split(" ");
      item.hidden = words.length > 0 && !words.some((word) => known.includes(word));
    }
  });
}
