// The strip of a log's positions: all of them above, and below a part of them, down to single ones.
//
// A map comes in cells, each with how many of its positions are in which state. A cell is a column
// as high as the strip, in which each state has its share.

import { get, logPath } from "./api.js";
import { h, number } from "./dom.js";

export const STATES = ["written", "filled", "trimmed", "unwritten", "lost", "unreadable", "unknown"];
const WORDS = { unwritten: "unwritten (hole)", unknown: "unknown (object gone)", unreadable: "unreadable (newer version)" };

const CELL_PIXELS = 3;
const LEAST_POSITIONS = 16;
const ZOOM = 2;
const NOTCH_PIXELS = 100; // of a wheel, by which a step is zoomed
const NOTCH_LINES = 3;
const SETTLE_MS = 60; // of a drag or a wheel, before the server is asked

export class Strip {
  // `choose` is called with a position that was clicked; `marks()` returns cursors, {name, position}.
  constructor(name, { choose, marks, failed }) {
    this.name = name;
    this.choose = choose;
    this.marks = marks;
    this.failed = failed;
    this.tail = 0;
    this.start = 0;
    this.end = 0;
    this.follows = true; // shows everything, whatever is appended
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
    let from = null; // where a drag began
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

  // Returns whether the key was one of the strip's.
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

  // What was drawn before is drawn at the new place at once, until the answer is there. The server is
  // asked at once, too, unless this is a step of many: then when they rest.
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
        this.all(); // it is a new log of the name
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

  // Asks again for what is shown: all clients write, fill and trim.
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

  // Hears of a new tail.
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
    const [top, bottom] = [18, height - 18];
    cells(pen, this.part, x, top, bottom - top, colour);
    pen.fillStyle = colour("--faint");
    pen.strokeStyle = colour("--text");
    pen.lineWidth = 1;
    let free = 0; // labels do not lie upon each other
    for (const stripe of this.part.stripes) {
      const left = Math.max(0, x(stripe.start));
      if (left > width || x(stripe.end ?? this.tail) < 0) continue;
      if (stripe.start > this.start) line(pen, left, 0, bottom);
      const text = `epoch ${stripe.id}, width ${stripe.width}`;
      const long = pen.measureText(text).width;
      const at = Math.min(left + 4, width - long - 2);
      if (at >= free) {
        pen.fillText(text, at, 12);
        free = at + 6 + long;
      }
    }
    const below = [{ name: "trim point", position: this.part.trim_point }, ...this.marks()];
    if (this.chosen !== null) below.unshift({ name: `▲ ${number(this.chosen)}`, position: this.chosen });
    free = 0;
    for (const { name, position } of below.filter((mark) => mark.position > 0).sort((a, b) => a.position - b.position)) {
      const at = x(position);
      if (at < 0 || at > width) continue;
      line(pen, at, bottom, height);
      const long = pen.measureText(name).width;
      const left = Math.min(at + 4, width - long - 2);
      if (left >= free) {
        pen.fillText(name, left, height - 5);
        free = left + 6 + long;
      }
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
      stripe ? `stripe of epoch ${stripe.id}, ${stripe.width} × ${stripe.unit}` : null,
    ].filter(Boolean).join("\n");
    this.tip.style.left = `${Math.min(event.offsetX + 14, this.box.clientWidth - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${this.wholeCanvas.clientHeight + 30}px`;
  }
}

function cells(pen, map, x, top, height, colour) {
  const columns = map.cells;
  for (const state of STATES) pen[state] = colour(`--state-${state}`);
  columns.start.forEach((start, at) => {
    const [left, right] = [Math.round(x(start)), Math.round(x(columns.end[at]))];
    let below = top + height;
    for (const state of STATES) {
      const share = (columns[state][at] / columns.looked[at]) * height;
      if (!share) continue;
      // What is rare is seen all the same: a pixel and a half at least.
      const tall = Math.max(share, state === "written" || state === "trimmed" ? 0 : 1.5);
      const foot = Math.max(below, top + tall);
      pen.fillStyle = pen[state];
      pen.fillRect(left, foot - tall, Math.max(1, right - left - (right - left > 4 ? 1 : 0)), tall);
      below -= share;
    }
  });
}

function line(pen, x, from, to) {
  pen.beginPath();
  pen.moveTo(Math.round(x) + 0.5, from);
  pen.lineTo(Math.round(x) + 0.5, to);
  pen.stroke();
}
