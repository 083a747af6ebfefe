/* The command palette (Ctrl-K, Cmd-K): a combobox over a list of pages, of what this page offers
   (`data-command`), of tasks that were opened in this tab, and of what the server finds. */
const box = document.getElementById("palette");
const text = document.getElementById("palette-text");
const list = document.getElementById("palette-list");
const RECENT = "ops-recent", MOST_RECENT = 6, PAUSE = 150; // milliseconds after the last key

const plain = (words) => words.replace(/\s+/g, " ").trim();
const recent = () => JSON.parse(sessionStorage.getItem(RECENT) ?? "[]");
const offered = (element) => element.checkVisibility() && !element.disabled;

/* --- What there is to choose from -------------------------------------------------------------- */
const pages = () => [...document.querySelectorAll("#nav a")].map((link) => (
  { kind: "Page", name: plain(link.firstChild.textContent), note: link.dataset.go ? `g ${link.dataset.go}` : "", run: () => link.click() }));
const acts = (where) => [...document.querySelectorAll(`${where} [data-command]`)].filter(offered).map((element) => (
  { kind: "Action", name: plain(element.dataset.command || element.textContent), note: "", run: () => element.click() }));
const open = (address) => () => { window.location.assign(address); };
const visited = () => recent().filter((one) => one.address !== location.pathname).map((one) => (
  { kind: "Recent", name: one.name, note: "", run: open(one.address) }));

let known = [], found = [], shown = [], at = 0;
const matches = (one) => {
  const words = `${one.name} ${one.kind}`.toLowerCase();
  return text.value.toLowerCase().split(/\s+/).every((word) => words.includes(word));
};

const show = () => {
  shown = [...known.filter(matches), ...found];
  at = Math.max(0, Math.min(at, shown.length - 1));
  list.replaceChildren(...shown.map((one, place) => {
    const option = document.createElement("li");
    Object.assign(option, { id: `palette-${place}`, role: "option" });
    option.dataset.kind = one.kind;
    for (const [name, words] of [["kind", one.kind], ["name", one.name], ["note", one.note]]) {
      const part = document.createElement("span");
      Object.assign(part, { className: name, textContent: words });
      option.append(part, " ");
    }
    option.addEventListener("click", () => choose(place));
    return option;
  }));
  document.getElementById("palette-count").textContent = shown.length ? `${shown.length} results` : "No results.";
  point();
};
const point = () => {
  for (const [place, option] of [...list.children].entries()) option.ariaSelected = String(place === at);
  if (shown.length) text.setAttribute("aria-activedescendant", `palette-${at}`);
  else text.removeAttribute("aria-activedescendant");
  list.children[at]?.scrollIntoView({ block: "nearest" });
};
const choose = (place) => {
  const one = shown[place];
  if (!one) return;
  box.close();
  one.run();
};

/* --- What the server finds --------------------------------------------------------------------- */
let waiting, asked = 0;
const search = async () => {
  const mine = ++asked;
  const answer = text.value.trim().length < 2 ? null
    : await fetch(`${box.dataset.url}?q=${encodeURIComponent(text.value)}`, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (mine !== asked) return; // another text was typed meanwhile
  const rows = answer?.ok ? (await answer.json()).found : [];
  found = rows.map((one) => ({ ...one, run: open(one.address) }));
  show();
};

const begin = () => {
  if (box.open || document.querySelector("dialog[open]")) return;
  known = [...acts("#content"), ...visited(), ...pages(), ...acts("header")];
  [found, at, text.value] = [[], 0, ""];
  box.showModal();
  show();
};
text?.addEventListener("input", () => {
  at = 0;
  found = found.filter(matches);
  show();
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE);
});
text?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    at = (at + step + shown.length) % shown.length;
    point();
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    choose(at);
  }
});
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
  event.preventDefault();
  if (box.open) box.close();
  else begin();
});
for (const opener of document.querySelectorAll("[data-palette]")) {
  opener.hidden = false;
  opener.addEventListener("click", begin);
}

/* A task's page is remembered in this tab, until the user logs out. */
const task = document.querySelector("h1[data-task]");
if (task) {
  const here = { address: location.pathname, name: plain(task.textContent) };
  const others = recent().filter((one) => one.address !== here.address);
  sessionStorage.setItem(RECENT, JSON.stringify([here, ...others].slice(0, MOST_RECENT)));
}
document.querySelector(".ops-user")?.addEventListener("submit", () => sessionStorage.removeItem(RECENT));
