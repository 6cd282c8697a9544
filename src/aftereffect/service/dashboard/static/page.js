/* Enhancements of pages that work without them: focus on the error, one submission per click, and a plan that follows
   the form. */
"use strict";

const problem = document.getElementById("problem");
if (problem) problem.focus();

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  // A disabled button is not part of the submitted data, so buttons are disabled after the browser has read the form.
  setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }), 0);
});

// A page restored from the browser's back/forward cache must not keep its buttons disabled.
window.addEventListener("pageshow", () => {
  document.querySelectorAll("button[disabled]").forEach((button) => { button.disabled = false; });
});

// Somebody else may report: look every half minute, and show the page anew unless something is being entered.
const main = document.querySelector("main[data-seen]");
if (main) {
  let changed = false;
  document.addEventListener("input", () => { changed = true; });
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.querySelector("main[data-seen]");
    if (!now || now.dataset.seen === main.dataset.seen) return;
    if (!changed) location.reload();
    else if (!document.getElementById("newer")) {
      main.insertAdjacentHTML("afterbegin", '<div class="note warn" id="newer" role="status"><p>Somebody else has reported since. <a href="">Show the page anew</a></p></div>');
    }
  }, Number(main.dataset.every || 30) * 1000);
}

// A file of totals is read into the field for lines, so that it is seen before it is sent. It is text in UTF-8 or, as
// some spreadsheets write it, in that of Windows.
const file = document.getElementById("field-file");
if (file) {
  file.closest(".field").hidden = false;
  file.addEventListener("change", async () => {
    const bytes = await file.files[0].arrayBuffer();
    const read = (encoding) => new TextDecoder(encoding, { fatal: true }).decode(bytes);
    const lines = document.getElementById("field-lines");
    try {
      lines.value = read("utf-8");
    } catch {
      lines.value = read("windows-1252");
    }
  });
}

const create = document.getElementById("create");
if (create) {
  const shown = document.getElementById("plan");
  let asked = 0;
  const preview = async () => {
    const mine = ++asked;
    const body = new URLSearchParams(new FormData(create));
    const answer = await fetch("/experiments/plan", { method: "POST", body });
    // An incomplete form is refused; the previous plan stays until the form is complete.
    if (!answer.ok || mine !== asked) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    shown.replaceChildren(...page.getElementById("plan").childNodes);
  };
  let waiting;
  create.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { preview().catch(() => {}); }, 400);
  });
}
