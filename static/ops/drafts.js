/* What is typed into a form stays in this tab, in case the session ends before it is sent. After the login the same
   user finds it filled in. Never stored: passwords, files, and fields with the name of a secret. */
const KEY = "draft", USER = document.querySelector("script[data-user]")?.dataset.user;
const SECRET = /api|auth|token|key|secret|pass|signature|http_cookie/i;
const NOT_STORED = ["hidden", "password", "file", "submit", "button", "image", "reset"];
const NOTICE = "Nothing was done: your session had ended. Check what you typed, and send it again.";
const PARTIAL = " Passwords, files and secrets were not stored: enter them again.";

/* By attributes: a field may be called "action". */
const addressOf = (form) => new URL(form.getAttribute("action") ?? "", location).href;
const forms = () => [...document.querySelectorAll("form[method=post]")];
const withoutQuery = (address) => address.split(/[?#]/)[0];
const isSecret = (field) => ["password", "file"].includes(field.type) || SECRET.test(field.name);
const stored = (form) => [...form.elements].filter((field) => field.name && !NOT_STORED.includes(field.type) && !isSecret(field));

const store = (event) => {
  const form = event.target.closest?.("form[method=post]");
  if (!form || !USER) return;
  const names = new Set(stored(form).map((field) => field.name));
  const fields = [...new FormData(form)].filter(([name]) => names.has(name));
  const draft = { user: USER, action: addressOf(form), inPlace: form.hasAttribute("hx-post"), fields };
  sessionStorage.setItem(KEY, JSON.stringify(draft));
};
/* Captured, before htmx or an act of the page takes the form away. */
for (const name of ["change", "submit"]) document.addEventListener(name, store, true);
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && event.detail.requestConfig.elt.matches("form[method=post]")) sessionStorage.removeItem(KEY);
});

const fill = (form, draft) => {
  const seen = {};
  for (const field of stored(form)) {
    const values = draft.fields.filter(([name]) => name === field.name).map(([, value]) => value);
    const nth = seen[field.name] = (seen[field.name] ?? -1) + 1; // of several fields with that name
    if (["checkbox", "radio"].includes(field.type)) field.checked = values.includes(field.value);
    else if (field.options) [...field.options].forEach((option) => { option.selected = values.includes(option.value); });
    else if (values.length) field.value = values[nth] ?? values[0];
  }
  for (let above = form; above; above = above.parentElement) if (above.matches("details")) above.open = true;
  form.dataset.opened = ""; // a page that polls leaves it alone
};

/* On a page of the user: fill the draft in if the login or a stale token kept it from being sent, and forget it. */
const restore = (draft) => {
  sessionStorage.removeItem(KEY);
  if (draft.user !== USER || !draft.ended) return;
  const form = forms().find((each) => addressOf(each) === draft.action)
    ?? forms().find((each) => withoutQuery(addressOf(each)) === withoutQuery(draft.action));
  if (!form && draft.inPlace && location.href !== draft.action) {
    sessionStorage.setItem(KEY, JSON.stringify(draft));
    location.replace(draft.action); // the form of an act in place has a page of its own
    return;
  }
  if (form) fill(form, draft);
  const hasSecrets = form && [...form.elements].some((field) => field.type !== "hidden" && isSecret(field));
  const notice = Object.assign(document.createElement("p"), { className: "strip warning errornote", tabIndex: -1, textContent: NOTICE + (hasSecrets ? PARTIAL : "") });
  notice.dataset.restored = "";
  notice.setAttribute("role", "alert");
  (form ?? document.getElementById("content")).prepend(notice);
  notice.focus();
};

const draft = JSON.parse(sessionStorage.getItem(KEY));
if (draft) {
  if (document.querySelector("[data-ended=form], .ended")) draft.ended = true;
  if (USER) restore(draft);
  else sessionStorage.setItem(KEY, JSON.stringify(draft));
}
