"""Generic figures: each test excludes a fault found in other tools' plots."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from tests.support.figure_gallery import GALLERY, HEAD, SIZES, iops, wide_histogram
from writecliff import units
from writecliff.procedures.steady import judge
from writecliff.report import colours, figures, plots, style
from writecliff.report.axes import Axis, Line, block_size_axis
from writecliff.report.figures3d import columns_3d
from writecliff.report.latency import latency_unit
from writecliff.units import MB_S

SVG = "{http://www.w3.org/2000/svg}"
EVERY = pytest.mark.parametrize("kind", GALLERY)
FLAT = pytest.mark.parametrize("kind", [kind for kind in GALLERY if "3-D" not in kind])


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the matplotlib figures behind the SVG that a test draws."""
    texts: list[Any] = []
    write = style.to_svg

    def keep(figure: Any, name: str, description: str) -> str:
        texts.append(figure)
        return write(figure, name, description)

    monkeypatch.setattr(style, "to_svg", keep)
    return texts


def draw(kind: str) -> str:
    figure = GALLERY[kind]()
    assert figure is not None
    return figure.svg


@EVERY
def test_the_same_data_give_the_same_bytes(kind: str) -> None:
    first = draw(kind)
    assert draw(kind) == first
    root = ElementTree.fromstring(first)
    assert root.get("aria-label")
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert all(str(name).startswith("g-") for name in ids)
    assert re.findall(r"20\d\d-\d\d|Matplotlib|(?:file|http)s?://(?!www\.w3\.org)", first) == []


@EVERY
def test_a_figure_has_the_head_that_it_was_given(kind: str) -> None:
    figure = GALLERY[kind]()
    assert figure is not None
    assert (figure.name, figure.title, figure.data) == HEAD


@pytest.mark.draws
@EVERY
def test_every_text_and_colour_follows_the_page(kind: str) -> None:
    """Check that in dark mode, series and ink are page variables, so nothing stays dark on dark."""
    svg = draw(kind)
    assert "var(--ink" in svg
    texts = list(ElementTree.fromstring(svg).iter(f"{SVG}text"))
    assert texts
    assert all("var(--font" in str(text.get("style")) for text in texts)


def _legend_boxes(legend_boxes: Any) -> list[Any]:
    renderer = legend_boxes.canvas.get_renderer()
    return [legend.get_window_extent(renderer) for legend in legend_boxes.legends]


@FLAT
def test_the_legend_is_never_over_the_axes(kind: str, figure: list[Any]) -> None:
    draw(kind)
    drawn = figure[-1]
    assert all(axes.get_legend() is None for axes in drawn.axes)
    for box in _legend_boxes(drawn):
        for axes in drawn.axes:
            plot = axes.get_window_extent()
            outside = (
                box.x0 >= plot.x1 or box.x1 <= plot.x0 or box.y0 >= plot.y1 or box.y1 <= plot.y0
            )
            assert outside, f"legend {box} over plot {plot}"
        whole = drawn.bbox
        assert box.x0 >= whole.x0
        assert box.x1 <= whole.x1 + 1
        assert box.y0 >= whole.y0


@FLAT
def test_texts_do_not_overlap(kind: str, figure: list[Any]) -> None:
    """Check that tick labels of an axis do not overlap each other or the labels above the axis."""
    draw(kind)
    drawn = figure[-1]
    renderer = drawn.canvas.get_renderer()
    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            boxes = [
                label.get_window_extent(renderer)
                for label in axis.get_ticklabels()
                if label.get_text() and label.get_visible()
            ]
            low, high = axes.get_window_extent().intervalx
            if axis is axes.xaxis:
                boxes = [box for box in boxes if low - 1 <= (box.x0 + box.x1) / 2 <= high + 1]
                ends = sorted((box.x0, box.x1) for box in boxes)
            else:
                ends = sorted((box.y0 + 2, box.y1 - 2) for box in boxes)
            assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
    above = [text.get_window_extent(renderer) for text in drawn.texts]
    for box in _legend_boxes(drawn):
        assert not any(box.overlaps(text) for text in above)


