// Shows values under the pointer, zooms, and switches series. Figures are complete without it.
// A figure's element has boxes, scales and ids in data-plots (see report/interaction.py).
// Points are read from its paths; zooming moves them and writes new ticks.
"use strict";
(() => {
const NS = "http://www.w3.org/2000/svg", COMMANDS = /[A-Za-z]|-?\d*\.?\d+(?:e-?\d+)?/g;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const make = (name, attributes, parent) => {
  const element = document.createElementNS(NS, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (parent) parent.append(element);
  return element;
};

// -- numbers ---------------------------------------------------------------------------------

const scaled = (axis, value) => axis.scale === "log" ? Math.log10(value)
  : axis.scale === "nines" ? -Math.log10(1 - value) : value;
const unscaled = (axis, value) => axis.scale === "log" ? 10 ** value
  : axis.scale === "nines" ? 1 - 10 ** -value : value;
const share = (axis, value) =>
  (scaled(axis, value) - scaled(axis, axis.from)) / (scaled(axis, axis.to) - scaled(axis, axis.from));
const valueAt = (axis, part) =>
  unscaled(axis, scaled(axis, axis.from) + part * (scaled(axis, axis.to) - scaled(axis, axis.from)));
const number = (value, digits) => value.toLocaleString("en-US",
  Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits });

function shown(axis, value) {
  if (axis.scale === "nines") {
    const digits = Math.ceil(-Math.log10(1 - value) - 1e-6) - 2;
    return (100 * value).toFixed(Math.max(digits, 0)) + " %";
  }
  const near = (axis.ticks || []).find(([at]) => Math.abs(share(axis, at) - share(axis, value)) < 1e-4);
  return (near ? near[1] : number(value, 4)) + (axis.unit ? " " + axis.unit : "");
}

// Ticks in view, as [position, text]: names stay, numbers get round steps.
function ticksOf(axis, low, high, about) {
  if (axis.ticks) return axis.ticks.filter(([at]) => at >= low && at <= high);
  if (axis.scale === "log" && high / low > 3) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const digit of high / low > 1000 ? [1] : [1, 2, 5]) {
        const at = Number(digit + "e" + power);
        if (at >= low && at <= high) ticks.push(at);
      }
    if (ticks.length >= 3) {
      const every = Math.ceil(ticks.length / (about + 2));
      return ticks.filter((_, index) => index % every === 0).map(at => [at, number(at, 6)]);
    }
  }
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5].find(digit => digit * power >= rough * 0.999) || 10);
  const ticks = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++)
    ticks.push([count * step, (count * step).toLocaleString("en-US",
      { maximumFractionDigits: clamp(2 - Math.floor(Math.log10(step)), 0, 12) })]);
  return ticks;
}

// -- a figure --------------------------------------------------------------------------------

class Figure {
  constructor(svg) {
    this.svg = svg;
    svg.setAttribute("role", "group"); // an image has no parts to switch
    this.prefix = svg.closest("figure").id + "-";
    const drawing = JSON.parse(svg.dataset.plots);
    this.plots = drawing.plots;
    this.hidden = new Set();
    this.switches = new Map(); // by label: shows (false) or hides (true) a series
    for (const plot of this.plots)
      for (const part of plot.parts) {
        part.element = this.element(part.id);
        if (part.tip && part.element) part.element.classList.add("has-tip");
      }
    drawing.legend.forEach((label, index) => this.makeSwitch(label, index));
    this.flat = this.plots.filter(plot => plot.box);
    this.view = [0, 1, 0, 1];
    svg.addEventListener("pointermove", event => this.moved(event));
    svg.addEventListener("pointerleave", () => this.forget());
    if (this.flat.length) {
      svg.addEventListener("pointerdown", event => this.pressed(event));
      svg.addEventListener("pointerup", event => this.released(event));
      svg.addEventListener("pointercancel", () => this.endDrag());
      svg.addEventListener("dblclick", () => this.zoom([0, 1, 0, 1]));
    }
  }

  element(id) { return document.getElementById(this.prefix + id); }

