/* What the operators' pages need besides htmx: polls that keep out of the way and say how they fare,
   ages that count on, local time, details that stay open, forms that are sent once. Without it the
   pages work, at rest. */
const part = () => document.getElementById("live");
/* By what asked, as it was: an act's form replaces the same part. */
const isPoll = (event) => event.detail.requestConfig?.elt?.id === "live";
const EVERY = 3000, OLD = 10000, MOST = 60000, SELDOM = 30000; // milliseconds

/* The database's time, as the page brought it: the browser's clock may be wrong. */
let ahead = 0;
const measure = () => {
  const now = part()?.dataset.now;
  if (now) ahead = Date.parse(now) - Date.now();
};

/* As `durations.py` writes whole seconds. */
const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
const spell = (seconds) => {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  const [large, name, small, restName] = UNITS.find(([least]) => whole >= least);
  const count = Math.floor(whole / large), rest = Math.floor(whole % large / small);
  return `${count.toLocaleString("en")} ${name}` + (rest && count < 10 ? ` ${rest} ${restName}` : "");
};

/* --- Times ------------------------------------------------------------------------------------ */
const two = (number, digits = 2) => String(number).padStart(digits, "0");
const local = (moment) =>
  `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
  `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
const utc = (moment) => moment.toISOString().slice(0, 19).replace("T", " ");
const isLocal = () => localStorage.getItem("ops-zone") === "local";

const tick = () => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const since = (Date.now() + ahead - Date.parse(time.dateTime)) / 1000;
    const past = Math.max(0, since);
    if ("ago" in time.dataset) time.textContent = `${spell(past)} ago`;
    if ("age" in time.dataset) time.textContent = spell(past);
    const left = `in ${spell(Math.ceil(-since))}`; // up: eight hours are not 7 h at once
    if ("until" in time.dataset) time.textContent = since < 0 ? left : "now";
    if ("due" in time.dataset) time.textContent = since < 0 ? left : `${spell(past)} ago`;
  }
};

const inZone = () => {
  for (const time of document.querySelectorAll("time[data-clock]")) {
    const moment = new Date(time.dateTime);
    const words = isLocal() ? local(moment) : utc(moment);
    time.textContent = `${words}.${two(moment.getMilliseconds(), 3)}`;
  }
  const name = isLocal() ? "local" : "UTC";
  for (const zone of document.querySelectorAll("[data-zone]")) zone.textContent = name;
  for (const button of document.querySelectorAll("[data-zone-switch]")) {
    button.hidden = false;
    button.textContent = isLocal() ? "Local time" : "UTC";
  }
};
document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-zone-switch]")) return;
  localStorage.setItem("ops-zone", isLocal() ? "utc" : "local");
  inZone();
});
/* On hover a time says both. */
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  if (!time) return;
  const moment = new Date(time.dateTime);
  time.title = `${utc(moment)} UTC · ${local(moment)} local`;
});

/* --- Polling ---------------------------------------------------------------------------------- */
/* A user who chooses, types, reads in a table or has a dialog open must not have the page changed
   under the hands. Returns why it must not, or nothing. */
let acted; // the link that has the focus only because its row was acted upon
const busy = () => {
  if (document.querySelector("dialog[open]")) return "while a dialog is open";
  if (document.body.dataset.chosen) return "while rows are selected";
  if (document.querySelector("#live :is([data-opened], .errors, [aria-invalid=true], .htmx-request)")) return "while a form is open";
  const active = document.activeElement;
  if (active?.closest("#content :is(input, select, textarea)")) return "while you type";
  if (active && active.id !== acted) {
    if (active.closest("#live summary")) return "while a section has the focus";
    if (active.closest("#live :is(.scroll, table)")) {
      return active.matches("a, button") ? "while a link or button has the focus" : "while you read the table";
    }
  }
  const typed = part()?.querySelectorAll(
    "form :is(input:not([type=hidden], [type=checkbox], [type=radio]), textarea)") ?? [];
  if ([...typed].some((field) => field.value !== field.defaultValue)) return "while you type";
  return "";
};

/* A press that finds another element at its end than at its beginning is none. */
let pressed = 0; // since when; one whose end was not reported is over too
document.addEventListener("pointerdown", (event) => { pressed = event.target.closest?.("#live") ? Date.now() : 0; });
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => setTimeout(() => { pressed = 0; say(); })); // after its click
}

let lastAnswer = Date.now(), failures = 0, notBefore = 0, signedOut = false;
const ageOf = () => spell((Date.now() - lastAnswer) / 1000);
const STATE_TEXT = {
  live: () => "Live",
  paused: () => `Paused ${busy()}` + (Date.now() - lastAnswer > 6 * OLD ? `: ${ageOf()} old` : ""),
  stale: () => `Stale: ${ageOf()} old`,
  offline: () => `Offline: ${ageOf()} old`,
};
const state = () => {
  if (failures || signedOut) return "offline";
  if (busy()) return "paused";
  return Date.now() - lastAnswer > OLD ? "stale" : "live";
};
const say = () => {
  const pill = document.querySelector("[data-live-state]");
  if (!pill || !part()) return;
  const now = state();
  const words = STATE_TEXT[now]();
  pill.hidden = false;
  if (pill.textContent !== words) pill.textContent = words;
  if (!pill.classList.contains(now)) pill.className = `pill ${now}`;
  let again = document.getElementById("refresh");
  if (!again) {
    again = document.createElement("button");
    Object.assign(again, { id: "refresh", type: "button", className: "button quiet small", textContent: "Refresh" });
    again.addEventListener("click", refresh);
    pill.before(again);
  }
  again.classList.toggle("ops-unseen", now === "live");
};

