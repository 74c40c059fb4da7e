"""Measurement conditions of a published figure (drive state, load and metric).

Sources seldom state all conditions. The rules in this module supply the missing conditions in the
same way for all drives, and each rule is documented with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from writecliff.engines.preconditioned import overwritten_pct
from writecliff.errors import ConfigError
from writecliff.profiles import profile, profile_names
from writecliff.published.figures import PublishedFigure

State = str
"""State of a drive before a load: a name of `STATES`, or "overwritten:73%"."""
STATES = ("fresh", "fill", "sustained", "client")
KIB = 1024

# Presets by the drive names that sources use.
ALIASES = {
    "pm863": "pm863-960",  # Capacity that the white paper measures.
    "845dc-evo": "845dc-evo-960",
    "845dc-pro": "845dc-pro-800",
    "s3500": "s3500-480",
    "s3700": "s3700-200",
    "m500dc": "m500dc-480",
    "multistream-nvme": "nvme-ms-480",
    "multistream-sas-480": "sas-ms-480",
}
# Metrics that are measured under a load. `_MEASURED_AS` maps the other metric names in the table to
# these metrics.
RATES = (
    "iops", "read_iops", "write_iops", "throughput", "read_throughput", "write_throughput",
)  # fmt: skip
STATISTICS = ("avg", "p99", "p99.9", "p99.99", "max")
LATENCIES = tuple(
    f"latency_{name}{operation}" for name in STATISTICS for operation in ("", "_read", "_write")
)
DEVIATIONS = ("iops_stddev", "read_iops_stddev", "write_iops_stddev")
CONSISTENCIES = ("iops_consistency", "iops_consistency_read", "iops_consistency_write")
MEASURED = (*RATES, *LATENCIES, *DEVIATIONS, *CONSISTENCIES, "waf")
_BURST = ("iops_burst", "throughput_burst", "latency_avg_burst")
_FRESH = ("iops_fob", "throughput_fob", *_BURST)
_MEASURED_AS = {
    "iops_steady": "iops",
    "iops_fob": "iops",
    "throughput_fob": "throughput",
    "iops_burst": "iops",
    "throughput_burst": "throughput",
    "latency_avg_burst": "latency_avg",
    "iops_read": "read_iops",
    "iops_write": "write_iops",
    "throughput_read": "read_throughput",
    "throughput_write": "write_throughput",
}
FILL = "fill_"  # Prefix for a new drive that is written once from start to end.
IMPROVEMENT = "_improvement"  # Suffix for an improvement over a baseline drive, in percent.
_EXTREMES = ("_min", "_max")  # Suffixes for extremes over a range of queue depths.


@dataclass(frozen=True)
class Load:
    """A load on a drive in a given state. Equal loads are run once.

    The data on the drive are as compressible as the load's data. A `profile` is a predefined
    workload that has its own block sizes and read percentage and, if `outstanding` is not set, its
    own queue depths.
    """

    state: State
    pattern: Literal["random", "sequential"]
    block_bytes: int | None
    read_pct: float | None
    outstanding: int | None
    seconds: float
    compressible_pct: float = 0.0
    profile: str = ""

    @property
    def order(self) -> tuple[float | str, ...]:
        """Sort key, unique for each load."""
        return (
            self.state,
            self.compressible_pct,
            self.profile,
            self.pattern,
            self.block_bytes or 0,
            -1.0 if self.read_pct is None else self.read_pct,
            self.outstanding or 0,
            self.seconds,
        )

    @property
    def mixed(self) -> bool:
        """`True` if the load both reads and writes."""
        if not self.profile:
            return 0 < (self.read_pct or 0.0) < 100
        shares = {job.read_pct for job in profile(self.profile).jobs}
        return len(shares) > 1 or not shares <= {0.0, 100.0}

    @property
    def least_seconds(self) -> float:
        """Minimum time for the load's rates, in seconds."""
        fast = self.read_pct == 100 and self.outstanding != 1
        return min(self.seconds, _READ_SECONDS if fast else _WRITE_SECONDS)