@FLAT
def test_axes_rise(kind: str, figure: list[Any]) -> None:
    """Check that positions and labels increase together, so no "2 ms" bar is left of "250 us"."""
    draw(kind)
    for axes in figure[-1].axes:
        for low, high in (axes.get_xlim(), axes.get_ylim()):
            assert high > low
        for axis in (axes.xaxis, axes.yaxis):
            shown = [(p, label.get_text()) for p, label in _ticks(axis)]
            positions = [position for position, _ in shown]
            assert positions == sorted(positions)
            values = [_number(text) for _, text in shown]
            measured = [value for value in values if value is not None]
            assert measured == sorted(measured)


def _ticks(axis: Any) -> list[tuple[float, Any]]:
    labels = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    return [(float(position), label) for position, label in labels if label.get_text()]


def _number(text: str) -> float | None:
    scales = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "%": 1.0}
    match = re.fullmatch(r"([\d,.]+) ?([kMGT%]?)", text)
    return None if match is None else float(match[1].replace(",", "")) * scales[match[2]]


@FLAT
def test_units_do_not_flip_within_an_axis(kind: str, figure: list[Any]) -> None:
    """Check that a unit appears once, in the axis label; ticks are numbers without units."""
    draw(kind)
    units_of_time = re.compile(r"\b(ns|µs|us|ms|s|min|h)\b")
    for axes in figure[-1].axes:
        for axis in (axes.xaxis, axes.yaxis):
            texts = [label.get_text() for _, label in _ticks(axis)]
            assert not any(
                units_of_time.search(text) or "B" in text for text in texts if "KiB" not in text
            )


@pytest.mark.draws
def test_a_histogram_from_ns_to_seconds_has_one_unit_and_rising_bins(figure: list[Any]) -> None:
    svg = draw("histogram")
    axes = figure[-1].axes[0]
    assert axes.get_xlabel() == "Response time (µs, logarithmic)"
    marked = re.findall(r">((?:average|maximum|[\d.]+ %): [^<]+)<", svg)
    assert len(marked) >= 4
    assert {text.rpartition(" ")[2] for text in marked} == {"µs"}
    edges = next(patch for patch in axes.patches if hasattr(patch, "get_data")).get_data().edges
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= 0.8
    assert edges[-1] >= 9e6


def test_histogram_counts_every_io(figure: list[Any]) -> None:
    """Check that the bars count I/Os, not seconds: their sum is the number of I/Os."""
    draw("histogram")
    stairs = [patch for patch in figure[-1].axes[0].patches if hasattr(patch, "get_data")]
    counts = stairs[0].get_data().values
    assert counts[counts > 0.5].sum() == pytest.approx(wide_histogram().count, rel=1e-6)


def test_the_slope_line_is_the_least_squares_line(figure: list[Any]) -> None:
    """Check that the fitted line is not the line through the first and last samples."""
    state = judge((10_000, 11_999, 10_000, 10_000, 10_000), (7, 8, 9, 10, 11))
    figures.steady_window(*HEAD, state, Axis("IOPS"))
    by_label = {line.get_label(): line for line in figure[-1].axes[0].lines}
    slope, intercept = np.polyfit(state.rounds, state.values, 1)
    line = by_label["least-squares line"]
    assert line.get_ydata() == pytest.approx(slope * np.array(line.get_xdata()) + intercept)
    assert abs(line.get_ydata()[1] - line.get_ydata()[0]) > 700
    levels = [float(line.get_ydata()[0]) for line in figure[-1].axes[0].lines[:3]]
    assert levels == pytest.approx([state.average * f for f in (1.1, 0.9, 1.0)])


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_a_window_of_latencies_is_in_one_unit(size: float, figure: list[Any]) -> None:
    state = judge([92 * size, 95 * size, 93 * size, 91 * size, 96 * size], range(1, 6))
    figures.steady_window(*HEAD, state, Axis("Latency", units=units.LATENCY_UNITS))
    assert (
        figure[-1].texts[0].get_text()
        == {1.0: "Latency (ns)", 1e3: "Latency (µs)", 1e6: "Latency (ms)"}[size]
    )
    data = next(line for line in figure[-1].axes[0].lines if line.get_label() == "data")
    assert list(data.get_ydata()) == pytest.approx([92, 95, 93, 91, 96])


