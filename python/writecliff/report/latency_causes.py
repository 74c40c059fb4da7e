"""Latency by cause in percentile bands, as stacked bars, a table, CSV and JSON.

Only runs on drives that record latency causes have this section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.report import colours, kinds, style
from writecliff.report.csvs import data_file
from writecliff.report.interaction import Label
from writecliff.report.model import Figure, Section, section
from writecliff.report.style import house_style
from writecliff.report.table import DataFile, Quantity, Table, Value, table

if TYPE_CHECKING:
    from writecliff.latency_causes import Band
    from writecliff.procedures.model import StepRow
    from writecliff.report.testdata import TestData

_LABELS = {
    "host_queue": "queue at the host",
    "barrier": "other direction",
    "buffer_program": "buffer full: program",
    "buffer_erase": "buffer full: erase",
    "buffer_collection": "buffer full: collection",
    "buffer_other": "buffer full: other",
    "program": "program in progress",
    "erase": "erase in progress",
    "collection": "garbage collection",
    "flash": "own flash operations",
}
_OTHER = "other causes"
_SHOWN = len(style.SERIES)  # Number of causes with a distinct colour.
_WIDTH_IN, _BAR_IN = 6.4, 0.3

Bands = Sequence["Band"]
Groups = Mapping[tuple[str | None, str], Bands]


def cause_label(cause: str) -> str:
    """Return a cause's name in reports, such as "buffer full: erase"."""
    return _LABELS.get(cause, cause.replace("_", " "))


def bands_of(data: TestData, rows: Sequence[StepRow]) -> Groups:
    """Return the percentile bands of steps, or an empty result if causes were not recorded.

    Keys are label and operation, where the label `None` refers to all steps together.
    """
    recorded = data.run.latency_causes([data.seq(row) for row in rows])
    return {key: causes.bands() for key, causes in recorded.items()}


def bands_mapping(groups: Groups) -> dict[str, Any]:
    """Return the percentile bands of all steps as JSON, by operation, with times in ns."""
    return {
        operation: [band.mapping() for band in bands]
        for (label, operation), bands in groups.items()
        if label is None
    }


def causes_sections(groups: Groups, which: str) -> Iterator[Section]:
    """Yield a section with a picture and a table per operation.

    `which` names the I/Os covered by the section.
    """
    whole = {operation: bands for (label, operation), bands in groups.items() if label is None}
    if not whole:
        return
    shown = _largest([band for bands in whole.values() for band in bands])
    parts: list[Figure | Table] = []
    for operation, bands in whole.items():
        file = _file(operation, groups)
        title = f"Latency by cause, {operation}s"
        parts += [
            _stacked(f"causes-{operation}", title, file, bands, shown),
            _shares(title, bands, file),
        ]
    yield section(
        "Latency by cause",
        f"Time that commands spent by cause, for {which}, by percentile of latency. Each "
        "nanosecond of a command has one cause, so the shares of a bar add up to its mean latency. "
        "Waits for a die count as the operation of the die in that time; waits for the write "
        "buffer as the operation that made room.",
        *parts,
    )


def _largest(bands: Bands) -> tuple[str, ...]:
    """Return the causes with the largest fraction of any band, ordered from the host inwards."""
    peaks: dict[str, float] = {}
    for band in bands:
        for cause, ns in band.mean_ns.items():
            peaks[cause] = max(peaks.get(cause, 0.0), ns / band.latency_ns)
    large = sorted((c for c in peaks if peaks[c] >= 0.005), key=lambda c: -peaks[c])[:_SHOWN]
    return tuple(cause for cause in peaks if cause in large)


@house_style()
def _stacked(name: str, title: str, file: DataFile, bands: Bands, shown: Sequence[str]) -> Figure:
    """Draw a bar per band, divided by cause, with the fastest band at the top."""
    height_in = 0.9 + _BAR_IN * len(bands)
    figure = style.new_figure(width_in=_WIDTH_IN, height_in=height_in)
    style.write_above(figure, 0.08, "I/Os by latency; mean latency on the right")
    axes = style.add_axes(figure, Label("Share of their latency", "%"), left_in=0.12, right_in=0.85)
    positions = np.arange(len(bands))
    left = np.zeros(len(bands))
    total = np.array([band.latency_ns for band in bands])
    names = [cause_label(cause) for cause in shown]
    drawn = [(n, colours.colour(look)) for n, look in zip(names, colours.looks(names), strict=True)]
    widths = [[band.mean_ns[cause] for band in bands] for cause in shown]
    shares = [100 * np.array(width) / total for width in widths]
    rest = 100 - sum(shares, np.zeros(len(bands)))
    if rest.max() >= 0.5:
        drawn.append((_OTHER, style.GRID))
        shares.append(rest)
    for (label, colour), share in zip(drawn, shares, strict=True):
        if share.max() >= 0.05:
            axes.barh(positions, share, 0.78, left=left, color=colour, label=label)
        left += share
    for position, band in zip(positions, bands, strict=True):
        axes.annotate(units.latency(band.latency_ns), (100, position), xytext=(4, 0),
                      textcoords="offset points", va="center", fontsize=8)  # fmt: skip
    axes.set_yticks(positions, [band.name for band in bands])
    axes.set_ylim(len(bands) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.grid(True, axis="x")
    style.legend(figure, axes)
    largest = (
        f"{band.name}: " + ", ".join(f"{cause_label(c)} {pct:.0f} %" for c, pct in band.largest(10))
        for band in bands
    )
    return style.finished(figure, name, title, file, f"{title}. {'; '.join(largest)}", wide=True)


def _shares(title: str, bands: Bands, file: DataFile) -> Table:
    """Return the picture's table, with a column per band and a row per cause."""
    rows: list[tuple[Value, ...]] = [
        ("I/Os", *(Quantity(band.ios, kinds.NUMBER) for band in bands)),
        ("mean latency", *(Quantity(band.latency_ns, kinds.LATENCY) for band in bands)),
    ]
    for cause in bands[0].mean_ns:
        shares = [100 * band.mean_ns[cause] / band.latency_ns for band in bands]
        if max(shares) >= 0.05:
            rows.append(
                (cause_label(cause), *(Quantity(share, kinds.percents(1)) for share in shares))
            )
    head = ("", *(band.name for band in bands))
    note = "Percentages of the mean latency; causes below 0.05 % everywhere are in the CSV file "
    "only."
    return table(title, head, rows, note=note, data=file)


def _file(operation: str, groups: Groups) -> DataFile:
    """Return all percentile bands of an operation as a file.

    The bands of all steps (with an empty label) come first, followed by each label's bands if there
    are several labels.
    """
    mine = {label: bands for (label, op), bands in groups.items() if op == operation}
    if len(mine) == 2:  # All steps have the same label.
        mine = {None: mine[None]}
    names = list(mine[None][0].mean_ns)
    head = ("label", "band", "ios", "latency_mean_ns", *(f"{name}_mean_ns" for name in names))
    lines = (
        (label, band.name, band.ios, band.latency_ns, *(band.mean_ns[name] for name in names))
        for label, bands in sorted(mine.items(), key=lambda item: item[0] or "")
        for band in bands
    )
    return data_file(f"latency-causes-{operation}.csv", head, lines)