  place(event) { // in points of the drawing
    const point = new DOMPoint(event.clientX, event.clientY);
    return point.matrixTransform(this.svg.getScreenCTM().inverse());
  }

  // Converts points of the drawing to points in view, and back.
  get moves() {
    const [left, right, low, high] = this.view, [x, y, width, height] = this.flat[0].box;
    const a = 1 / (right - left), d = 1 / (high - low);
    return { a, d, e: x - a * (x + left * width), f: y - d * (y + (1 - high) * height) };
  }

  // -- series on and off

  makeSwitch(label, index) {
    const text = this.element("legend-" + index), key = this.element(`legend-${index}-key`);
    if (!text || !this.parts(label).length) return;
    const boxes = [text, key].filter(Boolean).map(part => part.getBBox());
    const x = Math.min(...boxes.map(box => box.x)), y = Math.min(...boxes.map(box => box.y));
    const right = Math.max(...boxes.map(box => box.x + box.width));
    const bottom = Math.max(...boxes.map(box => box.y + box.height));
    const area = make("rect", { x: x - 2, y: y - 1, width: right - x + 4, height: bottom - y + 2,
      class: "switch", role: "button", tabindex: 0, "aria-pressed": "true", "aria-label": label },
      this.svg);
    const set = off => {
      if (off) this.hidden.add(label); else this.hidden.delete(label);
      area.setAttribute("aria-pressed", String(!off));
      for (const part of [text, key]) if (part) part.classList.toggle("off", off);
      for (const part of this.parts(label)) part.element.classList.toggle("gone", off);
    };
    this.switches.set(label, set);
    const toggle = () => set(!this.hidden.has(label));
    area.addEventListener("click", toggle);
    area.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
  }

  parts(label) {
    return this.plots.flatMap(plot => plot.parts.filter(part => part.element && part.series === label));
  }

  // -- values

  // The points of a part: its markers, or the corners of its path.
  points(part) {
    if (!part.points) {
      part.points = [];
      const marks = part.element.querySelectorAll("use");
      for (const mark of marks)
        part.points.push([Number(mark.getAttribute("x")), Number(mark.getAttribute("y"))]);
      if (!marks.length)
        for (const path of part.element.querySelectorAll(":scope > path"))
          part.points.push(...corners(path));
    }
    return part.points;
  }

  nearest(at) {
    const { a, d, e, f } = this.moves;
    let best = null, least = Infinity;
    for (const plot of this.flat) {
      const [x, y, width, height] = plot.box;
      for (const part of plot.parts) {
        if (!part.values || !part.element || this.hidden.has(part.series)) continue;
        for (const point of this.points(part)) {
          const px = a * point[0] + e, py = d * point[1] + f;
          if (px < x - 1 || px > x + width + 1 || py < y - 1 || py > y + height + 1) continue;
          const far = (px - at.x) ** 2 + (py - at.y) ** 2;
          if (far < least) { least = far; best = { plot, part, point, px, py }; }
        }
      }
    }
    return best;
  }

  moved(event) {
    if (this.drag) return this.dragged(event);
    const part = event.target.closest(".has-tip");
    if (part) {
      const hit = this.plots.flatMap(plot => plot.parts).find(candidate => candidate.element === part);
      this.ring(null);
      return tip.say(event, hit.tip);
    }
    const at = this.place(event);
    const hit = this.flat.some(plot => within(plot.box, at)) && this.nearest(at);
    if (!hit) return this.forget();
    const [x, y, width, height] = hit.plot.box;
    const value = valueAt(hit.plot.y, 1 - (hit.point[1] - y) / height);
    const where = valueAt(hit.plot.x, (hit.point[0] - x) / width);
    this.ring(hit);
    tip.say(event, hit.part.series || "", [
      [hit.plot.y.name, shown(hit.plot.y, value)], [hit.plot.x.name, shown(hit.plot.x, where)]]);
  }

  ring(hit) {
    if (this.mark) this.mark.remove();
    this.mark = hit && make("circle", { cx: hit.px, cy: hit.py, r: 4, class: "ring" }, this.svg);
  }

  forget() { this.ring(null); tip.hide(); }

  // -- zoom

