// Shows the OpenAPI document of this server. Asks for a token only if the server needs one; it is kept in this page alone.
"use strict";

const form = document.getElementById("token-form");

async function show(token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch("/api/v1/openapi.json", { headers });
  if (!answer.ok) {
    const problem = await answer.json();
    form.hidden = false;
    document.getElementById("refused").textContent = token ? problem.detail : "";
    return;
  }
  form.hidden = true;
  const ui = SwaggerUIBundle({
    spec: await answer.json(),
    domNode: document.getElementById("docs"),
    deepLinking: true,
    docExpansion: "none",
    validatorUrl: null,
    onComplete: () => token && ui.preauthorizeApiKey("token", token),
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show(document.getElementById("token").value.trim());
});
show("");
