// The page of a log: its state, and tabs for positions, the live tail, cursors, layouts and the
// audit.

import { get, logPath, post } from "./api.js";
import { auditTab } from "./audit.js";
import { bytes, h, notice, number, percent, plural, rate, span, table, time } from "./dom.js";
import { positionsTab } from "./positions.js";
import { tailTab } from "./tail.js";

const TABS = ["positions", "tail", "cursors", "layouts", "check"];
const DETAILS_MS = 5000;

// Tabs get `context`: the log's name, its known state, and a way to change the log. Its listeners
// are called with news, and with whether the tab should request its data again.
export function logPage(page, model, name, parameters) {
  const context = {
    name, model, details: null, error: null, row: model.rows.get(name), parameters,
    listeners: new Set(),
    // A missing log is reported by a single message.
    failed(error) {
      if (error.status === 404) refresh();
      else if (page.contains(body)) notice(error.message, { hint: error.hint });
    },
    async change(what, body, done) {
      try {
        const answer = await post(logPath(name, what), body);
        notice(done(answer), { fine: true });
        await refresh();
        return answer;
      } catch (error) {
        notice(error.message, { hint: error.hint });
        return null;
      }
    },
  };
  const facts = h("dl", { class: "facts" });
  const problem = h("div", { class: "card", id: "problem", hidden: true });
  const tabs = h("div", { role: "tablist" });
  const body = h("section", { role: "tabpanel" });
  page.append(h("h1", {}, name), problem, facts, tabs, body);
  let leave = { key: () => false, left: () => {} };

  function open(tab) {
    leave.left();
    context.listeners.clear();
    for (const button of tabs.children) button.setAttribute("aria-selected", button.dataset.tab === tab);
    body.replaceChildren();
    history.replaceState(null, "", `#/log/${encodeURIComponent(name)}?tab=${tab}`);
    leave = { key: () => false, left: () => {}, ...RENDER[tab](body, context) };
  }
  for (const tab of TABS) {
    tabs.append(h("button", { role: "tab", "data-tab": tab, click: () => open(tab) }, tab[0].toUpperCase() + tab.slice(1)));
  }

  async function refresh() {
    const again = Boolean(context.details);
    try {
      context.details = await get(logPath(name));
      context.error = null;
    } catch (error) {
      context.error = error;
    }
    showFacts();
    for (const listener of context.listeners) listener(again);
  }

  function showFacts() {
    const { details, row, error } = context;
    problem.hidden = !error;
    facts.hidden = Boolean(error);
    tabs.hidden = body.hidden = error?.status === 404;
    if (error) {
      problem.replaceChildren(h("p", { class: "bad" }, error.message), h("p", { class: "faint" }, error.hint), h("a", { href: "#/" }, "All logs"));
      return;
    }
    const content = details?.content;
    const fact = (label, value, title) => h("div", { title: title ?? value, "data-fact": label }, h("dt", {}, label), h("dd", {}, value));
    const tail = row?.tail ?? details?.tail;
    facts.replaceChildren(...[
      tail !== undefined && fact("tail", number(tail)),
      row && fact("entries/s", rate(row.rate)),
      content && fact("entries", number(content.entries)),
      content && fact("bytes", bytes(content.bytes), `${number(content.bytes)} bytes, ${number(content.stored_bytes)} in objects`),
      content?.offloaded_stripes ? fact("offloaded", bytes(content.offloaded_bytes),
        `${number(content.offloaded_entries)} entries in ${plural(content.offloaded_stripes, "stripe")}, files of ${bytes(content.file_bytes)}`) : null,
      details && fact("trimmed below", number(details.trim_point)),
      details && fact("layout", `${details.width} × ${details.stripe_unit}`, `${plural(details.stripes, "stripe")} in the view`),
      content && fact("live objects full", percent(content.fullness)),
      details && fact("epoch", number(details.epoch)),
      details && fact("sequencer", source(details)),
      details && fact("appended by", details.writer || (details.mirror ? "its source (mirror)" : details.read_only ? "no client (read-only)" : "any client")),
      details?.cursors.length ? fact("furthest cursor", `${number(details.lag)} behind`) : null,
      details && fact("kept", kept(details.retention), "retention"),
    ].filter(Boolean));
  }

  const unsubscribe = model.subscribe(() => {
    context.row = model.rows.get(name);
    if (!context.row && context.details && !context.error) refresh(); // the log was removed
    showFacts();
    for (const listener of context.listeners) listener(false);
  });
  const key = ({ detail: event }) => {
    const tab = TABS[Number(event.key) - 1];
    if (tab) open(tab);
    else if (leave.key(event)) event.preventDefault();
  };
  addEventListener("key", key);
  refresh();
  const timer = setInterval(() => { if (!document.hidden) refresh(); }, DETAILS_MS);
  open(TABS.includes(parameters.get("tab")) ? parameters.get("tab") : TABS[0]);
  return () => {
    leave.left();
    unsubscribe();
    clearInterval(timer);
    removeEventListener("key", key);
  };
}

function kept(retention) {
  if (!retention) return "everything";
  return [
    retention.age !== null && span(retention.age), retention.bytes !== null && bytes(retention.bytes),
    retention.entries !== null && plural(retention.entries, "entry").replace("entrys", "entries"),
    retention.compact_after !== null && `newest of each tag after ${span(retention.compact_after)}`,
  ].filter(Boolean).join(", ");
}

// The progress of an age limit, which counts from when retention first saw the entries.
function age(retention, report) {
  if (!retention || (retention.age === null && retention.compact_after === null)) return "";
  if (!report.known_age) return "Ages count from when retention first sees an entry, and it has seen none yet.";
  return `Retention first saw the oldest entries at least ${span(report.known_age)} ago; ages count from then.`;
}