  pressed(event) {
    const at = this.place(event);
    if (event.button || event.pointerType === "touch" || !within(this.flat[0].box, at)) return;
    if (event.target.closest(".switch")) return;
    event.preventDefault(); // selects no text
    this.drag = { from: at, to: at };
    this.svg.setPointerCapture(event.pointerId);
  }

  // The dragged area in the box. A narrow area covers the whole of the other axis.
  area() {
    const [x, y, width, height] = this.flat[0].box, { from, to } = this.drag;
    const across = Math.abs(from.x - to.x) >= 6, along = Math.abs(from.y - to.y) >= 6;
    const part = (position, begin, size) => clamp((position - begin) / size, 0, 1);
    const h = across ? [from.x, to.x].map(position => part(position, x, width)).sort((p, q) => p - q) : [0, 1];
    const v = along ? [from.y, to.y].map(position => 1 - part(position, y, height)).sort((p, q) => p - q) : [0, 1];
    return across || along ? [...h, ...v] : null;
  }

  dragged(event) {
    this.drag.to = this.place(event);
    this.forget();
    if (this.band) this.band.remove();
    const area = this.area(), [x, y, width, height] = this.flat[0].box;
    this.band = area && make("rect", { class: "band", x: x + area[0] * width,
      y: y + (1 - area[3]) * height, width: (area[1] - area[0]) * width,
      height: (area[3] - area[2]) * height }, this.svg);
  }

  released() {
    const area = this.drag && this.area();
    this.endDrag();
    if (!area) return;
    const [left, right, low, high] = this.view;
    this.zoom([left + area[0] * (right - left), left + area[1] * (right - left),
      low + area[2] * (high - low), low + area[3] * (high - low)]);
  }

  endDrag() {
    if (this.band) this.band.remove();
    this.drag = this.band = null;
  }

  zoom(view) {
    if (view[1] - view[0] < 1e-5 || view[3] - view[2] < 1e-5) return;
    this.view = view;
    const all = view[0] === 0 && view[1] === 1 && view[2] === 0 && view[3] === 1;
    this.clip(all);
    for (const plot of this.flat) {
      for (const part of plot.parts) if (part.element) this.move(plot, part, all);
      this.ticks(plot, "x", view[0], view[1], all);
      this.ticks(plot, "y", view[2], view[3], all);
    }
    this.back(all);
    this.forget();
  }

  clip(all) {
    if (this.window || all) return;
    const [x, y, width, height] = this.flat[0].box;
    this.window = this.prefix + "window";
    make("rect", { x, y, width, height }, make("clipPath", { id: this.window }, this.svg));
  }

  // Paths are rewritten instead of transformed, so lines keep their width.
  move(plot, part, all) {
    let { a, d, e, f } = this.moves;
    if (!part.moves.includes("x")) [a, e] = [1, 0];
    if (!part.moves.includes("y")) [d, f] = [1, 0];
    if (part.at) {
      const [x, y] = [a * part.at[0] + e, d * part.at[1] + f];
      part.element.classList.toggle("out", !within(plot.box, { x, y }));
      part.element.setAttribute("transform", `translate(${x - part.at[0]} ${y - part.at[1]})`);
      return;
    }
    if (all) part.element.removeAttribute("clip-path");
    else part.element.setAttribute("clip-path", `url(#${this.window})`);
    for (const mark of part.element.querySelectorAll("use")) {
      mark.at ||= [Number(mark.getAttribute("x")), Number(mark.getAttribute("y"))];
      mark.setAttribute("x", a * mark.at[0] + e);
      mark.setAttribute("y", d * mark.at[1] + f);
    }
    for (const path of part.element.querySelectorAll("path")) {
      if (path.closest("defs")) continue;
      path.whole ||= path.getAttribute("d");
      let count = 0;
      path.setAttribute("d", all ? path.whole : path.whole.replace(COMMANDS, word =>
        isNaN(word) ? word : count++ % 2 ? d * word + f : a * word + e));
    }
  }

