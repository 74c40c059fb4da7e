"""Parts that reports of several tests have: determination and latency tables, notes, footer."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from writecliff.report import units
from writecliff.report.disclosure import grave_idle, idle_text
from writecliff.report.figures import NINES
from writecliff.report.model import KeyFigure, Table
from writecliff.store.host import writecliff_version

if TYPE_CHECKING:
    from writecliff._native import Histogram, Quantile
    from writecliff.procedures.steady import SteadyState
    from writecliff.report.testdata import Reported


def device_text(data: Reported) -> str:
    """ "writecliff simulated SATA TLC 120 GB": vendor, model and, if that does not say it, size."""
    device = data.manifest.device
    name = " ".join(filter(None, (device.vendor, device.model)))
    size = units.capacity(device.capacity_bytes)
    return name if size in name else f"{name}, {size}"


def determination(
    state: SteadyState,
    unit: str = "IOPS",
    *,
    digits: int = 1,
    title: str = "Steady-state determination",
    data: str = "",
) -> Table:
    """The steady-state determination table of the standard, with allowed and measured values.

    `unit` is that of the tracking variable, shown with `digits` after the point; `data` names a
    `DataFile` with the numbers.
    """

    def value(number: float) -> str:
        return f"{units.number(number, digits)} {unit}"

    def row(name: str, allowed: str, measured: str, ok: bool | None) -> tuple[str, ...]:
        return (name, allowed, measured, {True: "met", False: "NOT met", None: ""}[ok])

    r = units.UNKNOWN if state.r is None else f"{state.r:.4f}"
    return Table(
        title,
        ("Quantity", "Allowed", "Measured", ""),
        (
            row("Rounds", "", f"{state.rounds[0]} - {state.rounds[-1]}", None),
            row("Average", "", value(state.average), None),
            row(
                "Data excursion, max - min (20 % of average)",
                value(state.data_excursion_allowed),
                value(state.data_excursion),
                state.data_ok,
            ),
            row(
                "Slope excursion, |slope| x 4 (10 % of average)",
                value(state.slope_excursion_allowed),
                value(state.slope_excursion),
                state.slope_ok,
            ),
            row("Least-squares line, R = round", "", state.formula, None),
            row("Correlation coefficient r", "", r, None),
        ),
        ("left", "right", "right", "left"),
        "" if state.steady else "NOT STEADY STATE",
        data,
    )


def latency_table(histogram: Histogram) -> Table:
    """Average, nines and maximum in one unit, with what supports them."""
    unit = units.common_unit([histogram.mean_ns or 1.0], units.LATENCY_UNITS)
    rows = [("Average", units.latency(histogram.mean_ns, unit), "", "")]
    for q in NINES:
        quantile = histogram.quantile(q)
        beyond = units.number(histogram.count * (1 - q))
        if quantile.value_ns is None:
            rows.append((units.nines(q), units.NOT_ENOUGH, "", beyond))
            continue
        interval = _interval(quantile, unit)
        rows.append((units.nines(q), units.latency(quantile.value_ns, unit), interval, beyond))
    rows.append(("Maximum", units.latency(histogram.max_ns, unit), "", ""))
    return Table(
        "Response times",
        ("", "Response time", "95 % confidence interval", "I/Os beyond"),
        tuple(rows),
        ("left", "right", "right", "right"),
        f"{histogram.count:,} I/Os.",
    )


def _interval(quantile: Quantile, unit: units.Unit) -> str:
    """The confidence interval; a sample that is too small bounds it on one side or not at all."""
    low, high = quantile.low_ns, quantile.high_ns
    if low is None:
        return units.UNKNOWN if high is None else f"up to {units.latency(high, unit)}"
    if high is None:
        return f"{units.latency(low, unit)} or more"
    return f"{units.latency(low, unit)} to {units.latency(high, unit)}"


def latency_figures(histogram: Histogram) -> tuple[KeyFigure, ...]:
    """Average, nines and maximum, all in one unit, for the top of the page."""
    unit = units.common_unit([histogram.mean_ns or 1.0], units.LATENCY_UNITS)

    def figure(label: str, value_ns: float | None, note: str) -> KeyFigure:
        if value_ns is None:
            return KeyFigure(label, units.UNKNOWN, "", units.NOT_ENOUGH)
        number, _, name = units.latency(value_ns, unit).rpartition(" ")
        return KeyFigure(label, number, name, note)

    figures = [figure("Average latency", histogram.mean_ns, "")]
    for q in NINES:
        quantile = histogram.quantile(q)
        beyond = f"{units.number(quantile.count * (1 - q))} I/Os beyond"
        figures.append(figure(units.nines(q), quantile.value_ns, beyond))
    figures.append(figure("Maximum", histogram.max_ns, f"of {units.number(histogram.count)} I/Os"))
    return tuple(figures)


def service_note(histogram: Histogram | None, which: str, *, otherwise: str) -> str:
    """What the latency figures are of: `which` I/Os, or `otherwise` why there are none."""
    if histogram is None:
        return otherwise
    return f"Service time, from issue to completion, of {histogram.count:,} I/Os{which}."


def notes(data: Reported) -> tuple[str, ...]:
    """What any report must say of its units, its dates and its drive."""
    found = [
        "Sizes are decimal (1 GB = 10^9 bytes), block sizes binary (4 KiB = 4096 bytes). "
        f"Drive fills count the user capacity of {units.capacity(data.capacity_bytes)}.",
        "This page is a function of the run directory alone. Its Report Run Date is that of the "
        "last change of the data, so that it comes out the same, byte for byte, whenever it is "
        "made.",
    ]
    if data.manifest.device.simulated:
        found.append("The drive is simulated: times are virtual and exact, not wall-clock times.")
    if (idle := idle_text(data)) is not None and not grave_idle(data):
        found.append(idle)
    return tuple(found)


def footer(data: Reported) -> tuple[tuple[str, str], ...]:
    manifest = data.manifest
    versions = ", ".join(
        f"{name} {version.removeprefix(f'{name}-')}"  # fio calls its own version fio-3.33
        for name, version in manifest.versions.items()
        if version is not None and not (name == "fio" and manifest.device.simulated)
    )
    return (
        ("Command", shlex.join(manifest.command)),
        ("Seed", str(manifest.seed)),
        ("Device hash", manifest.device.device_hash or units.UNKNOWN),
        ("Versions", versions),
        ("Report by", f"writecliff {writecliff_version()}"),
        ("Run directory", data.name),
        ("Status", data.status + (f": {manifest.reason}" if manifest.reason else "")),
    )
