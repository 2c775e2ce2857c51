// The frame of the page: navigation, the poll of all logs that all pages share, and keys.

import { get, listen, post } from "./api.js";
import { h, notice, plural, span, visit } from "./dom.js";
import { doctorPage } from "./doctor.js";
import { logPage } from "./log.js";
import { logsPage } from "./logs.js";
import { sequencersPage } from "./sequencers.js";

const KEYS = [
  ["g", "all logs"], ["/", "filter"], ["↑ ↓ Enter", "choose a log, open it"], ["1 … 5", "tabs of a log"],
  ["← →", "move along the positions"], ["+ −", "zoom"], ["0", "all positions"],
  ["Home End", "first positions, last ones"], ["PgUp PgDn", "move through the logs"], ["p", "pause the tail"],
  ["d", "light or dark"], ["?", "these keys"],
];

// The known state of all logs: rows by name, and the last event. Pages subscribe to it.
const model = {
  about: null, rows: new Map(), last: null, history: new Map(), listeners: new Set(),
  subscribe(listener) {
    this.listeners.add(listener);
    if (this.last) listener();
    return () => this.listeners.delete(listener);
  },
};

const HISTORY_MAX = 60;
let leave = () => {};
let shown = null; // the address of the current page
let stopWatching = null;

function heard(event) {
  model.last = event;
  if (event.begins) model.rows.clear(); // data of an earlier connection may be out of date
  for (const row of event.changed) model.rows.set(row.name, row);
  for (const name of event.removed) {
    model.rows.delete(name);
    model.history.delete(name);
  }
  for (const [name, row] of model.rows) {
    const past = model.history.get(name) ?? [];
    past.push(row.rate);
    if (past.length > HISTORY_MAX) past.shift();
    model.history.set(name, past);
  }
  const state = document.getElementById("state");
  state.className = event.error ? "bad" : "";
  state.textContent = event.error
    ? `can't read the logs: ${event.error}`
    : `${plural(model.rows.size, "log")}${event.left_out ? `, ${event.left_out} more` : ""} · looked in ${span(event.seconds)}`;
  for (const listener of model.listeners) listener();
}

function watch() {
  stopWatching?.();
  stopWatching = listen("watch", {}, {
    endless: true,
    heard,
    lost: (closed) => {
      const state = document.getElementById("state");
      state.className = "bad";
      state.textContent = "the console does not answer; trying again";
      if (closed) setTimeout(start, 2000);
    },
  });
}

function show() {
  if (!model.about) return; // it is starting, or waits for the token
  leave();
  shown = location.hash;
  const [path, query] = location.hash.slice(1).split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  const parameters = new URLSearchParams(query ?? "");
  for (const link of document.querySelectorAll("nav a")) {
    const current = link.hash === `#/${parts[0] === "log" ? "" : parts.join("/")}`;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const page = document.getElementById("page");
  page.replaceChildren();
  document.getElementById("notices").replaceChildren(); // they belong to the previous page
  if (parts[0] === "log" && parts[1]) leave = logPage(page, model, parts[1], parameters);
  else if (parts[0] === "sequencers") leave = sequencersPage(page, model);
  else if (parts[0] === "doctor") leave = doctorPage(page, model);
  else leave = logsPage(page, model);
}

// People also type addresses, so an invalid encoding is used as it is.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function start() {
  try {
    model.about = await get("about");
  } catch (error) {
    if (error.status === 401) await askForToken();
    else {
      notice(`the console does not answer: ${error.message}`, { hint: error.hint });
      setTimeout(start, 3000);
    }
    return;
  }
  document.getElementById("store").textContent =
    `${model.about.store}${model.about.changes ? " · changes allowed" : ""}`;
  document.title = `zlog · ${model.about.store}`;
  watch();
  show();
}

// The token is in the address after `#`, which browsers do not send to servers, or the user types
// it.
async function askForToken() {
  const given = /^#token=(.+)$/.exec(location.hash)?.[1];
  history.replaceState(null, "", location.pathname);
  try {
    if (given) {
      await post("session", { token: decoded(given) });
      await start();
      return;
    }
  } catch (error) {
    notice(error.message, { hint: error.hint });
  }
  const field = h("input", { type: "password", autocomplete: "current-password", "aria-label": "Token" });
  document.getElementById("page").replaceChildren(h("form", {
    class: "card bar",
    submit: async (event) => {
      event.preventDefault();
      try {
        await post("session", { token: field.value.trim() });
        await start();
      } catch (error) {
        notice(error.message, { hint: error.hint });
      }
    },
  }, h("label", {}, "The console's token "), field, h("button", {}, "Enter")));
  field.focus();
}

function changeLook() {
  const root = document.documentElement;
  const dark = root.dataset.look ? root.dataset.look === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.look = dark ? "light" : "dark";
  localStorage.setItem("zlog-look", root.dataset.look);
  dispatchEvent(new Event("look"));
}

function help() {
  if (document.querySelector("dialog[open]")) return;
  const box = h("dialog", { close: () => box.remove() }, h("h2", {}, "Keys"),
    h("table", {}, KEYS.map(([key, does]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, does)))),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  document.body.append(box);
  box.showModal();
}

addEventListener("hashchange", () => { if (location.hash !== shown) show(); });
addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" && event.target.matches("button, a")) return;
  const does = { d: changeLook, "?": help, g: () => visit("#/") }[event.key];
  if (does) does();
  else dispatchEvent(new CustomEvent("key", { detail: event }));
});
document.getElementById("look").addEventListener("click", changeLook);
document.getElementById("help").addEventListener("click", help);
if (localStorage.getItem("zlog-look")) document.documentElement.dataset.look = localStorage.getItem("zlog-look");
start();