/* A manual refresh ignores what pauses the polling. */
const refresh = () => { if (part()) window.htmx.trigger(part(), "refresh"); };
document.addEventListener("ops:refresh", refresh);

/* While a user is busy a poll changes nothing: now and then one shows whether the session has ended.
   What an act has brought stays for an interval: a poll may be due at that moment. */
let askedAt = 0, broughtAt = 0;
const isFresh = () => Date.now() - broughtAt < EVERY;
const waits = () => document.hidden || signedOut || Date.now() < notBefore || isFresh() || (busy() && Date.now() - askedAt < SELDOM);
const byHand = (event) => event.detail.requestConfig?.triggeringEvent?.type === "refresh";
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!isPoll(event)) return;
  if (!byHand(event) && waits()) event.preventDefault();
  else askedAt = Date.now();
  say();
});
/* Who began meanwhile must not have it changed under the hands either: the next poll brings it. */
let passedOver = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isPoll(event)) return;
  passedOver = event.detail.shouldSwap && !byHand(event) && (Date.now() - pressed < 2000 || isFresh() || busy() !== "");
  if (passedOver) event.detail.shouldSwap = false;
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (!isPoll(event)) return;
  const status = event.detail.xhr?.status ?? 0;
  if (event.detail.successful) {
    Object.assign(document.getElementById("signed-out") ?? {}, { hidden: true });
    [failures, notBefore, signedOut] = [0, 0, false];
    if (!passedOver) lastAnswer = Date.now();
  } else if (status === 401 || status === 403) {
    signedOut = true;
    Object.assign(document.getElementById("signed-out") ?? {}, { hidden: false });
  } else {
    /* each time half as often: a server that comes back is not to be met by everybody at once */
    failures += 1;
    notBefore = Date.now() + Math.min(MOST, EVERY * 2 ** (failures - 1)) * (0.8 + 0.4 * Math.random());
  }
  say();
});
/* A page that polls does not keep the session alive: its user is asked before it ends. */
const ending = document.getElementById("session-ends");
document.addEventListener("htmx:afterRequest", (event) => {
  const left = event.detail.xhr?.getResponseHeader("Session-Seconds");
  if (ending) ending.hidden = !left || Number(left) > 120;
});
ending?.addEventListener("click", async (event) => {
  if (!event.target.matches("button")) return;
  await fetch(location, { method: "HEAD" });
  ending.hidden = true;
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden || !part()) return;
  if (signedOut || !busy()) refresh(); // they may have signed in again in another tab
});
/* A press gives the focus: other words, on a narrow page, would move what is pressed from under it. */
document.addEventListener("focusin", () => { if (!pressed) say(); });
document.addEventListener("focusout", () => setTimeout(say));

/* The title says how many tasks wait for a decision. */
const entitle = () => {
  const count = document.getElementById("nav")?.dataset.attention ?? "";
  document.title = (count ? `(${count}) ` : "") + document.title.replace(/^\([^)]*\) /, "");
};

let open = [];
document.addEventListener("htmx:beforeSwap", () => {
  open = [...document.querySelectorAll("#live details[open]")].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (!isPoll(event)) {
    acted = document.activeElement?.matches("a[autofocus]") ? document.activeElement.id : undefined;
    broughtAt = Date.now();
  }
  measure();
  tick();
  inZone();
  entitle();
  offerCopies();
  inSight();
  say();
});

/* The error of an action in place appears next to its form; typed values stay. */
const TROUBLE = {
  401: "Your session has ended. Nothing was changed.",
  403: "Your account lacks the permission. Nothing was changed.",
  404: "The object no longer exists. Nothing was changed.",
  503: "The database is unavailable. Try again later: a repeated request is not carried out twice.",
};
/* Sent as browsers do, the form leads to the login, and is shown again after it as it was. */
const onward = (form) => {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button quiet small", textContent: "Log in and keep what is typed" });
  button.addEventListener("click", () => form.submit());
  return button;
};
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    const asked = event.detail.requestConfig?.elt;
    if (isPoll(event) || !asked?.isConnected) return;
    let notice = asked.parentElement.querySelector("[data-trouble]");
    if (!notice) {
      notice = Object.assign(document.createElement("p"), { className: "wrong", role: "alert" });
      notice.dataset.trouble = "";
      asked.append(notice);
      if (asked.matches("a")) asked.after(notice);
    }
    const status = event.detail.xhr?.status ?? 0;
    notice.textContent = TROUBLE[status] ?? (status ? `The server answered with an error (${status}).` : "The server did not answer.") + " Try again: a repeated request is not carried out twice.";
    if (status === 401 && asked.matches("form")) notice.append(" ", onward(asked));
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") event.target.closest?.("[data-opened]")?.querySelector("[data-close]")?.click();
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-once]")) return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
/* Copy buttons: of what they name, or of the text beside them. */
const offerCopies = () => {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
};
const announce = (words) => { document.getElementById("announced").textContent = words; };
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy || button.parentElement.querySelector("pre").textContent);
  button.textContent = "Copied";
  announce("Copied");
  setTimeout(() => { button.textContent = "Copy"; announce(""); }, 2000);
});

/* Back from another page: the form is as it was, and may be sent again. */
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-once]")) delete form.dataset.sent;
});

/* The tab of this page, where the tabs are in a line that scrolls. */
const inSight = () => {
  const tabs = document.getElementById("nav"), here = tabs?.querySelector("[aria-current]");
  if (here) tabs.scrollLeft += here.getBoundingClientRect().left - tabs.getBoundingClientRect().left - 40;
};

measure();
inZone();
entitle();
offerCopies();
inSight();
if (part()) say();
setInterval(() => { tick(); say(); }, 1000);
