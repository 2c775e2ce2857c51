// The live tail shows new entries as they are appended, filtered by text or tag, until it is
// paused.

import { listen, logPath } from "./api.js";
import { h, number, plural } from "./dom.js";
import { formChooser, itemRow } from "./entries.js";

const KEPT = 2000;
const AGAIN_MS = 3000;

export function tailTab(body, context) {
  const { name } = context;
  let form = "text";
  let items = [];
  let paused = false;
  let unmatched = 0;
  let leftOut = 0;
  let waiting = 0;
  let stop = () => {};
  let again = 0;
  const state = h("span", { class: "faint", id: "tail-state" });
  const text = h("input", { type: "search", placeholder: "with this text", "aria-label": "Text" });
  const tag = h("input", { type: "search", placeholder: "with this tag", "aria-label": "Tag" });
  const pause = h("button", { type: "button", title: "Pause (p)", click: toggle }, "Pause");
  const list = h("div", { class: "card items", id: "tail", tabindex: 0 });
  body.append(h("form", { class: "bar", submit: (event) => { event.preventDefault(); begin(); } },
    text, tag, h("button", {}, "Filter"), pause,
    h("button", { type: "button", click: () => { items = []; draw(); } }, "Clear"),
    formChooser((wanted) => { form = wanted; draw(); }), state), list);

  function begin() {
    stop();
    clearTimeout(again);
    [items, unmatched, leftOut, waiting] = [[], 0, 0, 0];
    draw();
    stop = listen(logPath(name, "tail"), { text: text.value || null, tag: tag.value || null }, {
      heard: (event) => {
        if (event.start !== undefined) {
          tell(`from position ${number(event.start)}`);
          return;
        }
        unmatched += event.unmatched;
        leftOut += event.left_out;
        items.push(...event.items);
        if (items.length > KEPT) items.splice(0, items.length - KEPT);
        waiting += event.items.length;
        if (!paused) add(event.items);
        else tell();
      },
      ended: ({ error, hint }) => tell(error ? `${error} ${hint}` : "ended"),
      lost: () => { tell("the console does not answer; trying again"); again = setTimeout(begin, AGAIN_MS); },
    });
  }

  function tell(also = "") {
    state.textContent = [
      also, paused && `paused, ${number(waiting)} waiting`, unmatched && `${plural(unmatched, "other")} passed over`,
      leftOut && `${number(leftOut)} more than can be shown left out`,
    ].filter(Boolean).join(" · ");
  }

  function add(fresh) {
    const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 40;
    list.append(...fresh.map((item) => itemRow(name, item, form)));
    while (list.children.length > KEPT) list.firstChild.remove();
    if (atEnd) list.scrollTop = list.scrollHeight;
    waiting = 0;
    tell();
  }

  function draw() {
    list.replaceChildren();
    add(items);
    list.scrollTop = list.scrollHeight;
  }

  function toggle() {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    pause.classList.toggle("on", paused);
    if (paused) tell();
    else draw();
  }

  begin();
  return {
    key: (event) => {
      if (event.key === "p") toggle();
      return event.key === "p";
    },
    left: () => {
      stop();
      clearTimeout(again);
    },
  };
}