function cursorsTab(body, context) {
  function update() {
    const details = context.details;
    if (!details) return;
    const mayChange = context.model.about.changes;
    const rows = details.cursors.map((cursor) => [
      cursor.name, number(cursor.position), number(cursor.lag), time(cursor.updated),
      mayChange ? h("button", {
        click: () => {
          if (confirm(`Remove cursor ${cursor.name}? Its reader begins anew, and trims pass where it was.`)) {
            context.change("remove-cursor", { cursor: cursor.name }, () => `removed cursor ${cursor.name}`);
          }
        },
      }, "Remove") : "",
    ]);
    const report = details.retention_report;
    body.replaceChildren(
      h("div", { class: "card" }, rows.length ? table(["Cursor", "#Position", "#Behind the tail", "Committed (UTC)", ""], rows)
        : h("p", { class: "faint" }, "No cursors: no reader has asked this log to keep its place.")),
      ...(details.groups.length ? [h("h2", {}, "Groups"), h("div", { class: "card" }, groupsTable(details.groups))] : []),
      h("h2", {}, "Retention"),
      h("div", { class: "card" }, h("p", {}, `Kept: ${kept(details.retention)}. ${age(details.retention, report)}`,
        report.doubt ? h("span", { class: "bad" }, ` Clocks disagree: ${report.doubt}`) : null)),
      h("h2", {}, "Producers"),
      h("div", { class: "card" }, details.producers.length
        ? table(["Producer", "#First incomplete number", "#Parts", "Last (UTC)"], details.producers.map((each) => [
          each.name, number(each.sequence), number(each.parts), each.updated.slice(0, 19).replace("T", " ")]))
        : h("p", { class: "faint" }, "None.")),
    );
  }
  context.listeners.add(update);
  update();
  return {};
}

function groupsTable(groups) {
  return table(["Group", "Mode", "#Lag", "#Oldest", "#Members", "#In progress", "#Redelivered", "#Dead letters"], groups.map((group) => {
    if (group.error) return [group.name, `can't be read: ${group.error}`, "", "", "", "", "", ""];
    const queue = group.mode === "queue" ? [group.in_progress, group.redeliveries, group.dead].map(number) : ["", "", ""];
    const alive = group.members.filter((member) => member.alive);
    const names = h("span", { title: alive.map((member) => member.name).join(", ") }, number(alive.length));
    return [group.name, group.mode, number(group.lag), group.oldest ? span(group.age) : "", names, ...queue];
  }));
}

function layoutsTab(body, context) {
  const list = h("div", { class: "card" });
  body.append(list);
  if (context.model.about.changes) body.prepend(changes(context));
  let epoch = 0;
  async function update() {
    if (!context.details || context.details.epoch === epoch) return;
    epoch = context.details.epoch;
    try {
      const views = await get(logPath(context.name, "views"));
      const rows = views.reverse().map((view, at) => {
        const before = views[at + 1];
        return [number(view.epoch), reason(before, view), source(view),
          view.stripes.map((stripe) => `${number(stripe.start)} … ${stripe.end === null ? "" : number(stripe.end - 1)} × ${stripe.width}${stripe.file ? " (offloaded)" : ""}`).join(", "),
          Object.entries(view.options).map(([key, value]) => `${key}=${value}`).join(" ")];
      });
      list.replaceChildren(table(["#Epoch", "What changed", "Sequencer", "Stripes (positions × width)", "Options"], rows));
    } catch (error) {
      context.failed(error);
    }
  }
  context.listeners.add(update);
  update();
  return {};
}

// What assigns positions.
const source = ({ ordering, sequencer }) => ordering === "object" ? "ordered by its object" : sequencer || "none";

// The differences between a view and the one before it, which show fail-overs.
function reason(before, view) {
  if (!before) return "";
  const [was, is] = [before.stripes.at(-1), view.stripes.at(-1)];
  return [
    before.ordering !== view.ordering ? `ordering ${view.ordering}` : before.sequencer !== view.sequencer && (view.sequencer ? "fail-over: another sequencer" : "went on without a sequencer"),
    is.id !== was.id && (is.width === was.width ? "a new stripe" : `width ${was.width} → ${is.width}`),
    JSON.stringify(before.options) !== JSON.stringify(view.options) && "options",
    before.read_only !== view.read_only && (view.read_only ? "made read-only" : "made writable"),
    JSON.stringify(before.writer) !== JSON.stringify(view.writer) && "another writer",
  ].filter(Boolean).join(", ") || "the same layout, a new epoch";
}

function changes(context) {
  const width = h("input", { type: "number", min: 1, max: 1024, required: true, "aria-label": "Width" });
  const ask = (text, ...change) => { if (confirm(text)) context.change(...change); };
  const now = () => { width.value ||= context.details?.width ?? ""; };
  context.listeners.add(now);
  now();
  return h("div", { class: "bar card" },
    h("label", {}, "Width ", width),
    h("button", { click: () => ask(`Change the width of ${context.name} to ${width.value}?`, "reconfigure", { width: Number(width.value) }, ({ epoch }) => `epoch ${epoch}`) }, "Change"),
    h("button", { click: () => ask(`Make ${context.name} read-only? Appends are refused then.`, "read-only", { read_only: true }, ({ epoch }) => `read-only from epoch ${epoch} on`) }, "Make read-only"),
    h("button", { click: () => ask(`Let ${context.name} take appends again?`, "read-only", { read_only: false }, ({ epoch }) => `writable from epoch ${epoch} on`) }, "Make writable"));
}

const RENDER = { positions: positionsTab, tail: tailTab, cursors: cursorsTab, layouts: layoutsTab, check: auditTab };
