/* Refreshes the page every two seconds, and submits forms without leaving it. Elements with data-live
   are replaced by id; of a data-live-list only rows are added and removed, so that the focus, open
   details and selected options stay. */
"use strict";

const pulse = document.getElementById("pulse");
let asked = 0;
let shown = 0;
let waiting = false;

function adopt(attributesOf, mine) {
  for (const { name } of [...mine.attributes]) {
    if (!attributesOf.hasAttribute(name)) mine.removeAttribute(name);
  }
  for (const { name, value } of attributesOf.attributes) {
    if (mine.getAttribute(name) !== value) mine.setAttribute(name, value);
  }
}

function sync(list, mine) {
  const rows = [...list.children];
  const ids = new Set(rows.map((row) => row.id));
  for (const row of [...mine.children]) if (!ids.has(row.id)) row.remove();
  rows.forEach((row, index) => {
    const known = document.getElementById(row.id) ?? document.importNode(row, true);
    if (mine.children[index] !== known) mine.insertBefore(known, mine.children[index] ?? null);
  });
}

function show(fresh) {
  const focused = document.activeElement;
  for (const part of fresh.querySelectorAll("[data-live], [data-live-class], [data-live-list]")) {
    const mine = document.getElementById(part.id);
    if (!mine) continue;
    if ("liveList" in part.dataset) { sync(part, mine); continue; }
    adopt(part, mine);
    if ("live" in part.dataset && mine.innerHTML !== part.innerHTML) {
      mine.replaceChildren(...[...part.childNodes].map((node) => document.importNode(node, true)));
    }
  }
  if (!focused.isConnected) document.getElementById("faults")?.focus();
}

function say(word, tone) {
  if (pulse.textContent !== word) pulse.textContent = word;
  pulse.className = `badge ${tone}`;
}

async function refresh(request) {
  const number = ++asked;
  waiting = true;
  try {
    const answer = await request;
    if (!answer.ok) throw new Error(answer.status);
    const text = await answer.text();
    if (number > shown) {
      shown = number;
      show(new DOMParser().parseFromString(text, "text/html"));
    }
    say("Live", "good");
  } catch {
    say("Offline", "bad");
  }
  waiting = false;
}

function poll() {
  if (!document.hidden && !waiting) {
    refresh(fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) }));
  }
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (form.method !== "post") return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, submitter));
  refresh(fetch(submitter?.getAttribute("formaction") ?? form.action, { method: "POST", body }));
});

document.addEventListener("visibilitychange", poll);
say("Live", "good");
setInterval(poll, 2000);
