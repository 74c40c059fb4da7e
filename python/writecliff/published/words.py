"""Published figures and their conditions in words, for tables and pages."""

from __future__ import annotations

from collections.abc import Sequence

from writecliff.engines.preconditioned import RECIPES
from writecliff.published.conditions import Condition, Load, State, condition, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.scores import Row
from writecliff.report import units

# What each state is, as `measure.py` makes it.
STATES: dict[State, str] = {
    "fresh": "purged; the load is the first that is written",
    "fill": RECIPES["fill"],
    "sustained": RECIPES["sustained"],
    "client": "80 % of the capacity twice, 128 KiB in order, then twice the 8 GiB of 1,024 "
    "segments that loads use, 4 KiB at random",
}
_METRICS = {
    "iops": "IOPS",
    "iops_fob": "IOPS, fresh out of the box",
    "iops_steady": "IOPS, steady",
    "read_iops": "IOPS of reads",
    "write_iops": "IOPS of writes",
    "iops_stddev": "standard deviation of IOPS",
    "iops_improvement": "IOPS, better by",
    "throughput_fob": "throughput, fresh out of the box",
    "throughput_improvement": "throughput, better by",
    "latency_avg": "mean latency",
    "latency_max": "maximum latency",
    "latency_p99": "99 % latency",
    "latency_p99.9": "99.9 % latency",
    "latency_p99.99": "99.99 % latency",
    "tbw": "TBW",
    "dwpd": "drive writes a day",
    "waf": "write amplification",
    "lifetime_ratio_streams_vs_none": "life with streams",
    "power_idle": "power, idle",
    "power_read": "power, reads",
    "power_write": "power, writes",
    "power_seq_read": "power, sequential reads",
    "power_random_write": "power, random writes",
    "power_random_read_min": "power, random reads, least",
    "power_random_read_max": "power, random reads, most",
    "power_active_read_max": "power, reads, most",
    "power_active_write_max": "power, writes, most",
}


def metric_text(metric: str) -> str:
    return _METRICS.get(metric, metric.replace("_", " "))


def drive_text(figure: PublishedFigure) -> str:
    return f"{figure.device} v {figure.baseline}" if figure.baseline else figure.device


def drive_name(name: str) -> str:
    """As the source calls it, with the preset where that is another word."""
    preset = preset_of(name)
    return name if preset == name else f"{name} ({preset})"


def load_text(load: Load) -> str:
    """The load without the state and the time: "random 4 KiB, 70 % reads, 32 outstanding"; of data
    that can be compressed, how far."""
    mix = {0.0: " writes", 100.0: " reads"}.get(load.read_pct, f", {load.read_pct:g} % reads")
    text = f"{load.pattern} {load.block_bytes / 1024:g} KiB{mix}, {load.outstanding} outstanding"
    data = load.compressible_pct
    return f"{text}, data compressible by {data:g} %" if data else text


def condition_text(figure: PublishedFigure) -> str:
    """State, load and time behind the simulated figure."""
    one = condition(figure)
    if one is None:
        return units.UNKNOWN
    return of_condition(one)


def of_condition(one: Condition) -> str:
    if one.metric == "lifetime_ratio_streams_vs_none":
        return "as in experiment fms-fio: write amplification, the smaller of its two readings"
    if one.load is None:
        return "idle"
    text = f"{one.load.state}; {load_text(one.load)}; {one.load.seconds:g}\u00a0s"
    if one.metric in ("tbw", "dwpd"):
        return f"rated cycles and the write amplification of: {text}"
    return text


def value_text(value: float | None, unit: str) -> str:
    """Three digits and the unit; percentages of an improvement with their sign."""
    if value is None:
        return units.UNKNOWN
    if unit == "%":
        return f"{value:+.1f} %"
    return f"{units.significant(value)} {unit}".rstrip()


def error_text(row: Row) -> str:
    error = row.error_pct
    return units.UNKNOWN if error is None else f"{error:+.1f} %"


def joined(parts: Sequence[str]) -> str:
    return "; ".join(part for part in parts if part)
