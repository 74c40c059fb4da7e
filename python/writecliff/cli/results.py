"""What a load measured, as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.output import factor_text, latency_text, table
from writecliff.operation_names import FLUSH

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.report.loads import Load

QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999))


def result_table(load: Load) -> str:
    """Return a row per job and operation; open loads have a second row with service times."""
    header = ("job", "operation", "IOPS", "MB/s", "mean", *(name for name, _ in QUANTILES), "max")
    rows = []
    for one in load.done:
        rates = ("-", "-")
        if one.iops is not None and one.bytes_per_s is not None:
            per_s = "-" if one.operation == FLUSH else f"{one.bytes_per_s / 1e6:,.1f}"
            rates = (units.number(one.iops), per_s)
        rows.append((one.job, one.operation, *rates, *_latency_cells(one.latency())))
        if one.scheduled:
            cells = _latency_cells(one.latency("service"))
            rows.append((one.job, f"{one.operation} (service)", "", "", *cells))
    ios, size = sum(row.ios for row in load.rows), sum(row.bytes for row in load.rows)
    rounds = ""
    if load.view is not None:
        rounds = f" (rounds {load.view.window[0]} to {load.view.window[-1]})"
    lines = [
        table(header, rows, "llrrrrrrrr"),
        "",
        f"{units.number(ios)} I/Os, {units.size(size)} in {units.duration(load.measured_ns)} "
        f"of device time{rounds}; WAF {factor_text(load.waf)}",
    ]
    if load.not_sustained:
        lines.append(f"{load.not_sustained}: latencies grow with the length of the run")
    watts, per_io_j = load.power
    if watts is not None:
        each = "" if per_io_j is None else f", {per_io_j * 1e6:,.1f} µJ per I/O"
        lines.append(f"{watts:.2f} W{each}")
    if spent := causes_table(load):
        lines += ["", spent]
    if load.data_placement is not None:
        lines += data_placement_lines(load.data_placement)
    return "\n".join(lines)


def _latency_cells(histogram: Histogram | None) -> list[str]:
    if histogram is None:
        return ["-"] * (len(QUANTILES) + 2)
    quantiles = [histogram.quantile(q).value_ns for _, q in QUANTILES]
    return [latency_text(v) for v in (histogram.mean_ns, *quantiles, histogram.max_ns)]


def causes_table(load: Load) -> str:
    """A row per operation and band of percentiles, with the shares of its largest causes; empty if
    they were not recorded."""
    rows = []
    for one in load.done:
        for band in () if one.causes is None else one.causes.bands():
            named = ", ".join(f"{name} {share:.0f} %" for name, share in band.largest())
            rows.append((one.job, one.operation, band.name, latency_text(band.latency_ns), named))
    header = ("job", "operation", "band", "mean", "spent on")
    return table(header, rows, "lllrl") if rows else ""


def data_placement_lines(shown: Mapping[str, Any]) -> list[str]:
    """The interface after a step, as its JSON has it, as a line or two of text."""
    lines = []
    if shown["interface"] == "nvme-fdp":
        sizes = (
            f"{name.upper()} {units.size(shown[f'{name}_bytes'])}"
            for name in ("hbmw", "mbmw", "mbe")
        )
        lines.append(f"FDP: {', '.join(sizes)}; {shown['limit']} placement handles")
        seen = [f"{name} {units.number(count)}" for name, count in shown["events"].items() if count]
        if seen:
            kept = len(shown["log"])
            log = f"; {kept} of them in the log (--json has it)" if kept else ""
            lines.append(f"events: {', '.join(seen)}{log}")
    elif shown["open_streams"] or shown["overflow_bytes"]:
        named = ", ".join(map(str, shown["open_streams"])) or "none"
        lines.append(f"streams open: {named} (of {shown['limit']} beside the default one)")
    if released := shown["streams_released"]:
        lines.append(f"streams released by the drive to make room: {units.number(released)}")
    return lines
