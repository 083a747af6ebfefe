/* What pages that poll need and htmx does not bring: no polling in hidden tabs, and words when a request
   fails. And the browser's time zone, for scripts that write times. Anything else works by attributes alone. */
"use strict";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`zone=${zone}`)) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
}

const RELOAD_PAUSE_MS = 60000; // a page that stays away is not reloaded again and again
const isPoll = (event) => event.detail.elt?.getAttribute("hx-trigger")?.includes("every");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && isPoll(event)) event.preventDefault();
});

/* The page has a sentence for each cause (_failures.html), and a place for it. */
const say = (cause) => {
  const place = document.getElementById("failure");
  const words = document.getElementById("failures")?.content.querySelector(`[data-cause="${cause}"]`);
  if (!place || !words) return;
  place.replaceChildren(words.cloneNode(true));
  document.querySelectorAll(".toast").forEach((toast) => toast.remove()); // of a click before
};

const causeOf = (status) => {
  if (!status) return "offline";
  if (status === 429) return "often";
  return status >= 500 ? "server" : "reload";
};

/* The visitor may no longer see what the page shows: have it looked up anew. */
const reloaded = () => {
  if (!document.getElementById("failures")) return false; // pages of staff have their own way
  const key = `reloaded:${location.pathname}`;
  if (Date.now() - Number(sessionStorage.getItem(key)) < RELOAD_PAUSE_MS) return false;
  sessionStorage.setItem(key, Date.now());
  location.reload();
  return true;
};

/* A field that sends itself goes back to what the rest of the page shows. */
const putBack = (field) => {
  if (field.matches("select")) {
    field.value = field.dataset.shown ?? [...field.options].find((one) => one.defaultSelected)?.value;
  } else if (field.matches("form.basket-form")) field.reset();
};

for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    const status = event.detail.xhr?.status ?? 0;
    if (isPoll(event) && [403, 404].includes(status) && reloaded()) return;
    say(causeOf(status));
    putBack(event.detail.elt);
  });
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  document.getElementById("failure")?.replaceChildren();
  if (event.detail.elt.matches("select")) event.detail.elt.dataset.shown = event.detail.elt.value;
});
