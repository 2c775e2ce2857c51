// The leading sequencer, the sequencers that logs name, and changes seen by the console.

import { h, number, table, time } from "./dom.js";

export function sequencersPage(page, model) {
  const body = h("div");
  page.append(h("h1", {}, "Sequencers"), body);

  function update() {
    const { sequencer, sequencer_error: error, events } = model.last;
    const by = new Map();
    for (const row of model.rows.values()) {
      const source = row.ordering === "object" ? "none: ordered by its object" : row.sequencer;
      if (!row.error) by.set(source, (by.get(source) ?? 0) + 1);
    }
    body.replaceChildren(
      h("div", { class: "card", id: "leader" }, error ? h("p", { class: "bad" }, error) : sequencer
        ? facts(sequencer)
        : h("p", {}, "No sequencer is announced. An embedded store's logs share one in memory; on Ceph start one: ",
          h("code", {}, "zlog seqr"))),
      h("h2", {}, "Whom logs name"),
      h("div", { class: "card" }, table(["Sequencer", "#Logs"], [...by].map(([address, logs]) => [
        address === "store:" ? "store: (shared through the store)" : address || "none", number(logs),
      ]))),
      h("h2", {}, "Changes since this console has been looking"),
      h("div", { class: "card" }, events.length
        ? table(["At (UTC)", "Log", "What", "Before", "After"], [...events].reverse().map((each) => [
          time(each.at), link(each.log), each.what, each.before, each.after]))
        : h("p", { class: "faint" }, "None. Fail-overs show here as they come; a log's page has its layouts, with the sequencer of each epoch.")),
    );
  }
  return model.subscribe(update);
}

const link = (name) => h("a", { href: `#/log/${encodeURIComponent(name)}?tab=layouts` }, name);

// STATUS as a list, in which lists of pools or logs are tables.
function facts(status) {
  const plain = Object.entries(status).filter(([, value]) => typeof value !== "object" || value === null);
  const nested = Object.entries(status).filter(([, value]) => typeof value === "object" && value !== null);
  return h("div", {},
    table(["Leader", ""], plain.map(([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? number(value) : String(value)])),
    nested.map(([name, value]) => {
      const rows = Array.isArray(value) ? value : [value];
      const columns = [...new Set(rows.flatMap((row) => (typeof row === "object" ? Object.keys(row) : ["value"])))];
      if (!rows.length || !columns.length) return null;
      return h("div", {}, h("h2", {}, name.replaceAll("_", " ")), table(columns, rows.map((row) =>
        columns.map((column) => {
          const cell = typeof row === "object" ? row[column] : row;
          return typeof cell === "object" ? JSON.stringify(cell) : String(cell ?? "");
        }))));
    }));
}
