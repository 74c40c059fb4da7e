"use strict";
// Parallel coordinates: an axis for each setting and figure of a sweep, a line for each run.
(async () => {
  const place = document.querySelector(".coordinates"),
    note = document.querySelector(".shown");
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  // Bokeh interprets $$ in text as mathematics.
  const plain = (text) => text.replaceAll("$", "$\u200b");
  const answer = await fetch(place.dataset.source),
    sweep = await answer.json();
  if (!answer.ok) {
    note.textContent = `No plot: ${sweep.error}`;
    return;
  }
  if (!sweep.runs.length) {
    note.textContent = "No run has figures yet; writecliff runs index computes them.";
    place.hidden = true;
    return;
  }

  const m = Bokeh,
    count = sweep.axes.length,
    places = sweep.axes.map((_, index) => index);
  const fig = m.Plotting.figure({
    x_range: new m.Range1d({ start: -0.5, end: count - 0.5 }),
    y_range: new m.Range1d({ start: -0.22, end: 1.05 }),
    sizing_mode: "stretch_both",
    tools: [],
    toolbar_location: null,
    background_fill_color: null,
    border_fill_color: null,
    outline_line_color: null,
  });
  for (const part of [fig.xaxis, fig.yaxis, fig.xgrid, fig.ygrid]) part.visible = false;
  const runs = [...sweep.runs].sort((a, b) => a.shade - b.shade);
  const shades = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"].map(colour);
  const source = new m.ColumnDataSource({
    data: {
      xs: runs.map(() => places),
      ys: runs.map((run) => run.heights),
      run: runs.map((run) => run.run),
      colour: runs.map((run) => shades[Math.min(6, Math.floor(run.shade * 7))]),
      name: runs.map((run) => plain(run.name)),
      says: runs.map((run) => plain(run.says)),
    },
  });
  const lines = fig.multi_line(
    { field: "xs" },
    { field: "ys" },
    {
      source,
      line_color: { field: "colour" },
      line_width: 1.4,
      line_alpha: 0.8,
      hover_line_width: 3.5,
      hover_line_alpha: 1,
      hover_line_color: { field: "colour" },
      nonselection_line_alpha: 0.8,
    },
  );
  fig.add_tools(
    new m.HoverTool({
      renderers: [lines],
      tooltips: [
        ["", "@name"],
        ["", "@says"],
      ],
      line_policy: "interp",
    }),
    new m.TapTool({}),
  );
  source.selected.change.connect(() => {
    const [index] = source.selected.indices;
    if (index !== undefined) location.assign(`/run?name=${encodeURIComponent(runs[index].run)}`);
  });
  fig.segment(
    places,
    places.map(() => 0),
    places,
    places.map(() => 1),
    { line_color: colour("muted") },
  );
  const ticks = sweep.axes.flatMap((axis, index) =>
    axis.ticks.map(([height, text]) => [index, height, text]),
  );
  fig.text(
    ticks.map((tick) => tick[0] - 0.02),
    ticks.map((tick) => tick[1]),
    ticks.map((tick) => plain(tick[2])),
    {
      text_align: "right",
      text_baseline: "middle",
      text_font_size: "11px",
      text_color: colour("ink"),
      background_fill_color: colour("page"),
      background_fill_alpha: 0.7,
    },
  );
  fig.text(
    places,
    places.map((index) => (index % 2 ? -0.13 : -0.06)),
    sweep.axes.map((axis) => plain(axis.title)),
    {
      text_align: "center",
      text_baseline: "top",
      text_font_size: "12px",
      text_color: colour("ink"),
    },
  );
  m.Plotting.show(fig, place);
  note.textContent = `${sweep.runs.length} runs`;
  place.dataset.runs = sweep.runs.length;
})();
