"""Everything a WSAT report or summary needs, read from a run directory; no text, no figures.

Owns the decisions about which data a figure stands for:

* fresh out of box (FOB): the steps that begin in the first minute, and before the whole capacity
  has been written once
* reported window: the last five samples that are steady; if no five are, the last five
* latency: the response-time histogram phase if the run has one, else all steps from the first to
  the last sample of the reported window, merged as histograms
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from writecliff.errors import StoreError
from writecliff.procedures.steady import Decision, SteadyState, SteadyStateTracker
from writecliff.report.latency import NINES
from writecliff.store.manifest import Manifest, Status
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from writecliff._native import Histogram

    Numbers = npt.NDArray[np.float64]

FOB_NS = 60_000_000_000
FOB_DRIVE_FILLS = (
    2.0  # fresh-out-of-box behaviour lasts until about here (SNIA primer, 2013, fn. 3)
)

State = Literal["steady", "left", "not achieved", "not steady", "undecided"]
LatencySource = Literal["window", "rth"]


@dataclass(frozen=True)
class Series:
    """One value a step of the rounds, in order; NaN where unknown."""

    seq: npt.NDArray[np.int64]
    round: npt.NDArray[np.int64]
    sample: npt.NDArray[np.bool_]
    start_ns: Numbers
    end_ns: Numbers
    iops: Numbers
    iops_low: Numbers  # of the step's intervals
    iops_high: Numbers
    latency_mean_ns: Numbers
    latency_max_ns: Numbers
    latency_quantile_ns: dict[float, Numbers]
    ios: Numbers
    host_write_bytes: Numbers  # in the step
    nand_write_bytes: Numbers  # in the step
    written_bytes: Numbers  # since the purge, step included
    waf: Numbers

    def __len__(self) -> int:
        return len(self.seq)

    def places(self, seqs: Sequence[int]) -> slice:
        """The rows from the first to the last of `seqs`."""
        first, last = np.searchsorted(self.seq, [seqs[0], seqs[-1]])
        return slice(int(first), int(last) + 1)


@dataclass(frozen=True)
class RunData:
    """A run, ready to be reported."""

    manifest: Manifest
    name: str
    status: Status
    series: Series
    tracker: SteadyStateTracker
    decision: Decision | None  # the reported window; None before five samples
    window: slice  # steps of the series, from the window's first to its last sample
    latency: Histogram | None
    latency_source: LatencySource
    rth_elapsed_ns: float  # 0 without a response-time histogram phase

    @property
    def state(self) -> State:
        """Of the drive. "left": it was steady, and is not any more in the last window."""
        verdict = self.tracker.verdict
        if verdict != "steady" and self.tracker.first_steady is not None:
            return "left"
        return verdict

    @property
    def variable(self) -> str:
        """What is tracked: "RND 4KiB W IOPS"."""
        return self.tracker.variables[0]

    @property
    def load(self) -> str:
        """In a sentence: "random 4 KiB writes"."""
        return self.manifest.setup.get("load") or "random 4 KiB writes"

    @property
    def steady(self) -> SteadyState | None:
        """The determination table of the reported window, also when it fails."""
        return None if self.decision is None else self.decision.states[self.variable]

    @property
    def capacity_bytes(self) -> int:
        return self.manifest.device.capacity_bytes

    @property
    def written_bytes(self) -> float:
        return float(self.series.written_bytes[-1])

    @property
    def drive_fills(self) -> float:
        return self.written_bytes / self.capacity_bytes

    @property
    def window_drive_fills(self) -> float:
        """Drive fills written when the first step of the window was complete."""
        return float(self.series.written_bytes[self.window][0] / self.capacity_bytes)

    @property
    def fresh(self) -> bool:
        """The window begins where a drive is seldom past its fresh-out-of-box state."""
        return self.window_drive_fills < FOB_DRIVE_FILLS

    @property
    def elapsed_ns(self) -> float:
        """Device time of the rounds."""
        return float(self.series.end_ns[-1])

    @property
    def fob_iops(self) -> float:
        """IOPS of the steps that count as fresh out of box."""
        return float(self.series.ios[self._fob_steps].sum() / (self.fob_ns / 1e9))

    @property
    def fob_ns(self) -> float:
        """How long the steps took that count as fresh out of box."""
        s = self.series
        return float((s.end_ns - s.start_ns)[self._fob_steps].sum())

    @property
    def _fob_steps(self) -> npt.NDArray[np.bool_]:
        s = self.series
        written_before = s.written_bytes - s.host_write_bytes
        fresh = (s.start_ns < FOB_NS) & (written_before < self.capacity_bytes)
        fresh[0] = True
        return fresh

    @property
    def idle_ns(self) -> float:
        """Time between the steps in which nothing was written: a real drive's steps are processes
        of their own. Pauses between sessions do not count, they are disclosed as interruptions."""
        s = self.series
        return float(np.maximum(s.start_ns[1:] - s.end_ns[:-1], 0).sum())

    @property
    def saturated_iops(self) -> float:
        """Average of the reported window; without one, of the samples or the last step there is."""
        if self.steady is not None:
            return self.steady.average
        values = self.tracker.values[self.variable]
        return sum(values) / len(values) if values else float(self.series.iops[-1])

    @property
    def waf(self) -> float | None:
        """NAND bytes per host byte over the window; None where the drive does not tell."""
        host = self.series.host_write_bytes[self.window].sum()
        nand = self.series.nand_write_bytes[self.window].sum()
        if np.isfinite(nand) and host > 0:
            return float(nand / host)
        known = self.series.waf[self.window]
        return float(np.average(known)) if len(known) and np.isfinite(known).all() else None


def load(run: RunDirectory) -> RunData:
    """Read a WSAT run. Raises StoreError: another test's run, or nothing measured yet."""
    if run.manifest.procedure != "wsat":
        raise StoreError(f"{run.path} is a run of {run.manifest.procedure}; only wsat is reported")
    table = run.rounds()
    phases = np.array(table.column("phase").to_pylist(), dtype=object)
    rounds = table.filter(phases == "rounds")
    if not rounds.num_rows:
        raise StoreError(
            f"{run.path} has no complete step to report", hint="let the run measure a minute first"
        )
    histograms = run.histograms_by_step(phase="rounds")
    series = _series(run, rounds, histograms)
    tracker = _track(series, run.manifest)
    decision = tracker.last_steady or tracker.current
    window = _window(series, decision)
    source: LatencySource = "rth" if "rth" in phases else "window"
    latency = (
        run.histogram(phase="rth")
        if source == "rth"
        else _merged(histograms, series.seq[window].tolist())
    )
    return RunData(
        manifest=run.manifest,
        name=run.name,
        status=run.status,
        series=series,
        tracker=tracker,
        decision=decision,
        window=window,
        latency=latency,
        latency_source=source,
        rth_elapsed_ns=float(sum(table.filter(phases == "rth").column("elapsed_ns").to_pylist())),
    )


