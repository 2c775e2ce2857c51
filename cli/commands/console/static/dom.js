// Creates elements, and formats numbers for people.

// Creates an element. Attributes that are functions become event listeners, and null attributes are
// ignored.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export const number = (value) => Number(value).toLocaleString("en");

export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

export const rate = (value) => (value && value < 10 ? value.toFixed(1) : number(Math.round(value)));

export const percent = (value) => (value > 0 && value < 0.005 ? "<1%" : `${Math.round(value * 100)}%`);

export function span(seconds) {
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= length) return `${(seconds / length).toFixed(seconds < 10 * length ? 1 : 0)} ${unit}`;
  }
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

export const time = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);

// Opens a page at once. The browser's own event comes later, and keys typed until then would go to
// the previous page.
export function visit(hash) {
  location.hash = hash;
  dispatchEvent(new Event("hashchange"));
}

// Creates a table with a header and rows of cells. A cell may be an element.
export function table(head, rows, attributes = {}) {
  const cell = (tag) => (value, at) => h(tag, { class: head[at].startsWith("#") ? "right" : null },
    tag === "th" ? value.replace("#", "") : value);
  return h("div", { class: "wide" }, h("table", attributes,
    h("thead", {}, h("tr", {}, head.map(cell("th")))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell("td")))))));
}

export function notice(text, { hint = "", fine = false } = {}) {
  const box = h("div", { class: `notice${fine ? " fine" : ""}` }, text, hint ? h("div", { class: "faint" }, hint) : null);
  document.getElementById("notices").append(box);
  setTimeout(() => box.remove(), fine ? 4000 : 9000);
}
