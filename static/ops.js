/* What the operators' pages need besides htmx: ages that count on, polls that keep out of the way,
   details that stay open, forms that are sent once. Without it the pages work, at rest. */
const part = () => document.getElementById("live");
const isPoll = (event) => event.detail.elt?.id === "live";

/* The database's time, as the page brought it: the browser's clock may be wrong. */
let ahead = 0;
const measure = () => {
  const now = part()?.dataset.now;
  if (now) ahead = Date.parse(now) - Date.now();
};

const spell = (seconds) => {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
};

const tick = () => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const since = (Date.now() + ahead - Date.parse(time.dateTime)) / 1000;
    const past = Math.max(0, since);
    if ("ago" in time.dataset) time.textContent = `${spell(past)} ago`;
    if ("age" in time.dataset) time.textContent = spell(past);
    if ("until" in time.dataset) time.textContent = since > -1 ? "now" : `in ${spell(-since)}`;
  }
};

/* Whoever types, or has a dialog open, must not have the page changed under the hands. */
const busy = () => {
  if (document.querySelector("dialog[open]")) return true;
  if (document.activeElement?.closest("#content form")) return true;
  const typed = part()?.querySelectorAll("form input:not([type=hidden])") ?? [];
  return [...typed].some((input) => input.value !== input.defaultValue);
};

const SAID = {
  live: "Live",
  paused: "Paused while you type",
  offline: "Offline: this may be out of date",
};
const say = (state) => {
  const pill = document.querySelector("[data-live-state]");
  if (!pill || pill.classList.contains(state)) return;
  pill.className = `pill ${state}`;
  pill.textContent = SAID[state];
  pill.hidden = false;
};

document.addEventListener("htmx:beforeRequest", (event) => {
  if (!isPoll(event)) return;
  if (document.hidden || busy()) {
    event.preventDefault();
    say("paused");
  }
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (isPoll(event)) say(event.detail.successful ? "live" : "offline");
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && part()) window.htmx.trigger(part(), "refresh");
});

let open = [];
document.addEventListener("htmx:beforeSwap", () => {
  open = [...document.querySelectorAll("#live details[open]")].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  measure();
  tick();
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-once]")) return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
/* Back from another page: the form is as it was, and may be sent again. */
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-once]")) delete form.dataset.sent;
});

if (part()) {
  measure();
  say("live");
  setInterval(tick, 1000);
}