@dataclass(frozen=True)
class Condition:
    """Drive, metric and load of a figure.

    `load` is `None` if the drive itself or figures in the sustained state determine the figure.
    """

    device: str
    metric: str
    load: Load | None


def preset_of(device: str) -> str:
    """Return the preset that represents a drive, or the name itself if it has no alias."""
    return ALIASES.get(device, device)


def measured_metric(metric: str) -> str:
    """Return the metric to measure for a metric in the table.

    For example, "iops_read_improvement" is measured as "read_iops".
    """
    if metric.endswith(tuple(IMPROVEMENT + extreme for extreme in _EXTREMES)):
        metric = metric.rpartition("_")[0]
    metric = metric.removesuffix(IMPROVEMENT)
    return _MEASURED_AS.get(metric, metric)


def parts_of(figure: PublishedFigure) -> tuple[PublishedFigure, ...]:
    """Return the figures per queue depth whose minimum or maximum is the given figure.

    The queue depths are the powers of two in the figure's range. Any other figure is returned
    unchanged.
    """
    if not figure.depths:
        return (figure,)
    metric = figure.metric.removesuffix("_min").removesuffix("_max")
    return tuple(
        replace(figure, metric=metric, outstanding=depth, depths=None)
        for depth in _powers(*figure.depths)
    )


def _powers(low: int, high: int) -> Iterator[int]:
    while low < high:
        yield low
        low *= 2
    yield high


def condition(figure: PublishedFigure) -> Condition | None:
    """Return a figure's condition, or None if the simulator has no equivalent.

    A figure over a range of queue depths has the condition of the first depth.
    """
    device = preset_of(figure.device)
    metric = measured_metric(figure.metric)
    if figure.metric in ("tbw", "dwpd"):
        return Condition(device, metric, _sustained_writes())
    if metric.startswith("power_"):
        return Condition(device, metric, _power_load(figure))
    if metric == "lifetime_ratio_streams_vs_none" and figure.item == "FIO":
        return Condition(device, metric, None)
    if metric.startswith(FILL):
        return Condition(device, metric, None)
    if metric not in MEASURED or refusal(figure):
        return None
    first = parts_of(figure)[0]
    if figure.metric in _FRESH:
        seconds = BURST_SECONDS if figure.metric in _BURST else 60.0
        return Condition(device, metric, _load(first, figure.state or "fresh", seconds))
    return Condition(device, metric, _load(first, _state(figure, metric), _seconds(first, metric)))


def refusal(figure: PublishedFigure) -> str:
    """Return the reason why a figure's load is not simulated, or "" if it is simulated."""
    extreme = figure.metric.endswith(_EXTREMES) and IMPROVEMENT in figure.metric
    if figure.state and not is_state(figure.state):
        return f"unknown state '{figure.state}' (known: {', '.join(STATES)}, overwritten:73%)"
    if extreme and not figure.depths:
        return f"{figure.metric} needs a range of outstanding I/Os, such as QD1-QD128"
    if figure.depths and not extreme:
        return f"{figure.metric} has no single value over a range of outstanding I/Os"
    if IMPROVEMENT in figure.metric and not figure.baseline:
        return "the figure has no baseline"
    if figure.access in ("random", "sequential") or profile_of(figure):
        return ""
    return (
        f"unknown load '{figure.access}' (use random, sequential, or a profile of "
        "`writecliff profile list`)"
    )


def is_state(text: str) -> bool:
    """Return `True` if `text` names a state that a drive can be brought to."""
    try:
        return text in STATES or overwritten_pct(text) is not None
    except ConfigError:
        return False


def baseline_condition(figure: PublishedFigure) -> Condition | None:
    """Return the condition of a relative figure's baseline, or None if it has no baseline."""
    other = replace(figure, device=figure.baseline)
    return condition(other) if figure.baseline else None


