/* On the page that says that the database is away: look whether it is back, and then be the page that
   was asked for. Asks ever less often; what was sent with a form is not sent again by itself. */
let wait = 3000;
const look = async () => {
  try {
    const answer = await fetch("/readyz", { cache: "no-store" });
    if ((await answer.json()).database === "ok") { location.reload(); return; }
  } catch { /* the server is away, too */ }
  wait = Math.min(30000, wait * 1.5);
  setTimeout(look, wait);
};
if (document.querySelector("[data-comes-back]")) setTimeout(look, wait);
