// The strip of a log's positions shows all positions at the top, and below a part of them, down to
// single positions.
//
// A map has cells with the number of positions in each state. A cell is a column with the height of
// the strip, in which each state has its share.

import { get, logPath } from "./api.js";
import { h, number } from "./dom.js";

export const STATES = ["written", "filled", "trimmed", "unwritten", "lost", "unreadable", "unknown", "offloaded"];
const WORDS = { unwritten: "unwritten (hole)", unknown: "unknown (object gone)", unreadable: "unreadable (newer version)", offloaded: "offloaded (in a file)" };
const COMMON = ["written", "trimmed", "offloaded"];

const CELL_PIXELS = 3;
const SEAM_PIXELS = 8; // minimum width of a column with a border
const ROW_PIXELS = 14; // height of a label
const LABEL_ROWS = 3; // rows of labels below the strip
const LEAST_POSITIONS = 16;
const ZOOM = 2;
const NOTCH_PIXELS = 100; // wheel movement per zoom step
const NOTCH_LINES = 3;
const SETTLE_MS = 60; // pause in a drag or wheel movement before a request

export class Strip {
  // `choose` is called with the position that was clicked. `marks()` returns cursors, {name,
  // position}.
  constructor(name, { choose, marks, failed }) {
    this.name = name;
    this.choose = choose;
    this.marks = marks;
    this.failed = failed;
    this.tail = 0;
    this.start = 0;
    this.end = 0;
    this.follows = true; // shows all positions, including new ones
    this.chosen = null;
    this.asked = -SETTLE_MS;
    this.whole = null;
    this.part = null;
    this.wholeCanvas = h("canvas", { class: "whole", role: "img", "aria-label": "All positions" });
    this.partCanvas = h("canvas", { class: "part", role: "img", tabindex: 0, "aria-label": "Positions" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.range = h("span", { class: "mono", id: "range" });
    this.exact = h("span", { class: "faint", id: "exact" });
    this.box = h("div", { class: "strip" }, this.wholeCanvas, this.partCanvas, this.tip);
    const button = (label, title, does) => h("button", { title, "aria-label": title, click: does }, label);
    this.element = h("div", { class: "card" },
      h("div", { class: "bar" }, this.range, this.exact, h("span", { class: "grow" }),
        button("◀", "Left (←)", () => this.move(-0.25)), button("▶", "Right (→)", () => this.move(0.25)),
        button("−", "Zoom out (−)", () => this.zoom(ZOOM)), button("+", "Zoom in (+)", () => this.zoom(1 / ZOOM)),
        button("All", "All positions (0)", () => this.all())),
      this.box,
      h("div", { class: "legend" }, STATES.map((state) => {
        const sample = h("i");
        sample.style.background = `var(--state-${state})`;
        return h("span", {}, sample, WORDS[state] ?? state);
      })));
    this.listen();
  }

  listen() {
    const canvas = this.partCanvas;
    let from = null; // the start of a drag
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / canvas.clientWidth);
      else this.zoom(ZOOM ** Math.max(-1, Math.min(1, event.deltaY / (event.deltaMode ? NOTCH_LINES : NOTCH_PIXELS))), this.at(canvas, event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, start: this.start, end: this.end, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.showTip(event);
      if (!from) return;
      const moved = event.clientX - from.x;
      from.moved ||= Math.abs(moved) > 3;
      if (from.moved) {
        const step = Math.round((moved / canvas.clientWidth) * (from.end - from.start));
        this.go(from.start - step, from.end - step);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      if (from && !from.moved && this.tail) {
        this.chosen = Math.min(this.tail - 1, Math.floor(this.at(canvas, event)));
        this.choose(this.chosen);
        this.draw();
      }
      from = null;
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", (event) => this.zoom(1 / (ZOOM * ZOOM), this.at(canvas, event)));
    this.wholeCanvas.addEventListener("pointerdown", (event) => {
      const middle = (event.offsetX / this.wholeCanvas.clientWidth) * this.tail;
      const half = (this.end - this.start) / 2;
      this.go(middle - half, middle + half);
    });
  }

  // Returns whether the strip has handled the key.
  key(event) {
    const does = {
      ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1), "+": () => this.zoom(1 / ZOOM), "=": () => this.zoom(1 / ZOOM),
      "-": () => this.zoom(ZOOM), 0: () => this.all(), Home: () => this.go(0, this.end - this.start),
      End: () => this.go(this.tail - (this.end - this.start), this.tail),
    }[event.key];
    if (does) does();
    return Boolean(does);
  }

  at(canvas, event) {
    return this.start + (event.offsetX / canvas.clientWidth) * (this.end - this.start);
  }

  all() {
    this.follows = true;
    this.start = 0;
    this.end = this.tail;
    this.ask();
  }

  move(part) {
    const step = Math.round((this.end - this.start) * part);
    this.go(this.start + step, this.end + step);
  }

  zoom(factor, about = (this.start + this.end) / 2) {
    const length = Math.max(Math.min(LEAST_POSITIONS, this.tail), (this.end - this.start) * factor);
    if (length >= this.tail) {
      this.all();
      return;
    }
    const start = about - ((about - this.start) / (this.end - this.start || 1)) * length;
    this.go(start, start + length);
  }

  go(start, end) {
    const length = Math.round(Math.min(end - start, this.tail));
    this.start = Math.round(Math.max(0, Math.min(start, this.tail - length)));
    this.end = this.start + length;
    this.follows = length === this.tail;
    this.ask();
  }

  show(position) {
    this.chosen = position;
    const half = Math.max(LEAST_POSITIONS, (this.follows ? 256 : this.end - this.start)) / 2;
    this.go(position - half, position + half);
  }

  // The previous drawing moves to the new place until the answer arrives. The request is sent at
  // once, or, during a drag or wheel movement, at its end.
  ask() {
    this.draw();
    clearTimeout(this.timer);
    const now = performance.now();
    this.timer = setTimeout(() => this.fetch(), now - this.asked < SETTLE_MS ? SETTLE_MS : 0);
    this.asked = now;
  }

  async fetch() {
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const began = performance.now();
    try {
      const map = await this.map(this.follows ? 0 : this.start, this.follows ? null : this.end, asking.signal);
      this.tail = map.tail;
      if (this.end > map.tail && !this.follows) {
        this.all(); // a new log has the name
        return;
      }
      if (this.follows) {
        [this.start, this.end] = [0, map.tail];
        this.whole = map;
      }
      this.part = map;
      this.draw();
      this.element.dataset.took = (performance.now() - began).toFixed(1);
      this.element.dataset.shown = `${map.start}-${map.end}`;
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
    }
  }

  map(start, end, signal) {
    const cells = Math.max(16, Math.min(4096, Math.floor(this.partCanvas.clientWidth / CELL_PIXELS)));
    return get(logPath(this.name, "map"), { start, end, cells }, signal);
  }

  // Requests the shown part again, because other clients write, fill and trim.
  async refresh() {
    await this.fetch();
    if (this.follows) return;
    try {
      this.whole = await this.map(0, null);
      this.draw();
    } catch (error) {
      this.failed(error);
    }
  }

  // Receives a new tail.
  grown(tail) {
    if (tail <= this.tail && this.part) return;
    this.tail = tail;
    if (this.follows) this.all();
    else this.draw();
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name);
    const paper = (canvas) => {
      const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
      if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
      if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
      const pen = canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.fillStyle = colour("--background");
      pen.fillRect(0, 0, width, height);
      pen.font = "11px system-ui, sans-serif";
      return { pen, width, height };
    };
    this.drawWhole(paper(this.wholeCanvas), colour);
    this.drawPart(paper(this.partCanvas), colour);
    this.range.textContent = this.tail
      ? `${number(this.start)} … ${number(Math.max(this.start, this.end - 1))} of ${number(this.tail)} positions`
      : "no positions yet";
    const looked = this.part?.cells;
    const sampled = looked?.looked.some((count, at) => count < looked.end[at] - looked.start[at]);
    this.exact.textContent = !looked?.start.length ? "" : sampled ? "samples of 256 positions for each column" : "every position was looked at";
  }

  drawWhole({ pen, width, height }, colour) {
    if (!this.whole || !this.tail) return;
    const scale = width / this.tail;
    cells(pen, this.whole, (position) => position * scale, 0, height, colour);
    pen.strokeStyle = colour("--text");
    pen.lineWidth = 1.5;
    const left = this.start * scale;
    pen.strokeRect(Math.min(left, width - 3) + 0.75, 0.75, Math.max(3, (this.end - this.start) * scale) - 1.5, height - 1.5);
  }

  drawPart({ pen, width, height }, colour) {
    if (!this.part || this.end <= this.start) return;
    const x = (position) => ((position - this.start) / (this.end - this.start)) * width;
    const [top, bottom] = [18, height - LABEL_ROWS * ROW_PIXELS - 4];
    cells(pen, this.part, x, top, bottom - top, colour);
    pen.fillStyle = colour("--faint");
    pen.strokeStyle = colour("--text");
    pen.lineWidth = 1;
    const stripes = this.part.stripes.filter((stripe) => x(stripe.start) <= width && x(stripe.end ?? this.tail) >= 0)
      .map((stripe) => ({ text: `epoch ${stripe.id}, width ${stripe.width}`, at: Math.max(0, x(stripe.start)) }));
    for (const { text, at, left, row } of placed(pen, stripes, width, 1, 1)) {
      if (at > 0) line(pen, at, row < 0 ? top : 0, bottom);
      if (row === 0) pen.fillText(text, left, 12);
    }
    const below = [{ name: "trim point", position: this.part.trim_point }, ...this.marks()];
    if (this.chosen !== null) below.push({ name: `▲ ${number(this.chosen)}`, position: this.chosen });
    const marks = below.filter((mark) => mark.position > 0).map(({ name, position }) => ({ text: name, at: x(position) }))
      .filter(({ at }) => at >= 0 && at <= width);
    for (const { text, at, left, row } of placed(pen, marks, width, LABEL_ROWS, 2)) {
      line(pen, at, bottom, bottom + (row + 1) * ROW_PIXELS + 4);
      if (row >= 0) pen.fillText(text, left, bottom + (row + 1) * ROW_PIXELS);
    }
  }

  showTip(event) {
    const columns = this.part?.cells;
    const position = this.at(this.partCanvas, event);
    const at = columns ? columns.start.findIndex((start, index) => start <= position && position < columns.end[index]) : -1;
    this.tip.hidden = at < 0;
    if (at < 0) return;
    const [start, end, looked] = [columns.start[at], columns.end[at], columns.looked[at]];
    const stripe = this.part.stripes.findLast((each) => each.start <= start);
    this.tip.textContent = [
      end - start === 1 ? `position ${number(start)}` : `${number(start)} … ${number(end - 1)}`,
      ...STATES.filter((state) => columns[state][at]).map((state) => `${WORDS[state] ?? state}: ${number(columns[state][at])}`),
      looked < end - start ? `of ${number(looked)} looked at` : null,
      stripe ? `stripe of epoch ${stripe.id}, ${stripe.width} × ${stripe.stripe_unit}` : null,
    ].filter(Boolean).join("\n");
    this.tip.style.left = `${Math.min(event.offsetX + 14, this.box.clientWidth - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${this.wholeCanvas.clientHeight + 30}px`;
  }
}

function cells(pen, map, x, top, height, colour) {
  const columns = map.cells;
  for (const state of STATES) pen[state] = colour(`--state-${state}`);
  const scale = pen.getTransform().a;
  const pixel = (position) => Math.round(x(position) * scale) / scale;
  columns.start.forEach((start, at) => {
    const [left, right] = [pixel(start), pixel(columns.end[at])];
    let below = top + height;
    for (const state of STATES) {
      const share = (columns[state][at] / columns.looked[at]) * height;
      if (!share) continue;
      // Rare states stay visible: they get at least one and a half pixels.
      const tall = Math.max(share, COMMON.includes(state) ? 0 : 1.5);
      const foot = Math.max(below, top + tall);
      pen.fillStyle = pen[state];
      pen.fillRect(left, foot - tall, Math.max(1, right - left), tall);
      below -= share;
    }
    if (right - left < SEAM_PIXELS) return;
    pen.fillStyle = colour("--text");
    pen.globalAlpha = 0.3; // unlike any state, especially a hole
    pen.fillRect(right - 1, top, 1, height);
    pen.globalAlpha = 1;
  });
}

// Places labels, {text, at}, next to the lines of the marks: sets `left` and `row`, which is -1 if
// there is no space. A line goes down to its label's row, or ends above all rows, so no line
// crosses a label.
export function placed(pen, marks, width, rows, sides) {
  const measured = marks.map((mark) => {
    const long = pen.measureText(mark.text).width;
    const places = [mark.at + 4, mark.at - 4 - long].slice(0, sides);
    return { ...mark, long, places: places.filter((left) => left >= 0 && left + long <= width) };
  }).sort((a, b) => a.at - b.at);
  // Labels near each other are staggered: right of their lines in the left half, otherwise left.
  const half = measured.filter(({ at }) => at < width / 2).length;
  const steps = [...measured.slice(0, half).reverse(),
    ...measured.slice(half).map((mark) => ({ ...mark, places: [...mark.places].reverse() }))];
  const ways = [measured, steps].map((order) => placedInOrder(order, rows));
  const [shown, otherwise] = ways.map((way) => way.filter(({ row }) => row >= 0).length);
  return ways[shown >= otherwise ? 0 : 1];
}

function placedInOrder(marks, rows) {
  const labels = [];
  const over = (at, label) => label.left - 3 <= at && at <= label.left + label.long + 2;
  const meet = (one, other) => over(one.at, other) && one.row >= other.row;
  const apart = (one, other) => !meet(one, other) && !meet(other, one)
    && (one.row !== other.row || one.left + one.long + 6 <= other.left || other.left + other.long + 6 <= one.left);
  return marks.map((mark) => {
    const ways = mark.places.flatMap((left) => [...Array(rows).keys()].map((row) => ({ ...mark, left, row })));
    const found = ways.find((way) => labels.every((label) => apart(way, label)));
    if (found) labels.push(found);
    return found ?? { ...mark, row: -1 };
  });
}

function line(pen, x, from, to) {
  pen.beginPath();
  pen.moveTo(Math.round(x) + 0.5, from);
  pen.lineTo(Math.round(x) + 0.5, to);
  pen.stroke();
}