def profile_of(figure: PublishedFigure) -> str:
    """Return the profile that a figure's load uses, or "" if it uses none.

    The profile is named by the figure's access or, for a composite load, by its item ("Figure 7 web
    server").
    """
    if figure.access in ("", "random", "sequential"):
        return ""
    text = figure.item if figure.access == "composite" else figure.access
    words = text.lower().replace(" ", "-")
    return max((name for name in _profiles() if name in words), key=len, default="")


@lru_cache(maxsize=1)
def _profiles() -> list[str]:
    return profile_names()


def _sustained_writes() -> Load:
    return Load("sustained", "random", 4 * KIB, 0.0, 32, _WRITE_SECONDS)


# Step duration that is too short to fill any SLC cache, even on a scaled-down drive: 1/16 of 3 GB
# lasts 0.19 s at 1 GB/s.
BURST_SECONDS = 0.1
_READ_SECONDS, _WRITE_SECONDS, _TAIL_SECONDS, _SPREAD_SECONDS = 10.0, 60.0, 300.0, 1200.0


def tiers() -> list[float]:
    """Return the loads' measurement times in seconds, ascending."""
    return sorted({_READ_SECONDS, _WRITE_SECONDS, _TAIL_SECONDS, _SPREAD_SECONDS})


def _seconds(figure: PublishedFigure, metric: str) -> float:
    """Measurement time that the metric requires, in seconds.

    The standard takes the maximum over five rounds of one minute. The slowest of a thousand seconds
    requires at least a thousand seconds.
    """
    if metric in DEVIATIONS + CONSISTENCIES:
        return _SPREAD_SECONDS
    if metric.startswith("latency_max"):
        return _TAIL_SECONDS
    if (figure.read_pct or 0.0) < 100:
        return _WRITE_SECONDS
    return _WRITE_SECONDS if figure.outstanding == 1 else _READ_SECONDS


def _load(figure: PublishedFigure, state: State, seconds: float) -> Load:
    ready = profile_of(figure)
    if ready:
        data = figure.compressible_pct
        return Load(state, "random", None, None, figure.outstanding, seconds, data, ready)
    sequential = figure.access == "sequential"
    return Load(
        state,
        "sequential" if sequential else "random",
        figure.block_bytes or (128 if sequential else 4) * KIB,
        figure.read_pct if figure.read_pct is not None else 0.0,
        figure.outstanding or _outstanding(figure),
        seconds,
        figure.compressible_pct,
    )


def _outstanding(figure: PublishedFigure) -> int:
    """PTS-E default demand (4 threads for IOPS, 1 for throughput, with 32 outstanding I/Os).

    Drives accept no more commands than their queue holds.
    """
    return 32 if figure.access == "sequential" else 128


def _state(figure: PublishedFigure, metric: str) -> State:
    """Drive state in the table, or else a fill for sequential figures, or else sustained.

    The primer's tests with the write cache enabled are PTS-C tests. These tests measure IOPS over
    an active range of 8 GiB on a drive filled to 80 % (the primer's figures 6 and A-1). Only this
    active range explains how a drive that achieves 3,147 random-write IOPS over its whole range can
    reach 60,302.
    """
    if figure.state:
        return figure.state
    if figure.access == "sequential":
        return "fill"
    client = figure.device.endswith("-wce") or "client" in figure.note
    return "sustained" if not client or metric in LATENCIES else "client"


def _power_load(figure: PublishedFigure) -> Load | None:
    """The load during a power measurement, or None for idle power."""
    metric = figure.metric
    if metric == "power_idle":
        return None
    read = figure.read_pct
    if read is None:
        read = 100.0 if "read" in metric else 0.0
    # Range over block sizes: the minimum with single sectors, the maximum at the link bandwidth.
    if metric == "power_random_read_min":
        return Load("sustained", "random", KIB // 2, 100.0, 32, _READ_SECONDS)
    if metric == "power_random_read_max":
        return Load("sustained", "random", 128 * KIB, 100.0, 32, _READ_SECONDS)
    if metric == "power_random_write":
        return Load("sustained", "random", 4 * KIB, 0.0, 32, _WRITE_SECONDS)
    return Load("fill", "sequential", 128 * KIB, read, 32, _READ_SECONDS)
