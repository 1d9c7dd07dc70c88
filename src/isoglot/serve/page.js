// The page of `isoglot serve`. Text of the index is only ever put in as text, never as markup.
"use strict";

const find = (id) => document.getElementById(id);
const form = find("form"), query = find("query"), language = find("language"), count = find("count");
const others = find("others"), hits = find("hits"), status = find("status");
const names = new Intl.DisplayNames([navigator.language || "en", "en"], { type: "language" });
const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
let last = null; // the request that is under way

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function nameOf(code, tag) {
  if (!tag) return code === "und" ? "language unknown" : code;
  try {
    return names.of(tag);
  } catch {
    return code;
  }
}

function say(words, wrong = false) {
  status.textContent = words;
  status.classList.toggle("wrong", wrong);
}

// A server with a token asks for it once; it is kept until the tab is closed.
async function ask(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) {
    const given = prompt("Access token of this server:");
    if (given) {
      sessionStorage.setItem("token", given);
      return ask(path, options);
    }
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.message);
  return found;
}

function label(text, tag) {
  text.dir = "auto";
  if (tag) text.lang = tag;
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // browsers allow it on localhost and with TLS only
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.focus();
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

// A side of a hit with some words marked, and a button that copies it.
function side(name, text, tag, matches) {
  const row = element("div", "side", ""), words = element("p", name, "");
  label(words, tag);
  let end = 0;
  for (const match of matches) {
    words.append(text.slice(end, match.index), element("mark", "", match[0]));
    end = match.index + match[0].length;
  }
  words.append(text.slice(end));
  const button = element("button", "copy", "Copy");
  button.type = "button";
  button.addEventListener("click", () => copy(text, button));
  row.append(words, button);
  return row;
}

// Words of the query are marked in the side with most of them, which is in its language.
function sides(hit, asked) {
  const words = new Set([...asked.matchAll(WORD)].map((match) => match[0].toLowerCase()));
  const matches = [hit.text, hit.translation?.text ?? ""].map((text) =>
    [...text.matchAll(WORD)].filter((match) => words.has(match[0].toLowerCase())));
  matches[matches[1].length > matches[0].length ? 0 : 1] = [];
  const made = [side("text", hit.text, hit.tag, matches[0])];
  if (hit.translation) {
    made.push(side("translation", hit.translation.text, hit.translation.tag, matches[1]));
    made[1].firstChild.title = nameOf(hit.translation.language, hit.translation.tag);
  }
  return made;
}

function shown(hit, asked) {
  const item = document.createElement("li"), facts = element("div", "facts", "");
  const score = element("span", "score", `${Math.round(hit.percent)} %`), meter = document.createElement("meter");
  score.title = `cosine ${hit.score.toFixed(3)}`;
  meter.value = hit.percent / 100;
  meter.setAttribute("aria-hidden", "true");
  const named = element("span", "language", nameOf(hit.language, hit.tag));
  named.title = hit.language;
  const id = element("bdi", "id", hit.id);
  const more = element("button", "more", "More like this");
  more.type = "button";
  more.addEventListener("click", () => {
    query.value = hit.text;
    if (others.checked && [...language.options].some((one) => one.value === hit.language)) language.value = hit.language;
    search();
    window.scrollTo(0, 0);
  });
  facts.append(score, meter, named, id, more);
  if (hit.count > 1) id.after(element("span", "times", `${hit.count.toLocaleString()} times`));
  item.append(...sides(hit, asked), facts);
  return item;
}

async function search({ remember = true } = {}) {
  if (!query.value.trim()) return;
  if (last) last.abort();
  const current = (last = new AbortController());
  if (remember) {
    const state = new URLSearchParams({ q: query.value, language: language.value, k: count.value });
    if (others.checked) state.set("others", "on");
    history.pushState(null, "", `?${state}`);
  }
  say("Searching …");
  try {
    const codes = language.value ? [language.value] : [], key = others.checked ? "exclude" : "languages";
    const asked = { query: query.value, k: Number(count.value), [key]: codes };
    const headers = { "Content-Type": "application/json" };
    const options = { method: "POST", headers, body: JSON.stringify(asked), signal: current.signal };
    const found = await ask("search", options);
    hits.replaceChildren(...found.hits.map((hit) => shown(hit, asked.query)));
    say(found.hits.length === 1 ? "One entry" : `${found.hits.length} entries, nearest first`);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  }
}

// Without a chosen language there are no others.
function allow() {
  others.disabled = !language.value;
  if (others.disabled) others.checked = false;
}

function restore() {
  const state = new URLSearchParams(location.search);
  query.value = state.get("q") || "";
  if ([...language.options].some((one) => one.value === state.get("language"))) language.value = state.get("language");
  others.checked = state.has("others");
  allow();
  if ([...count.options].some((one) => one.value === state.get("k"))) count.value = state.get("k");
  if (query.value.trim()) search({ remember: false });
  else query.focus();
}

async function start() {
  try {
    const about = await ask("index");
    const counted = about.sentences.toLocaleString();
    const several = about.languages.length === 1 ? "" : "s";
    find("about").textContent = `${counted} sentences, ${about.languages.length} language${several}; ${about.model}`;
    const named = about.languages.map((one) => [nameOf(one.code, one.tag), one]);
    named.sort((a, b) => a[0].localeCompare(b[0]));
    for (const [name, one] of named) {
      const option = element("option", "", `${name} (${one.sentences.toLocaleString()})`);
      option.value = one.code;
      language.append(option);
    }
  } catch (error) {
    say(error.message, true);
  }
  restore();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
language.addEventListener("change", allow);
for (const choice of [language, others, count]) choice.addEventListener("change", () => search());
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("textarea, select, input");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    query.focus();
    query.select();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !event.target.matches("select")) {
    const buttons = [...document.querySelectorAll("#hits .more")];
    const place = buttons.indexOf(document.activeElement);
    if (!buttons.length || (typing && !(event.ctrlKey || atEnd(event.key)))) return;
    event.preventDefault();
    const next = place + (event.key === "ArrowDown" ? 1 : -1);
    (buttons[Math.min(next, buttons.length - 1)] || query).focus();
  }
});
window.addEventListener("popstate", restore);

// In the field of the query arrows move between lines; only from its end they lead out of it.
function atEnd(key) {
  return key === "ArrowDown" && query.selectionStart === query.value.length;
}

start();
