/* The rows that are chosen: kept by id, so that they stay chosen while the rows around them change,
   and on every page of the same search. Without it the boxes work, for one page. */
const list = () => document.getElementById("chosen");
const boxes = () => [...document.querySelectorAll("input[form=chosen][name=task]")];
const place = () => `ops-chosen:${list().dataset.search}`;

let chosen = new Set();
let scope = "";
const keep = () => sessionStorage.setItem(place(), JSON.stringify([...chosen]));
const recall = () => { chosen = new Set(JSON.parse(sessionStorage.getItem(place()) ?? "[]")); };

const show = () => {
  const form = list();
  if (!form) return;
  for (const box of boxes()) {
    box.checked = chosen.has(box.value);
    box.closest("tr").classList.toggle("chosen", box.checked);
  }
  const all = document.querySelector("[data-choose-all]");
  if (all) {
    all.hidden = false;
    all.checked = boxes().length > 0 && boxes().every((box) => box.checked);
    all.indeterminate = !all.checked && boxes().some((box) => box.checked);
  }
  for (const other of form.querySelectorAll("input[data-elsewhere]")) other.remove();
  const here = new Set(boxes().map((box) => box.value));
  for (const id of chosen) {
    if (here.has(id)) continue;
    const other = document.createElement("input");
    Object.assign(other, { type: "hidden", name: "task", value: id });
    other.dataset.elsewhere = "";
    form.append(other);
  }
  const select = form.querySelector("select[name=query]");
  if (select) {
    if (scope && [...select.options].some((option) => option.value === scope)) select.value = scope;
    select.options[0].textContent = `${chosen.size} selected`;
    for (const button of form.querySelectorAll("button[name=act]")) {
      button.disabled = !chosen.size && !select.value;
    }
  }
  const clear = form.querySelector("[data-chosen-clear]");
  if (clear) clear.hidden = !chosen.size;
  if (chosen.size || select?.value) document.body.dataset.chosen = chosen.size;
  else delete document.body.dataset.chosen;
};

document.addEventListener("change", (event) => {
  const form = list();
  if (!form || event.target.form !== form) return;
  if (event.target.matches("[data-choose-all]")) {
    for (const box of boxes()) event.target.checked ? chosen.add(box.value) : chosen.delete(box.value);
  } else if (event.target.name === "task") {
    event.target.checked ? chosen.add(event.target.value) : chosen.delete(event.target.value);
  } else if (event.target.name === "query") {
    scope = event.target.value;
  } else return;
  keep();
  show();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-choose-none]")) return;
  chosen.clear();
  scope = "";
  const select = list().querySelector("select[name=query]");
  if (select) select.value = "";
  keep();
  show();
});
document.addEventListener("submit", (event) => {
  if (event.target !== list()) return;
  /* what was begun is the operation's by now */
  sessionStorage.removeItem(place());
});
document.addEventListener("htmx:afterSwap", show);
window.addEventListener("pageshow", () => {
  if (!list()) return;
  recall();
  show();
});
