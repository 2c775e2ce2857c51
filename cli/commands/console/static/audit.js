// The audit tab: the findings of `zlog check`, and how to fix them.

import { listen, logPath } from "./api.js";
import { bytes, h, number, percent, plural, table } from "./dom.js";

// Only objects on Ceph have replicas. An embedded store may have a backup.
const repair = (log, ceph) => (ceph ? `zlog check ${log} --repair` : "zlog store restore BACKUP");
const FIXES = {
  lost: (log, ceph, object) => (object.includes("://") ? "restore the file" : repair(log, ceph)),
  "damaged-object": repair,
  "damaged-replica": repair,
  "wrong-index": (log) => `zlog check ${log} --rebuild-index`,
};

function where({ position, end, step, object }) {
  const last = position === null ? null : end - 1;
  return h("span", {}, position === null ? "" : `${number(position)}${last > position ? ` … ${number(last)}` : ""} `,
    last > position && step > 1 ? `every ${step} ` : "", h("code", {}, object));
}

export function auditTab(body, context) {
  let stop = () => {};
  const meter = h("progress", { max: 1, value: 0 });
  const state = h("span", { class: "faint", id: "check-state" });
  const run = h("button", { click: begin }, "Check now");
  const result = h("div", { class: "card" }, h("p", { class: "faint" },
    "Every object compares its entries' checksums, and the head's word with what is there. No data travels, unless there are MACs to check or files to read, and nothing is changed."));
  body.append(h("div", { class: "bar" }, run, meter, state), result);

  function begin() {
    stop();
    run.disabled = true;
    const found = [];
    let summary = null;
    const draw = () => result.replaceChildren(
      summary ? h("p", { id: "check-summary" }, `${found.length ? `${plural(found.length, "finding")}, ${number(found.filter((each) => each.serious).length)} of them serious` : "All is well"}: `
        + `${number(summary.entries)} entries, ${bytes(summary.bytes)}, in ${number(summary.objects)} objects${summary.files ? ` and ${plural(summary.files, "file")}` : ""}; `
        + `${number(summary.filled)} filled, ${number(summary.trimmed)} trimmed, ${number(summary.unwritten)} unwritten, ${number(summary.lost)} lost.`
        + (summary.listed ? "" : " Orphaned objects were not looked for: the console may not list objects.")
        + (summary.forged === null ? " MACs were not checked: that takes the log's key (--mac-key-file)." : "")) : "",
      found.length ? table(["", "Finding", "Where", "Detail"], found.map((each) => [
        h("b", { class: each.serious ? "level-failure" : "level-note" }, each.serious ? "serious" : "note"), each.kind,
        where(each),
        h("span", {}, each.detail, FIXES[each.kind] ? h("div", {}, h("span", { class: "faint" }, "fix: "), h("code", {}, FIXES[each.kind](context.name, context.model.about.store.startsWith("ceph:"), each.object))) : null),
      ])) : "");
    const end = (text) => {
      run.disabled = false;
      state.textContent = text;
      draw();
    };
    draw();
    stop = listen(logPath(context.name, "check"), {}, {
      heard: (event) => {
        if (event.summary) {
          summary = event.summary;
          meter.value = 1;
          return;
        }
        found.push(...event.findings);
        meter.value = event.total ? event.done / event.total : 0;
        state.textContent = event.total ? percent(event.done / event.total) : "looking at objects …";
        if (event.findings.length) draw();
      },
      ended: ({ error, hint }) => end(error ? `${error} ${hint}` : "done"),
      lost: () => end("the console does not answer"),
    });
  }
  return { left: () => stop() };
}