def test_points_are_joined_in_the_order_given(figure: list[Any]) -> None:
    """Demand intensity: Check that the line follows the depths even if IOPS fall again."""
    back = Line("TC 4", [100.0, 300.0, 250.0], [1e5, 2e5, 9e5])
    plots.lines(*HEAD, [back], Axis("IOPS"), Axis("ART", units=units.LATENCY_UNITS))
    drawn = figure[-1].axes[0].lines[0]
    assert list(drawn.get_xdata()) == [100, 300, 250]
    assert list(drawn.get_ydata()) == [100, 200, 900]


def test_what_cannot_be_drawn_is_a_gap_and_nothing_is_none(figure: list[Any]) -> None:
    nan = float("nan")
    series = [Line("a", [1, 2, 3], [0.0, nan, 8.0]), Line("b", [1, 2], [nan, 0.0])]
    assert plots.lines(*HEAD, series, Axis("x"), Axis("IOPS", log=True))
    assert plots.lines(*HEAD, series[1:], Axis("x"), Axis("IOPS", log=True)) is None
    assert plots.lines(*HEAD, [], Axis("x"), Axis("IOPS")) is None
    assert plots.bars(*HEAD, ["a"], [plots.Bars("x", [nan])], Axis("y")) is None
    assert plots.normalised(*HEAD, [Line("a", [1], [0.0])], Axis("x")) is None
    assert columns_3d(*HEAD, ["a"], ["b"], [[nan]], "x", "y", Axis("z")) is None
    assert [line.get_label() for line in figure[-1].axes[0].lines] == ["a"]
    with pytest.raises(ValueError, match="3 x values for 2 y values"):
        plots.lines(*HEAD, [Line("a", [1, 2, 3], [1, 2])], Axis("x"), Axis("y"))


def test_each_drive_has_its_own_peak_at_one(figure: list[Any]) -> None:
    draw("normalised")
    for line in figure[-1].axes[0].lines:
        assert np.nanmax(line.get_ydata()) == pytest.approx(1.0)
    assert figure[-1].axes[0].get_ylim() == (0, 1.05)


@pytest.mark.draws
def test_block_sizes_are_named_in_kib() -> None:
    texts = {e.text for e in ElementTree.fromstring(draw("iops v block size")).iter(f"{SVG}text")}
    assert {"0.5", "4", "8", "16", "32", "64", "128", "1024", "Block size (KiB)"} <= texts
    assert block_size_axis(SIZES).title(units.Unit("", 1)) == "Block size (KiB)"


def test_throughput_is_in_decimal_megabytes(figure: list[Any]) -> None:
    draw("throughput v time")
    drawn = figure[-1]
    assert drawn.texts[0].get_text() == "Throughput (MB/s)"
    line = next(line for line in drawn.axes[0].lines if "minute" in line.get_label())
    assert max(line.get_ydata()) == pytest.approx(509.3)
    assert MB_S.size == 1e6


@pytest.mark.parametrize("kind", ["3-D columns", "3-D columns, logarithmic"])
def test_near_columns_are_painted_over_far_ones(kind: str, figure: list[Any]) -> None:
    draw(kind)
    axes = figure[-1].axes[0]
    boxes = [c for c in axes.collections if isinstance(c, Poly3DCollection)]
    assert len(boxes) == 56
    assert axes.computed_zorder is False
    eye = np.array([np.cos(np.deg2rad(axes.azim)), np.sin(np.deg2rad(axes.azim))])
    positions = []
    for box in boxes:
        corners = np.asarray(box._faces)[..., :2].reshape(-1, 2)
        positions.append((box.get_zorder(), (corners.min(axis=0) + corners.max(axis=0)) / 2))
    positions.sort(key=lambda entry: entry[0])
    # In a grid of boxes, boxes that are nearer along either axis must be drawn later.
    for number, (_, near) in enumerate(positions):
        for _, later in positions[number + 1 :]:
            nearer = np.sign(eye) * (later - near)
            assert not ((nearer < 1e-6).all() and (nearer < -1e-6).any())


