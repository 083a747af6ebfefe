/* Single keys, for those who want them: `?` lists them, a switch there turns them off. */
const OFF = "ops-keys-off";
const on = () => !localStorage.getItem(OFF);
const help = () => document.getElementById("keys");

/* What a row leads to: what its template says, or else its first link. */
const rows = () => [...document.querySelectorAll("#live :is(tbody tr:not(.ops-act), [data-row])")];
const opens = (row) => row?.querySelector("[data-open]") ?? row?.querySelector("a");
const links = () => rows().map(opens).filter(Boolean);
const row = () => document.activeElement?.closest?.("#live :is(tbody tr, [data-row])");
const step = (by) => {
  const all = links();
  if (!all.length) return;
  const at = all.findIndex((link) => row()?.contains(link));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
};
const choose = () => row()?.querySelector("input[type=checkbox]")?.click();
const resubmit = () => {
  const button = document.querySelector("#chosen button[value=resubmit]:not(:disabled)");
  if (button && document.body.dataset.chosen) return button.click();
  const link = row()?.querySelector("[data-open-act]") ?? opens(row());
  if (link) return link.click(); // opens the form, or the page where it is
  document.querySelector(
    "[data-resubmit] :is(input:not([type=hidden], [type=radio]), textarea, button)")?.focus();
};
const KEYS = {
  "/": () => { const box = document.getElementById("q"); box?.focus(); box?.select(); },
  "?": () => help()?.showModal(),
  j: () => step(1),
  k: () => step(-1),
  x: choose,
  r: resubmit,
  u: () => document.dispatchEvent(new Event("ops:refresh")),
};

/* Esc leaves a field of the page: what is typed then are keys again. */
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && field && !field.closest("dialog, [data-opened]")) field.blur();
});

let going = 0; // when a g was pressed: the key after it names a page
document.addEventListener("keydown", (event) => {
  if (!on() || event.ctrlKey || event.metaKey || event.altKey || event.repeat && event.key === "x") return;
  const target = event.target;
  const types = target.closest?.("textarea, select, [contenteditable]") ||
    target.matches?.("input:not([type=checkbox], [type=radio])");
  if (types || document.querySelector("dialog[open]")) return;
  if (Date.now() - going < 1500) {
    going = 0;
    const link = document.querySelector(`#nav [data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (event.key === "g") { going = Date.now(); return; }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

for (const opener of document.querySelectorAll("[data-keys]")) {
  opener.hidden = false;
  opener.addEventListener("click", () => help()?.showModal());
}
const toggle = document.getElementById("keys-on");
if (toggle) {
  toggle.checked = on();
  toggle.addEventListener("change", () => {
    if (toggle.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "yes");
  });
}
