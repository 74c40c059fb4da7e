"use strict";
// Plots over time with one time axis. The server returns the part in view, so a plot never has
// more points than its pixels can show.
(() => {
  const WAIT_MS = 150,
    LIVE_MS = 2000,
    STEP = 0.25;
  const area = document.querySelector(".plot-area");
  if (!area) return;
  const place = area.querySelector(".plots-here");
  const shown = area.querySelector(".shown");
  const rows = area.querySelector(".values tbody");
  let steps = null; // of a running run
  const drawn = new Map(); // by the key of the plot
  let span = [0, 1],
    view = [0, 1],
    asked = 0,
    timer = 0,
    setting = false;

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const DISTANT_FIRST = [1, 6, 4, 8, 2, 7, 3, 5]; // distant colours first, as in reports
  const number = (value) =>
    value === null ? "" : value.toLocaleString("en", { maximumSignificantDigits: 5 });
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const look = (line, index) => ("look" in line ? line.look : index);
  // Bokeh interprets $$ in text as mathematics.
  const plain = (text) => text.replaceAll("$", "$\u200b");

  function make(plot) {
    const box = element("div", undefined, "plot"),
      head = element("h3", plot.unit ? `${plot.title} (${plot.unit})` : plot.title);
    const canvas = element("div", undefined, "canvas");
    box.append(head, canvas);
    place.append(box);
    place.classList.toggle("one", place.children.length === 1);
    const { figure } = Bokeh.Plotting,
      m = Bokeh;
    const range = new m.Range1d({ start: view[0], end: view[1] });
    const changed = () => {
      if (!setting) zoomed([range.start, range.end]);
    };
    range.properties.start.change.connect(changed);
    range.properties.end.change.connect(changed);
    const fig = figure({
      x_range: range,
      y_axis_type: plot.log ? "log" : "linear",
      sizing_mode: "stretch_both",
      tools: [],
      ...(plot.log ? {} : { y_range: new m.DataRange1d({ start: 0 }) }),
      toolbar_location: null,
      background_fill_color: null,
      border_fill_color: null,
      outline_line_color: null,
      min_border_left: 64,
      lod_threshold: null,
    });
    const zoom = new m.BoxZoomTool({ dimensions: "width" });
    fig.add_tools(
      zoom,
      new m.WheelZoomTool({ dimensions: "width", modifiers: { ctrl: true } }),
      new m.CrosshairTool({ dimensions: "height", line_color: colour("muted") }),
    );
    fig.toolbar.active_drag = zoom;
    const grid = colour("grid"),
      muted = colour("muted"),
      ink = colour("ink");
    for (const axis of [fig.xaxis, fig.yaxis])
      Object.assign(axis, {
        axis_line_color: muted,
        major_tick_line_color: muted,
        minor_tick_line_color: null,
        major_label_text_color: ink,
        axis_label_text_color: muted,
        axis_label_text_font_style: "normal",
      });
    for (const part of [fig.xgrid, fig.ygrid]) part.grid_line_color = grid;
    fig.xaxis.axis_label = "time (s)";
    fig.xaxis.formatter = new m.NumeralTickFormatter({ format: "0,0.[000000]" });
    fig.yaxis.formatter = new m.NumeralTickFormatter({ format: "0,0.[0000]" });
    const sources = [],
      dots = [];
    plot.lines.forEach((line, index) => {
      const at = look(line, index),
        style = `s${DISTANT_FIRST[at % 8]}`,
        ink_of = colour(style);
      const key = element("span");
      key.append(element("i", undefined, `swatch ${style}`), line.name);
      if (!document.querySelector(".legend")) head.append(key);
      const source = new m.ColumnDataSource({ data: { x: [], y: [] } });
      const glyph = fig.line(
        { field: "x" },
        { field: "y" },
        { source, line_color: ink_of, line_width: 1.3, line_dash: at >= 8 ? "dashed" : "solid" },
      );
      dots.push(
        fig.scatter(
          { field: "x" },
          { field: "y" },
          { source, size: 4, fill_color: ink_of, line_color: null, visible: false },
        ),
      );
      fig.add_tools(
        new m.HoverTool({
          renderers: [glyph],
          mode: "vline",
          attachment: "horizontal",
          tooltips: [
            [plain(line.name), "@y{0,0.[0000]}"],
            ["time", "@x{0,0.[000000]} s"],
          ],
        }),
      );
      sources.push(source);
    });
    m.Plotting.show(fig, canvas);
    return {
      range,
      sources,
      dots,
      box,
      names: JSON.stringify(plot.lines.map((line) => line.name)),
      log: plot.log,
      unit: plot.unit,
    };
  }

  function forget() {
    for (const plot of drawn.values()) plot.box.remove();
    drawn.clear();
  }

  // Plots cannot share a range, because each is a separate Bokeh document.
  function link(next) {
    view = next;
    setting = true;
    for (const { range } of drawn.values()) range.setv({ start: view[0], end: view[1] });
    setting = false;
  }

  function zoomed(next) {
    link(next);
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MS);
  }

  function show(page) {
    const same =
      page.plots.every((plot) => {
        const shown = drawn.get(plot.key);
        return (
          shown &&
          shown.log === plot.log &&
          shown.unit === plot.unit &&
          shown.names === JSON.stringify(plot.lines.map((line) => line.name))
        );
      }) && drawn.size === page.plots.length;
    if (!same) forget();
    [span, view] = [page.span, page.view];
    const few = page.marks <= 600;
    rows.replaceChildren();
    for (const plot of page.plots) {
      if (!drawn.has(plot.key)) drawn.set(plot.key, make(plot));
      const shown = drawn.get(plot.key);
      plot.lines.forEach((line, index) => {
        shown.sources[index].data = {
          x: line.x,
          y: line.y.map((y) => (y === null || (plot.log && y <= 0) ? NaN : y)),
        };
        shown.dots[index].visible = line.whole && few;
        const row = element("tr");
        row.append(
          element("td", plot.unit ? `${plot.title} (${plot.unit})` : plot.title),
          element("td", line.name),
          element("td", number(line.points), "right"),
          element("td", number(line.least), "right"),
          element("td", number(line.greatest), "right"),
        );
        rows.append(row);
      });
    }
    link(page.view);
    const whole = page.plots.every((plot) => plot.lines.every((line) => line.whole));
    const [start, end] = page.view;
    shown.textContent = !page.plots.length
      ? "no intervals yet"
      : `${number(start)} to ${number(end)} s: ` +
        (whole ? "every interval is drawn" : "the minimum and maximum of each pixel are drawn");
    area.dataset.marks = page.marks;
    area.dataset.whole = whole;
    area.dataset.view = JSON.stringify(page.view);
    area.dispatchEvent(new CustomEvent("shown", { detail: page }));
  }

  async function ask() {
    const mine = ++asked;
    const url = new URL(area.dataset.source, location);
    for (const id of ["key", "norm"]) {
      const field = document.getElementById(id);
      if (field && field.value) url.searchParams.set(id, field.value);
    }
    url.searchParams.set("columns", Math.max(100, Math.round(place.clientWidth)));
    if (drawn.size && (view[0] > span[0] || view[1] < span[1])) {
      // otherwise all, including new intervals
      url.searchParams.set("from", view[0]);
      url.searchParams.set("to", view[1]);
    }
    try {
      const answer = await fetch(url),
        page = await answer.json();
      if (mine !== asked) return;
      if (!answer.ok) throw new Error([page.error, page.hint].filter(Boolean).join(": "));
      show(page);
    } catch (error) {
      if (mine === asked) shown.textContent = `No plots: ${error.message}`;
    }
  }

  function move(what) {
    if (!drawn.size) return;
    let [start, end] = view;
    const width = end - start,
      middle = (start + end) / 2;
    if (what === "all") [start, end] = span;
    if (what === "earlier" || what === "later") {
      const by = Math.min(
        Math.max((what === "later" ? 1 : -1) * width * STEP, span[0] - start),
        span[1] - end,
      );
      start += by;
      end += by;
    }
    if (what === "in" || what === "out") {
      const half = width * (what === "in" ? 0.25 : 1);
      start = Math.max(span[0], middle - half);
      end = Math.min(span[1], middle + half);
    }
    if (end > start) zoomed([start, end]);
  }
  area.querySelector(".tools").addEventListener("click", (event) => move(event.target.dataset.do));
  const KEYS = {
    ArrowLeft: "earlier",
    ArrowRight: "later",
    "+": "in",
    "=": "in",
    ArrowUp: "in",
    "-": "out",
    ArrowDown: "out",
    Home: "all",
    0: "all",
  };
  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
    event.preventDefault();
    move(KEYS[event.key]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    forget();
    ask();
  });

  const form = document.getElementById("overlay-form");
  if (form) {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", ask);
    area.addEventListener("shown", ({ detail }) => {
      const keys = document.getElementById("key");
      if (keys.disabled) {
        keys.replaceChildren(
          ...Object.entries(detail.keys).map(
            ([key, title]) => new Option(title, key, false, key === detail.chosen),
          ),
        );
        keys.disabled = keys.options.length === 0;
      }
      document.getElementById("without").textContent = detail.without.length
        ? `without it: ${detail.without.join(", ")}`
        : "";
    });
  }

  const doing = document.getElementById("doing");
  async function look_again() {
    if (!document.hidden) {
      try {
        const answer = await fetch(doing.dataset.source),
          state = await answer.json();
        if (answer.ok) {
          doing.textContent = state.says;
          const badge = document.getElementById("status");
          badge.textContent = state.status;
          badge.className = `status ${state.status}`;
          if (state.steps !== steps) {
            steps = state.steps;
            await ask();
          }
          if (state.status !== "running") return;
        } else doing.textContent = state.error;
      } catch {
        doing.textContent = "the dashboard does not answer";
      }
    }
    setTimeout(look_again, LIVE_MS);
  }
  if (doing) look_again();
  else ask();
})();
