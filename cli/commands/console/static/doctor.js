// The doctor's findings, each with the command to fix it.

import { listen } from "./api.js";
import { h, table } from "./dom.js";

export function doctorPage(page, model) {
  const state = h("span", { class: "faint" });
  const body = h("div", { class: "card" });
  const again = h("button", { click: run }, "Run again");
  page.append(h("div", { class: "bar" }, h("h1", { class: "grow" }, "Doctor"), state, again), body);
  let stop = () => {};

  function run() {
    stop();
    const found = [];
    again.disabled = true;
    state.textContent = `looking at ${model.about.store} …`;
    const end = (text) => {
      again.disabled = false;
      state.textContent = text;
    };
    stop = listen("doctor", {}, {
      heard: (diagnosis) => {
        found.push(diagnosis);
        body.replaceChildren(table(["", "Part", "Finding"], found.map(({ level, part, text, fix }) => [
          h("b", { class: `level-${level}` }, level), part,
          h("span", {}, text, fix ? h("div", {}, h("span", { class: "faint" }, "fix: "), h("code", {}, fix)) : null),
        ])));
      },
      ended: ({ error, hint }) => end(error ? `${error} ${hint ?? ""}` : ""),
      lost: () => end("the console does not answer"),
    });
  }
  run();
  return () => stop();
}
