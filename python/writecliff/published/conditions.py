"""The conditions under which a published figure was taken: drive state, load and metric.

Sources seldom state all of them. What they leave open is decided here, by rules that apply to all
drives alike; each rule has its reason beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from writecliff.published.figures import PublishedFigure

State = Literal["fresh", "fill", "sustained", "client"]
KIB = 1024

# Names that sources use for a drive, and the preset that stands for it.
ALIASES = {
    "pm863": "pm863-960",  # the white paper measures this one
    "845dc-evo": "845dc-evo-960",
    "845dc-pro": "845dc-pro-800",
    "s3500": "s3500-480",
    "s3700": "s3700-200",
    "m500dc": "m500dc-480",
    "multistream-nvme": "nvme-ms-480",
    "multistream-sas-480": "sas-ms-480",
}
# The metric behind "X is so many per cent better than Y".
_IMPROVEMENTS = {"throughput_improvement": "throughput", "iops_improvement": "iops"}
_FRESH = {"iops_fob": "iops", "throughput_fob": "throughput"}
_RATES = ("iops", "iops_steady", "read_iops", "write_iops", "throughput", "iops_stddev", "waf")
_LATENCIES = ("latency_avg", "latency_p99", "latency_p99.9", "latency_p99.99", "latency_max")
_READ_PCT = {"power_read": 100.0, "power_write": 0.0}


@dataclass(frozen=True)
class Load:
    """A load on a drive in a certain state. Equal loads are run once. The data on the drive are as
    compressible as those of the load."""

    state: State
    pattern: Literal["random", "sequential"]
    block_bytes: int
    read_pct: float
    outstanding: int
    seconds: float
    compressible_pct: float = 0.0

    @property
    def order(self) -> tuple[bool | float | str, ...]:
        """Sort key: reads first, as they change nothing; then writes like those of the state.

        No two loads have the same key, because their order decides their seeds.
        """
        return (
            self.read_pct < 100,
            self.block_bytes != 4 * KIB,
            -self.read_pct,
            self.outstanding,
            self.block_bytes,
            self.seconds,
            self.pattern,
            self.state,
            self.compressible_pct,
        )


@dataclass(frozen=True)
class Condition:
    """How a figure is obtained: `metric` of the `load` on `device`. Without a load it follows from
    the drive itself or from figures of the sustained state."""

    device: str
    metric: str
    load: Load | None


def preset_of(device: str) -> str:
    """The preset that stands for a drive; the name itself where there is no alias."""
    return ALIASES.get(device, device)


def condition(figure: PublishedFigure) -> Condition | None:
    """The condition of a figure; None if the program has nothing that corresponds to it."""
    device = preset_of(figure.device)
    metric = _IMPROVEMENTS.get(figure.metric, figure.metric)
    if metric in ("tbw", "dwpd"):
        return Condition(device, metric, _sustained_writes())
    if metric.startswith("power_"):
        return Condition(device, metric, _power_load(figure))
    if metric == "lifetime_ratio_streams_vs_none" and figure.item == "FIO":
        return Condition(device, metric, None)
    if metric in _FRESH:
        return Condition(device, _FRESH[metric], _load(figure, "fresh", 60.0))
    if metric not in _RATES + _LATENCIES or figure.access not in ("random", "sequential"):
        return None
    load = _load(figure, _state(figure, metric), _seconds(figure, metric))
    return Condition(device, "iops" if metric == "iops_steady" else metric, load)


def baseline_condition(figure: PublishedFigure) -> Condition | None:
    """The condition of the baseline of a relative figure; None without a baseline."""
    other = replace(figure, device=figure.baseline)
    return condition(other) if figure.baseline else None


def _sustained_writes() -> Load:
    return Load("sustained", "random", 4 * KIB, 0.0, 32, _WRITE_SECONDS)


_READ_SECONDS, _WRITE_SECONDS, _TAIL_SECONDS = 10.0, 60.0, 300.0


def _seconds(figure: PublishedFigure, metric: str) -> float:
    """Long enough for the percentile; the standard takes a maximum over five rounds of a minute."""
    if metric == "latency_max":
        return _TAIL_SECONDS
    if metric == "iops_stddev" or (figure.read_pct or 0.0) < 100:
        return _WRITE_SECONDS
    return _WRITE_SECONDS if figure.outstanding == 1 else _READ_SECONDS


def _load(figure: PublishedFigure, state: State, seconds: float) -> Load:
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
    """The default of the PTS-E: 4 threads of 32 for IOPS and one of 32 for throughput. Drives take
    no more than their queue holds."""
    return 32 if figure.access == "sequential" else 128


def _state(figure: PublishedFigure, metric: str) -> State:
    """Sequential figures follow a sequential fill, random ones the white paper's sustained state.

    The primer's tests with the write cache on are those of the PTS-C: IOPS over an active range of
    8 GiB on a drive that is filled to 80 % (its figures 6 and A-1). Only so can a drive that holds
    3,147 random writes a second over its whole range show 60,302."""
    if figure.access == "sequential":
        return "fill"
    client = figure.device.endswith("-wce") or "client" in figure.note
    return "client" if client and metric in _RATES else "sustained"


def _power_load(figure: PublishedFigure) -> Load | None:
    """The load while power is measured; None for idle power."""
    metric = figure.metric
    if metric == "power_idle":
        return None
    read = figure.read_pct
    if read is None:
        read = 100.0 if "read" in metric else 0.0
    # The range over block sizes: minimum for sectors, maximum where the link is saturated.
    if metric == "power_random_read_min":
        return Load("sustained", "random", KIB // 2, 100.0, 32, _READ_SECONDS)
    if metric == "power_random_read_max":
        return Load("sustained", "random", 128 * KIB, 100.0, 32, _READ_SECONDS)
    if metric == "power_random_write":
        return Load("sustained", "random", 4 * KIB, 0.0, 32, _WRITE_SECONDS)
    return Load("fill", "sequential", 128 * KIB, read, 32, _READ_SECONDS)
