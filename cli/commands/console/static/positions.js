// The positions tab: the strip, and the entries at the position that was clicked.

import { get, logPath } from "./api.js";
import { h, notice, number } from "./dom.js";
import { formChooser, itemRow } from "./entries.js";
import { Strip } from "./strip.js";

const PAGE = 100;

export function positionsTab(body, context) {
  const { name, model } = context;
  let form = "text";
  let items = [];
  let first = 0;
  let next = 0;
  let chosen = null;
  const { failed } = context;
  const strip = new Strip(name, { choose: open, marks: () => context.details?.cursors ?? [], failed });
  const list = h("div", { class: "card items", id: "items", tabindex: 0 });
  const where = h("span", { class: "faint" });
  const position = h("input", { type: "text", inputmode: "numeric", placeholder: "position", "aria-label": "Position" });
  const when = h("input", { type: "datetime-local", step: 1, "aria-label": "Time (UTC)" });
  const mayChange = model.about.changes;

  async function open(at) {
    chosen = at;
    await load(at);
  }

  async function load(from) {
    try {
      const answer = await get(logPath(name, "entries"), { start: Math.max(0, from), count: PAGE });
      [first, next, items] = [Math.max(0, from), answer.next, answer.items];
      draw();
    } catch (error) {
      failed(error);
    }
  }

  function draw() {
    list.replaceChildren(...items.map((item) => itemRow(name, item, form, { chosen: item.position === chosen })));
    if (!items.length) list.append(h("p", { class: "faint item" }, "No entries from here on."));
    where.textContent = items.length ? `positions ${number(first)} … ${number(next - 1)}` : "";
  }

  async function find(event) {
    event.preventDefault();
    if (position.value.trim()) {
      const at = Number(position.value.replace(/[ ,_]/g, ""));
      if (!Number.isSafeInteger(at) || at < 0) {
        notice(`${position.value} is no position: a number from 0 on is`);
        return;
      }
      strip.show(Math.min(at, Math.max(0, strip.tail - 1)));
      await open(at);
    } else if (when.value) {
      try {
        const { position: at } = await get(logPath(name, "find"), { time: Date.parse(`${when.value}Z`) / 1000 });
        strip.show(Math.min(at, Math.max(0, strip.tail - 1)));
        await open(at);
      } catch (error) {
        failed(error);
      }
    }
  }

  position.addEventListener("input", () => { when.value = ""; });
  when.addEventListener("input", () => { position.value = ""; });
  body.append(strip.element,
    h("form", { class: "bar find", submit: find },
      h("h2", { class: "grow" }, "Entries ", where),
      position, h("span", { class: "faint" }, "or UTC"), when, h("button", {}, "Find"),
      formChooser((wanted) => { form = wanted; draw(); }),
      h("button", { type: "button", click: () => load(first - PAGE) }, "◀ Before"),
      h("button", { type: "button", click: () => load(next) }, "After ▶")),
    list);
  if (mayChange) body.append(changes());

  async function changed(...change) {
    const answer = await context.change(...change);
    if (answer) await load(answer.position === undefined ? first : Math.max(first, answer.position - PAGE + 1));
  }

  function changes() {
    const data = h("input", { type: "text", placeholder: "an entry", "aria-label": "Entry" });
    const tags = h("input", { type: "text", placeholder: "tags, by commas", "aria-label": "Tags" });
    const at = () => {
      if (chosen === null) notice("choose a position first: click into the strip");
      return chosen;
    };
    return h("form", {
      class: "bar card",
      submit: (event) => {
        event.preventDefault();
        const wanted = tags.value.split(",").map((tag) => tag.trim()).filter(Boolean);
        changed("append", { data: data.value, tags: wanted }, (answer) => `appended at ${number(answer.position)}`);
      },
    }, data, tags, h("button", {}, "Append"), h("span", { class: "grow" }),
    h("button", { type: "button", click: () => { if (at() !== null) changed("fill", { position: chosen }, () => `filled ${number(chosen)}`); } }, "Fill the chosen hole"),
    h("button", {
      type: "button",
      click: () => {
        if (at() !== null && confirm(`Trim all positions below ${number(chosen)}? Their entries are gone then.`)) {
          changed("trim", { position: chosen }, () => `trimmed below ${number(chosen)}`);
        }
      },
    }, "Trim below it"));
  }

  let seen = -1;
  function update(again = false) {
    if (context.error) return;
    if (again) strip.refresh();
    const tail = context.row?.tail ?? context.details?.tail;
    if (tail === undefined) return;
    strip.grown(tail);
    if (seen < 0 && chosen === null) load(Math.max(context.details?.trim_point ?? context.row?.trim_point ?? 0, tail - PAGE));
    seen = tail;
  }
  const redraw = () => strip.draw();
  context.listeners.add(update);
  addEventListener("resize", redraw);
  addEventListener("look", redraw);
  strip.fetch();
  update();
  return {
    key: (event) => strip.key(event),
    left: () => {
      removeEventListener("resize", redraw);
      removeEventListener("look", redraw);
    },
  };
}