  // Ticks are moved copies of the first labelled tick.
  ticks(plot, which, low, high, all) {
    const axis = plot[which], group = this.element(axis.id);
    if (!group) return;
    group.querySelectorAll(":scope > .made").forEach(node => node.remove());
    const old = [...group.children].filter(node => /tick_\d+$/.test(node.id));
    old.forEach(node => node.classList.toggle("gone", !all));
    const sample = old.find(node => node.querySelector("text") && node.querySelector("use"));
    if (all || !sample) return;
    const mark = sample.querySelector("use"), at = Number(mark.getAttribute(which));
    const [x, y, width, height] = plot.box;
    const ends = [valueAt(axis, low), valueAt(axis, high)];
    for (const [value, text] of ticksOf(axis, ...ends, which === "x" ? 6 : 5)) {
      const part = (share(axis, value) - low) / (high - low);
      const to = which === "x" ? x + part * width : y + (1 - part) * height;
      const copy = sample.cloneNode(true);
      copy.removeAttribute("id");
      copy.querySelectorAll("[id]").forEach(node => node.removeAttribute("id"));
      copy.querySelectorAll("defs").forEach(node => node.remove());
      copy.setAttribute("class", "made");
      copy.setAttribute("transform", which === "x" ? `translate(${to - at} 0)` : `translate(0 ${to - at})`);
      copy.querySelector("text").textContent = text;
      group.append(copy);
    }
  }

  back(all) {
    if (!this.button) {
      this.button = document.createElement("button");
      this.button.textContent = "whole plot";
      this.button.className = "whole-plot";
      this.button.addEventListener("click", () => this.zoom([0, 1, 0, 1]));
      this.svg.closest("figure").querySelector("figcaption .links").before(this.button);
    }
    this.button.hidden = all;
  }
}

const within = ([x, y, width, height], at) =>
  at.x >= x - 4 && at.x <= x + width + 4 && at.y >= y - 4 && at.y <= y + height + 4;

function corners(path) {
  const numbers = (path.getAttribute("d").match(COMMANDS) || []).filter(word => !isNaN(word)).map(Number);
  const points = [];
  for (let index = 0; index + 1 < numbers.length; index += 2) points.push([numbers[index], numbers[index + 1]]);
  return points;
}

// -- the box with a value --------------------------------------------------------------------

const tip = {
  box: document.createElement("div"),
  say(event, title, rows = []) {
    this.box.replaceChildren();
    const add = (name, text) => {
      const part = document.createElement(name);
      part.textContent = text;
      this.box.append(part);
    };
    if (title) add("b", title);
    for (const [name, text] of rows) add("span", name ? `${name}: ${text}` : text);
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect(), room = document.documentElement.clientWidth;
    const left = event.clientX + 14 + width > room ? event.clientX - 14 - width : event.clientX + 14;
    this.box.style.left = `${Math.max(left, 4) + scrollX}px`;
    this.box.style.top = `${Math.max(event.clientY - height - 10, 4) + scrollY}px`;
  },
  hide() { this.box.hidden = true; },
};
tip.box.className = "tip";
tip.hide();
document.body.append(tip.box);
const figures = [...document.querySelectorAll("figure svg[data-plots]")].map(svg => new Figure(svg));

// -- drive selector ---------------------------------------------------------------------------

for (const section of document.querySelectorAll("section[data-choices]")) {
  const choices = JSON.parse(section.dataset.choices), box = document.createElement("label");
  const select = document.createElement("select");
  select.append(new Option("all", ""), ...choices.map(name => new Option(name, name)));
  box.className = "selector";
  box.append("Show ", select);
  section.querySelector(".grid").before(box);
  select.addEventListener("change", () => {
    for (const figure of figures.filter(candidate => section.contains(candidate.svg)))
      for (const name of choices) figure.switches.get(name)?.(select.value !== "" && select.value !== name);
  });
}
const first = document.querySelector("section.plots figure, section.lead figure")?.closest(".grid, .lead");
if (first) {
  const hint = document.createElement("p");
  hint.className = "intro hint";
  hint.textContent = "Point at a plot for its values, drag to zoom, double-click to zoom out, "
    + "click a name in a legend to hide its series.";
  first.after(hint);
}
})();