def _merged(histograms: dict[int, Histogram], steps: Sequence[int]) -> Histogram | None:
    """The histograms of `steps` in a new one; None if none of them has one."""
    found = [histograms[step] for step in steps if step in histograms]
    if not found:
        return None
    whole = type(found[0])()
    for histogram in found:
        whole.merge(histogram)
    return whole


def _series(run: RunDirectory, rounds: pa.Table, histograms: dict[int, Histogram]) -> Series:
    def floats(name: str) -> Numbers:
        return np.asarray(rounds.column(name).cast("float64").to_numpy(), dtype=np.float64)

    seq = rounds.column("seq").to_numpy().astype(np.int64)
    start_ns = floats("started_ns")
    low, high = _interval_spread(run, seq)
    return Series(
        seq=seq,
        round=rounds.column("round").to_numpy().astype(np.int64),
        sample=np.array(rounds.column("sample").to_pylist(), dtype=bool),
        start_ns=start_ns - start_ns[0],
        end_ns=start_ns - start_ns[0] + floats("elapsed_ns"),
        iops=floats("iops"),
        iops_low=low,
        iops_high=high,
        latency_mean_ns=floats("latency_mean_ns"),
        latency_max_ns=floats("latency_max_ns"),
        latency_quantile_ns=_step_quantiles(histograms, seq),
        ios=floats("ios"),
        host_write_bytes=floats("host_write_bytes"),
        nand_write_bytes=floats("nand_write_bytes"),
        written_bytes=floats("host_write_bytes_total"),
        waf=floats("waf"),
    )


def _step_quantiles(
    histograms: dict[int, Histogram], seq: npt.NDArray[np.int64]
) -> dict[float, Numbers]:
    columns = {q: np.full(len(seq), np.nan) for q in NINES}
    for place, number in enumerate(seq.tolist()):
        if number in histograms:
            for q, column in columns.items():
                value = histograms[number].quantile(q).value_ns
                column[place] = np.nan if value is None else value
    return columns


# A step's last interval may be cut short by its end; its rate would be noise.
_SPREAD = """
with sums as (
    select seq, end_ns, sum(ios) as ios from intervals where phase = 'rounds' group by seq, end_ns
), rates as (
    select seq, ios, end_ns - coalesce(lag(end_ns) over (partition by seq order by end_ns), 0)
        as width_ns
    from sums
), widest as (select seq, max(width_ns) as widest_ns from rates group by seq)
select seq, min(ios / (width_ns / 1e9)) as low, max(ios / (width_ns / 1e9)) as high
from rates join widest using (seq)
where width_ns > 0 and width_ns >= widest_ns / 2
group by seq order by seq
"""


def _interval_spread(run: RunDirectory, seq: npt.NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Lowest and highest IOPS of the intervals (seconds) of each step."""
    table = run.query(_SPREAD)
    places = {int(number): place for place, number in enumerate(seq.tolist())}
    low, high = np.full(len(seq), np.nan), np.full(len(seq), np.nan)
    for row in table.to_pylist():
        low[places[row["seq"]]] = row["low"]
        high[places[row["seq"]]] = row["high"]
    return low, high


def _track(series: Series, manifest: Manifest) -> SteadyStateTracker:
    stimulus = manifest.setup.get("test_stimulus") or "RND 4KiB W"
    tracker = SteadyStateTracker((f"{stimulus} IOPS",))
    for number, value in zip(
        series.round[series.sample].tolist(), series.iops[series.sample].tolist(), strict=True
    ):
        tracker.add(value, number)
    return tracker


def _window(series: Series, decision: Decision | None) -> slice:
    """From the first to the last sample of the decision; without one, of all the samples there
    are; without any, the last step."""
    rounds = decision.rounds if decision is not None else tuple(series.round[series.sample])
    if not rounds:
        return slice(len(series) - 1, len(series))
    inside = series.sample & (series.round >= rounds[0]) & (series.round <= rounds[-1])
    return series.places(series.seq[inside].tolist())
