// The list of all logs. Only visible rows exist, so ten thousand logs scroll as fast as ten.

import { bytes, h, number, percent, rate, visit } from "./dom.js";

const COLUMNS = [
  ["name", "Log", (row) => row.name],
  ["rate", "Entries/s", (row) => row.rate],
  [null, "last looks", null],
  ["tail", "Tail", (row) => row.tail],
  ["bytes", "Bytes", (row) => row.bytes ?? -1],
  ["lag", "Lag", (row) => row.lag ?? -1],
  ["trimmed", "Trimmed", (row) => row.trim_point],
  ["fullness", "Full", (row) => row.fullness ?? -1],
  ["width", "Layout", (row) => row.width],
  ["epoch", "Epoch", (row) => row.epoch],
];

// The state of the list that is restored when the user comes back from a log.
const kept = { by: "rate", reverse: false, chosen: null, text: "", top: 0 };

export function logsPage(page, model) {
  let rows = [];
  const filter = h("input", { type: "search", placeholder: "part of a name", "aria-label": "Filter", value: kept.text, input: update });
  const shown = h("span", { class: "faint" });
  const head = h("div", { class: "row head", role: "row" }, COLUMNS.map(([key, label], at) =>
    h("span", { class: at ? "right" : null, role: "columnheader" },
      key ? h("button", { "data-sort": key, click: () => sort(key) }, label) : h("span", { class: "faint" }, label))));
  const body = h("div", { class: "body", role: "rowgroup" });
  const box = h("div", { class: "card logs", role: "grid", tabindex: 0, "aria-label": "Logs", scroll: draw }, head, body);
  page.append(h("div", { class: "bar" }, filter, shown), box);
  const rowPixels = () => parseFloat(getComputedStyle(box).getPropertyValue("--row"));

  function sort(key) {
    kept.reverse = kept.by === key ? !kept.reverse : false;
    kept.by = key;
    update();
  }

  function update() {
    const { by, reverse } = kept;
    const value = COLUMNS.find(([key]) => key === by)[2];
    kept.text = filter.value;
    const text = filter.value.toLowerCase();
    rows = [...model.rows.values()].filter((row) => row.name.toLowerCase().includes(text));
    const order = (a, b) => (by === "name" ? (a.name < b.name ? -1 : 1) : value(b) - value(a) || (a.name < b.name ? -1 : 1));
    rows.sort(reverse ? (a, b) => order(b, a) : order);
    for (const button of head.querySelectorAll("button")) button.classList.toggle("on", button.dataset.sort === by);
    shown.textContent = text ? `${number(rows.length)} of ${number(model.rows.size)}` : "";
    body.style.height = `calc(${rows.length} * var(--row))`;
    draw();
  }

  function draw() {
    kept.top = box.scrollTop;
    const tall = rowPixels();
    const first = Math.max(0, Math.floor(box.scrollTop / tall) - 5);
    const last = Math.min(rows.length, first + Math.ceil(box.clientHeight / tall) + 10);
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    body.replaceChildren(...rows.slice(first, last).map((row, at) => line(row, first + at, colour)));
    if (!rows.length && model.last && (filter.value || !model.last.error)) {
      body.append(h("p", { class: "faint" }, filter.value
        ? "No log has this in its name."
        : "There are no logs yet. Make one: zlog create NAME"));
    }
  }

  function line(row, at, colour) {
    const cells = row.error
      ? [h("span", { class: "bad error", title: row.error }, row.error)]
      : [
        right(rate(row.rate)), spark(model.history.get(row.name) ?? [], colour), right(number(row.tail)),
        right(row.bytes === null ? "" : bytes(row.bytes)), right(row.lag === null ? "" : number(row.lag)),
        right(number(row.trim_point)), right(row.fullness === null ? "" : percent(row.fullness)),
        right(`${row.width}×${row.stripe_unit}`), right(`${row.epoch} ${row.state}`),
      ];
    const link = h("a", {
      class: "row", role: "row", href: `#/log/${encodeURIComponent(row.name)}`, tabindex: -1,
      "aria-selected": row.name === kept.chosen ? "true" : "false", "data-log": row.name,
      click: () => { kept.chosen = row.name; },
    }, h("span", { class: "name", title: row.name }, row.name), cells);
    link.style.top = `calc(${at} * var(--row))`;
    return link;
  }

  function move(step) {
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.name === kept.chosen);
    const next = at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step));
    kept.chosen = rows[next].name;
    const [tall, above] = [rowPixels(), head.offsetHeight];
    const top = next * tall;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + tall + above > box.scrollTop + box.clientHeight) box.scrollTop = top + tall + above - box.clientHeight;
    draw();
  }

  function key({ detail: event }) {
    const does = {
      ArrowDown: () => move(1), ArrowUp: () => move(-1), PageDown: () => move(20), PageUp: () => move(-20),
      Enter: () => {
        const log = rows.find((row) => row.name === kept.chosen) ?? (filter.value ? rows[0] : null);
        if (log) visit(`#/log/${encodeURIComponent(log.name)}`);
      },
      "/": () => filter.focus(),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  const { top } = kept;
  const unsubscribe = model.subscribe(update);
  box.scrollTop = top;
  addEventListener("key", key);
  addEventListener("resize", draw);
  addEventListener("look", draw);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.focus();
    else if (event.key !== "/") key({ detail: event });
  });
  return () => {
    unsubscribe();
    removeEventListener("key", key);
    removeEventListener("resize", draw);
    removeEventListener("look", draw);
  };
}

const right = (text) => h("span", { class: "right" }, text);

// The rates of the last polls, each as a part of the highest one.
function spark(rates, colour) {
  const canvas = h("canvas", { width: 180, height: 40, "aria-hidden": "true" });
  canvas.style.cssText = "width:90px;height:20px";
  if (!rates.some((value) => value > 0)) return canvas;
  const highest = Math.max(...rates);
  const pen = canvas.getContext("2d");
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  rates.forEach((value, at) => pen.lineTo(178 - (rates.length - 1 - at) * 3, 37 - (value / highest) * 34));
  pen.stroke();
  return canvas;
}
