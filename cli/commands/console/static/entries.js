// A list of entries and gaps, with their data as text, JSON or hex.

import { logPath } from "./api.js";
import { bytes, h, number } from "./dom.js";

export const FORMS = ["text", "JSON", "hex"];

const HEX_COLUMNS = 16;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
// Characters that are invisible or change the order of others.
const UNSEEN = /([\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd])/u;

export function formChooser(changed) {
  return h("select", { "aria-label": "Show data as", change: (event) => changed(event.target.value) },
    FORMS.map((form) => h("option", { value: form }, form)));
}

export function itemRow(name, item, form, { chosen = false } = {}) {
  if (item.gap) {
    const last = item.end - 1;
    const where = item.position === last ? number(item.position) : `${number(item.position)} … ${number(last)}`;
    const detail = [item.why, item.by && `by ${item.by.slice(0, 8)}`, item.at, ...(item.objects ?? [])].filter(Boolean).join(" · ");
    return h("div", { class: `item gap ${item.gap}${chosen ? " chosen" : ""}`, "data-position": item.position },
      h("span", { class: "mono" }, where), h("span", {}, item.gap), h("span", {}, detail));
  }
  const held = Uint8Array.from(atob(item.data), (character) => character.charCodeAt(0));
  const cut = item.bytes > held.length
    ? h("a", { href: `/api/${logPath(name, `data/${item.position}`)}`, download: true }, ` all ${bytes(item.bytes)}`)
    : null;
  return h("div", { class: `item${chosen ? " chosen" : ""}`, "data-position": item.position },
    h("span", { class: "mono" }, number(item.position)),
    h("span", { class: "mono faint" }, item.timestamp.replace("T", " ").replace("Z", "")),
    h("div", { class: "content" }, h("pre", {}, shown(held, form)), cut,
      item.tags.length ? h("div", { class: "tags" }, item.tags.map((tag) => h("span", {}, visible(tag)))) : null));
}

function shown(held, form) {
  if (form === "hex") return hex(held);
  let text = decoder.decode(held);
  if (form === "JSON") {
    try {
      text = JSON.stringify(JSON.parse(text, asWritten), null, 2);
    } catch {
      // Show it as text.
    }
  }
  return visible(text);
}

// Numbers keep their written form, because JavaScript would round some.
const asWritten = (key, value, { source } = {}) => (typeof value === "number" && source && JSON.rawJSON ? JSON.rawJSON(source) : value);

function visible(text) {
  return text.split(UNSEEN).map((part) => (UNSEEN.test(part) && part !== "\n" && part !== "\t" ? escaped(part) : part));
}

const escaped = (character) => h("span", { class: "escape" }, character === "\ufffd" ? character
  : `\\u{${character.codePointAt(0).toString(16).padStart(4, "0")}}`);

function hex(held) {
  const lines = [];
  for (let at = 0; at < held.length; at += HEX_COLUMNS) {
    const row = [...held.subarray(at, at + HEX_COLUMNS)];
    const digits = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(HEX_COLUMNS * 3 - 1);
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits}  ${text}`);
  }
  return lines.join("\n");
}
