// Passkeys: a form's button opens the browser's dialog, and what comes of it is sent with the form. Forms are
// hidden where scripts or the browser have none.

const calls = {
  create: async ({ publicKey }) => {
    // the device keeps it, and asks for its owner: so it stands for both factors
    publicKey.authenticatorSelection = {
      ...publicKey.authenticatorSelection, residentKey: "required", requireResidentKey: true, userVerification: "required",
    };
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
  },
  get: async ({ publicKey }) =>
    navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) }),
};

const ofPage = () => JSON.parse(document.getElementById("passkey-options").textContent);

async function ofServer(form) {
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  return answer.json(); // fails where it was asked for too often: that leads to a page
}

async function credential(form) {
  const kind = form.dataset.passkey;
  if (kind === "login") return calls.get((await ofServer(form)).request_options);
  const data = ofPage();
  return kind === "create" ? calls.create(data.creation_options) : calls.get(data.request_options);
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !window.PublicKeyCredential?.parseRequestOptionsFromJSON;
  const failed = document.querySelector("[data-passkey-failed]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failed.hidden = true;
    try {
      form.elements.credential.value = JSON.stringify((await credential(form)).toJSON());
    } catch {
      failed.hidden = false; // also where the dialog was closed
      return;
    }
    form.submit();
  });
}
