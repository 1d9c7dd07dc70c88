// The map is a picture with titles without this: it adds sentences beside the pointer, kinds to switch off, zoom, search.
"use strict";
{
  const id = (name) => document.getElementById(name);
  const map = id("map"), shown = id("shown"), find = id("find"), side = map.viewBox.baseVal.width;
  const points = [...id("points").children], rays = [...id("rays").children];
  const groups = new Map();
  for (const point of points) {
    const title = point.querySelector("title");
    point.words = title.textContent;
    point.tongue = title.getAttribute("lang");
    title.remove(); // the browser would show it as well
    if (point.dataset.group) groups.set(point.dataset.group, [...(groups.get(point.dataset.group) || []), point]);
  }
  document.body.classList.add("live");
  for (const control of document.querySelectorAll("[hidden]")) control.hidden = false;

  // Kinds that are switched off, and words that are looked for.
  const boxes = [...document.querySelectorAll("#legend input[type=checkbox]")];
  const filter = () => {
    const off = new Set(boxes.filter((box) => !box.checked).map((box) => box.dataset.kind));
    for (const item of [...points, ...rays]) item.classList.toggle("off", off.has(item.dataset.kind));
  };
  const look = (near) => {
    map.classList.toggle("looking", near !== null);
    for (const item of [...points, ...rays]) item.classList.toggle("near", near !== null && near(item));
  };
  const search = () => {
    const words = find.value.trim().toLowerCase();
    look(words ? (item) => item.words !== undefined && item.words.toLowerCase().includes(words) : null);
  };
  for (const box of boxes) box.addEventListener("change", filter);
  for (const [name, on] of [["all", true], ["none", false]]) {
    id(name)?.addEventListener("click", () => { for (const box of boxes) box.checked = on; filter(); });
  }
  find.addEventListener("input", search);
  filter(); // a browser that goes back keeps the boxes as they were
  search();

  // The sentence under the pointer, with those that mean the same.
  const line = (point, current) => {
    const row = document.createElement("div"), name = document.createElement("small"), words = document.createElement("span");
    row.classList.toggle("this", point === current);
    name.textContent = point.dataset.name;
    words.textContent = point.words.length > 400 ? point.words.slice(0, 400) + "…" : point.words;
    words.dir = "auto";
    if (point.tongue) words.lang = point.tongue;
    row.append(name, words);
    return row;
  };
  let current = null;
  const show = (point, x, y) => {
    if (point !== current) {
      current = point;
      const members = point ? groups.get(point.dataset.group) || [point] : [];
      const others = members.filter((other) => other !== point && !other.classList.contains("off"));
      shown.replaceChildren(...(point ? [point, ...others.slice(0, 11)] : []).map((other) => line(other, point)));
      if (point && others.length) look((item) => item.dataset.group === point.dataset.group); else search();
    }
    if (!point) return;
    const { width, height } = shown.getBoundingClientRect();
    const right = document.documentElement.clientWidth - width - 8, low = window.innerHeight - height - 8;
    shown.style.left = `${Math.max(8, Math.min(x + 14, right))}px`;
    shown.style.top = `${Math.max(8, y + 14 > low ? Math.min(y - height - 14, low) : y + 14)}px`;
  };

  // Zoom and move: the view is a square of the picture; marks keep their size.
  let view = { x: 0, y: 0, size: side };
  const see = (x, y, size) => {
    size = Math.min(side, Math.max(side / 200, size));
    const inside = (value) => Math.min(side - size, Math.max(0, value));
    view = { x: inside(x), y: inside(y), size };
    map.setAttribute("viewBox", `${view.x} ${view.y} ${size} ${size}`);
    map.style.setProperty("--zoom", size / side);
  };
  const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
  const zoom = (centre, factor) => {
    const size = Math.min(side, Math.max(side / 200, view.size * factor)), share = size / view.size;
    see(centre.x - (centre.x - view.x) * share, centre.y - (centre.y - view.y) * share, size);
  };
  const fingers = new Map();
  const apart = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  };
  map.addEventListener("wheel", (event) => { event.preventDefault(); zoom(at(event), 1.0015 ** event.deltaY); }, { passive: false });
  map.addEventListener("dblclick", () => see(0, 0, side));
  map.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event); show(event.target.closest("#points > g"), event.clientX, event.clientY); });
  window.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) {
      const point = event.target.closest?.("#points > g") || null;
      if (event.pointerType === "mouse" && (point || current)) show(point, event.clientX, event.clientY);
      return;
    }
    const before = fingers.size === 2 ? apart() : 0, from = at(last), to = at(event);
    fingers.set(event.pointerId, event);
    if (fingers.size === 1) see(view.x + from.x - to.x, view.y + from.y - to.y, view.size);
    else if (fingers.size === 2 && before) zoom(to, before / Math.max(1, apart()));
  });
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (event) => fingers.delete(event.pointerId));
  window.addEventListener("keydown", (event) => {
    if (event.target === find) return;
    if (event.key === "Escape") { show(null); see(0, 0, side); }
    const factor = { "+": 0.8, "-": 1.25 }[event.key];
    if (factor) zoom({ x: view.x + view.size / 2, y: view.y + view.size / 2 }, factor);
  });
}