@pytest.mark.draws
def test_columns_show_their_values_where_there_is_room() -> None:
    y = Axis("Latency", units=units.LATENCY_UNITS)
    values = [[9e4, 9.2e4, 9.9e4], [12e4, 11e4, 14e4], [30e4, 21e4, 33e4]]
    drawing = columns_3d(*HEAD, ["0.5", "4", "8"], ["a", "b", "c"], values, "BS", "mix", y)
    assert drawing is not None
    texts = [e.text for e in ElementTree.fromstring(drawing.svg).iter(f"{SVG}text")]
    assert {"330", "90.0", "Latency (µs)"} <= set(texts)
    with pytest.raises(ValueError, match="not 1 rows by 2"):
        columns_3d(*HEAD, ["a", "b"], ["c"], [[1.0]], "x", "y", Axis("z"))


def test_many_series_stay_apart_by_marker_and_dash(figure: list[Any]) -> None:
    series = [Line(f"s{k}", [1, 2], [k + 1.0, k + 2.0]) for k in range(11)]
    plots.lines(*HEAD, series, Axis("x"), Axis("y"))
    looks = [(line.get_color(), line.get_linestyle()) for line in figure[-1].axes[0].lines]
    assert len(set(looks)) == 11


def test_iops_of_the_gallery_are_plausible() -> None:
    assert iops(4096, "100/0") == pytest.approx(90_000)
    assert iops(1048576, "0/100") == pytest.approx(12_000 / 256)


@pytest.mark.draws
def test_texts_about_a_histogram_use_its_unit() -> None:
    """Check that there is no "maximum 9 s" over an axis in microseconds."""
    unit = latency_unit(wide_histogram())
    assert units.latency(wide_histogram().max_ns, unit) == "9,000,000 µs"
    assert f"({unit.name}, logarithmic)" in draw("histogram")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("top", [0.0, float("nan"), None, 3.0])
def test_an_axis_of_zeros_has_an_extent(top: float | None) -> None:
    _, axes = style.new_axes("x", "y")
    axes.plot([0, 1], [0, 0])
    style.from_zero_to(axes, "y", top)
    low, high = axes.get_ylim()
    assert low == 0 and high == (3.0 if top == 3.0 else high) and high > 0


@pytest.mark.parametrize("low", [1.0, 1.3, 90.0, 2.2e5])
@pytest.mark.parametrize("ratio", [1.2, 3.0, 12.0, 120.0, 900.0, 5e3, 1e7])
def test_a_logarithmic_axis_has_three_labels_or_more(low: float, ratio: float) -> None:
    _, axes = style.new_axes("x", "y")
    style.log_axis(axes, "x", low, low * ratio)
    shown = [place for place in axes.xaxis.get_majorticklocs() if low <= place <= low * ratio]
    assert 3 <= len(shown) <= 10
    texts = axes.xaxis.get_major_formatter().format_ticks(shown)
    assert len(set(texts)) == len(shown)


def test_a_series_has_one_colour_in_all_plots_of_a_page() -> None:
    with colours.one_page():
        first = colours.looks(["reads", "writes"])
        assert colours.looks(["writes"]) == first[1:]
        other, again = colours.looks(["trims", "writes"])
        assert again == first[1]
        assert colours.colour(other) not in map(colours.colour, first)
        many = colours.looks([f"{number}" for number in range(11)])
        assert len(set(many)) == 11
    with colours.one_page():
        assert colours.looks(["writes"]) == [first[0]]


def test_two_series_of_one_plot_never_look_the_same() -> None:
    """Check that colours differ even if the page gave both series one colour in separate plots."""
    with colours.one_page():
        colours.looks([f"a{number}" for number in range(8)])
        colours.looks([f"b{number}" for number in range(8)])
        assert len(set(colours.looks(["a0", "b0", "a1", "b1"]))) == 4
