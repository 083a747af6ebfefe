/* What pages that poll need and htmx does not bring: no polling in hidden tabs, and a sign when the
   connection is lost. And the browser's time zone, for scripts that write times. Anything else works by
   attributes alone. */
"use strict";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`zone=${zone}`)) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
}

const isPoll = (event) => event.detail.elt?.getAttribute("hx-trigger")?.includes("every");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && isPoll(event)) event.preventDefault();
});

for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(name, () => { document.body.dataset.connection = "lost"; });
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) delete document.body.dataset.connection;
});
