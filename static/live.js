/* What pages that poll need and htmx does not bring: no polling in hidden tabs, and a sign when the
   connection is lost. Anything else works by attributes alone. */
"use strict";

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
