"""XSR report with throughput and response times over time, and the recovery time.

The summary schema is "writecliff/xsr/1".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.procedures.xsr import Group, Xsr, recovery_sample
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.base import TestReport
from writecliff.report.compared import Curve
from writecliff.report.csvs import data_file
from writecliff.report.header import NOT_APPLICABLE, Rows, setup
from writecliff.report.headline import Headline, headline, ms
from writecliff.report.latency import service_note
from writecliff.report.model import Figure, KeyFigure, Section, Verdict, section
from writecliff.report.plots import lines, two_axes
from writecliff.report.series import Samples, samples, series
from writecliff.report.table import DataFile, Quantity, Table, Value, table
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.report.axes import Numbers

# Displayed fields of `GroupData`.
SHOWN = ("mean_bytes_per_s", "end_bytes_per_s", "art_peak_ns", "mrt_peak_ns")
# Fraction of the AG1 rate that counts as recovered; without noise, a recovered drive may remain
# just below AG1.
NEARLY = 0.99
ZOOM_NS = 2 * 3600e9  # Time displayed for each group on either side of a change-over.
TP = Axis("Throughput", units=(MB_S,))
RESPONSE = Axis("Response time", units=units.LATENCY_UNITS, log=True)


@dataclass(frozen=True)
class GroupData:
    """Measured part of an access group, with times relative to the start of the first group."""

    group: Group
    begin_ns: float
    elapsed_ns: float
    samples: Samples

    @property
    def time_ns(self) -> Numbers:
        """Time of each sample in ns."""
        return self.begin_ns + self.samples.time_ns

    @property
    def label(self) -> str:
        """Name and stimulus of the group."""
        return f"{self.group.name} {self.group.text}"

    @property
    def mean_bytes_per_s(self) -> float | None:
        """Mean throughput, or None without samples."""
        values = self.samples.bytes_per_s
        return float(values.mean()) if values.size else None

    @property
    def end_bytes_per_s(self) -> float | None:
        """Throughput of the last sample, or None without samples."""
        values = self.samples.bytes_per_s
        return float(values[-1]) if values.size else None

    @property
    def art_peak_ns(self) -> float | None:
        """Longest average response time among all samples in ns, or None without I/Os."""
        return _peak(self.samples.mean_ns)

    @property
    def mrt_peak_ns(self) -> float | None:
        """Longest response time in ns, or None without I/Os."""
        return _peak(self.samples.max_ns)


def _peak(values: Numbers) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else None


class XsrReport(TestReport):
    """Report for an XSR run."""

    procedure: Xsr

    @property
    def sample_s(self) -> float:
        """Sample length in s."""
        return float(self.procedure.options.sample_seconds)

    @cached_property
    def groups(self) -> tuple[GroupData, ...]:
        """Access groups that were started."""
        groups: list[GroupData] = []
        zero_ns = self.data.rows[0].started_ns
        for group in self.procedure.groups:
            rows = self.data.stage_rows(group.phase)
            if not rows:
                break
            begin_ns, end_ns = rows[0].started_ns, rows[-1].ended_ns
            parts = samples(series(self.data, rows), self.sample_s * 1e9)
            groups.append(
                GroupData(group, float(begin_ns - zero_ns), float(end_ns - begin_ns), parts)
            )
        return tuple(groups)

    def recovery_minutes(self, share: float = 1.0) -> float | None:
        """Return the recovery time in minutes.

        Recovery ends at the first AG3 sample that reaches `share` of the AG1 mean.

        Returns:
            The result is `None` if no sample reaches this throughput, or if the run has no AG3.
        """
        if len(self.groups) < 3:
            return None
        first, _, third = self.groups
        number = recovery_sample(
            first.samples.bytes_per_s.tolist(), third.samples.bytes_per_s.tolist(), share
        )
        if number is None:
            return None
        return int(third.samples.number[number - 1]) * self.sample_s / 60

    def recovery_text(self, share: float = 1.0) -> str:
        """Return `recovery_minutes` as text."""
        if len(self.groups) < 3:
            return "not measured"
        minutes = self.recovery_minutes(share)
        return "not yet" if minutes is None else f"{minutes:g}"

    def test_parameters(self) -> Rows:
        """Return the two stimuli, their durations and the sample length."""
        data = self.data
        return (
            ("Test Stimulus 1", setup(data, "test_stimulus")),
            ("TOIO - TC/QD", setup(data, "toio")),
            ("Duration", setup(data, "duration")),
            ("Test Stimulus 2", setup(data, "test_stimulus_2")),
            ("TOIO - TC/QD", setup(data, "toio_2")),
            ("Duration", setup(data, "duration_2")),
            ("Sample", f"{self.sample_s:g} s"),
            ("Steady State", NOT_APPLICABLE),
        )

    def verdict(self) -> Verdict:
        """Return the recovery result and the recovery time."""
        groups = self.groups
        first = groups[0].mean_bytes_per_s
        meaning = [
            self.began(),
            f"{groups[0].label}: {units.throughput(first)} on average. The drive counts as "
            "recovered at the first sample of AG3 that reaches this average again.",
        ]
        if len(groups) < 3:
            return Verdict("bad", "The run did not get to the third group", tuple(meaning))
        minutes, nearly = self.recovery_minutes(), self.recovery_minutes(NEARLY)
        if minutes is not None:
            headline = f"Recovered after {minutes:g} minutes of sequential writes"
            return Verdict("good", headline, tuple(meaning))
        best = float(groups[2].samples.bytes_per_s.max(initial=0.0))
        share = f", {100 * best / first:.2f} % of the mean of AG1" if first else ""
        meaning.append(f"The best sample of AG3 is {units.throughput(best)}{share}.")
        headline = "NOT YET RECOVERED at the end of AG3"
        if nearly is not None:
            headline = f"Within 1 % after {nearly:g} minutes, but never back at the mean of AG1"
        return Verdict("warning", headline, tuple(meaning))

    def finding(self) -> str:
        """Return a sentence that states whether and when the drive recovered."""
        return f"{self.verdict().headline}."

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield each group's throughput, and the recovery times."""
        for group in self.groups:
            value = units.number((group.end_bytes_per_s or 0) / 1e6, 1)
            note = f"at the end; {units.throughput(group.mean_bytes_per_s)} on average"
            yield KeyFigure(f"{group.group.name}, {group.group.text}", value, "MB/s", note)
        for label, share in (("Recovery", 1.0), ("Within 1 %", NEARLY)):
            unit = "" if self.recovery_minutes(share) is None else "min"
            yield KeyFigure(label, self.recovery_text(share), unit, f"to {share:.0%} of AG1's mean")

    @classmethod
    def figure_units(cls, procedure: Xsr) -> Mapping[str, str]:
        """Return the units of the recovery time, the throughput and each group's longest I/O."""
        units_of = {"mean_mb_per_s": "MB/s", "end_mb_per_s": "MB/s", "latency_max": "ms"}
        return {"recovery_minutes": "min"} | {
            f"{group.phase}_{name}": unit
            for group in procedure.groups
            for name, unit in units_of.items()
        }

    def headlines(self) -> list[Headline]:
        """Return single values, because throughput that is not stationary has no interval."""
        figures = []
        for group in self.groups:
            key, label = group.group.phase, group.label
            for name, rate in (("mean", group.mean_bytes_per_s), ("end", group.end_bytes_per_s)):
                value = None if rate is None else rate / MB_S.size
                figures += headline(f"{key}_{name}_mb_per_s", f"{label}, {name}", value, "MB/s")
            if self.tails_are_real:
                peak, lower = ms(group.mrt_peak_ns), {"higher_is_better": False}
                figures += headline(
                    f"{key}_latency_max", f"{label}, longest I/O", peak, "ms", **lower
                )
        minutes = self.recovery_minutes(NEARLY)
        label = "Recovery to within 1 %"
        return [
            *headline("recovery_minutes", label, minutes, "min", higher_is_better=False), *figures
        ]  # fmt: skip

    def curves(self) -> list[Curve]:
        """Return the throughput over time."""
        rate = self._over_all("TP", lambda group: group.samples.bytes_per_s)
        points = list(zip(rate.x, rate.y, strict=True))
        time = time_axis(points[-1][0] if points else 0.0)
        return [Curve("cross-stimulus", "Cross stimulus recovery: TP v time", time, TP, points)]

    @cached_property
    def _shown(self) -> Sequence[StepRow]:
        """Steps whose response times are shown at the top of the page."""
        return self.data.stage_rows("ag3") or self.data.stage_rows("ag1")

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times of AG3, or of AG1 before AG3 has started."""
        return self.data.histogram(self._shown)

    @property
    def latency_note(self) -> str:
        """Access group covered by `histogram`."""
        which = f": all of {self._shown[0].phase.upper()}"
        return service_note(self.histogram, which, otherwise="No response times were measured.")

    def sections(self) -> Iterable[Section]:
        """Return the sections on throughput, change-overs and response times."""
        unit = "minute" if self.sample_s == 60 else f"{self.sample_s:g} s"
        data, groups = self._samples_file(), self.groups
        whole = time_axis(groups[-1].begin_ns + groups[-1].elapsed_ns - groups[0].begin_ns)
        rates = [_line(group, group.samples.bytes_per_s) for group in groups]
        art = self._over_all("ART", lambda group: group.samples.mean_ns)
        mrt = self._over_all("MRT", lambda group: group.samples.max_ns)
        rate = self._over_all("TP", lambda group: group.samples.bytes_per_s)
        slow = "Average and maximum response time of every sample over time"
        both = "Throughput, and average and maximum response time, over time"
        return (
            section(
                "Throughput",
                f"One sample per {unit}, the groups one after the other without a gap.",
                lines(
                    "tp-time", "TP v time, all access groups", data, rates, whole, TP,
                    alt="Throughput over time, a line per access group",
                ),
                self._table(),
            ),
            section("Change-overs", "", *self._zooms(data)),
            section(
                "Response times",
                f"Average and maximum of all I/Os of each {unit}.",
                lines(
                    "latency-time", "Average and maximum latency v time", data, [art, mrt], whole,
                    RESPONSE, alt=slow,
                ),
                two_axes(
                    "tp-latency", "TP, ART and MRT v time", data, whole, (TP, [rate]),
                    (RESPONSE, [art, mrt]), alt=both,
                ),
            ),
        )  # fmt: skip

    def _over_all(self, label: str, values: Callable[[GroupData], Numbers]) -> Line:
        """Return a figure that covers all groups."""
        time = np.concatenate([group.time_ns for group in self.groups])
        return Line(label, time.tolist(), np.concatenate(list(map(values, self.groups))).tolist())

    def _zooms(self, data: DataFile) -> Iterator[Figure | None]:
        """Yield up to two hours from each of two consecutive groups, around their change-over."""
        for before, after in pairwise(self.groups):
            parts = []
            for group in (before, after):
                time = group.time_ns - after.begin_ns
                near = np.abs(time) <= ZOOM_NS
                rate = group.samples.bytes_per_s[near].tolist()
                parts.append(Line(group.label, time[near].tolist(), rate))
            span = min(ZOOM_NS, before.elapsed_ns) + min(ZOOM_NS, after.elapsed_ns)
            name = f"tp-{before.group.phase}-{after.group.phase}"
            title = f"TP v time, {before.group.name} to {after.group.name}"
            alt = f"Throughput around the change from {before.label} to {after.label}"
            axis = time_axis(span, "Time from the change-over")
            yield lines(name, title, data, parts, axis, TP, alt=alt)

    def _table(self) -> Table:
        groups = self.groups
        none = [None] * (len(groups) - 1)
        rows: tuple[tuple[Value, ...], ...] = (
            ("TP at end", *(Quantity(g.end_bytes_per_s, kinds.THROUGHPUT) for g in groups)),
            ("TP, mean", *(Quantity(g.mean_bytes_per_s, kinds.THROUGHPUT) for g in groups)),
            ("ART peak", *(Quantity(g.art_peak_ns, kinds.LATENCY) for g in groups)),
            ("MRT peak", *(Quantity(g.mrt_peak_ns, kinds.LATENCY) for g in groups)),
            ("Recovery (minutes)", *none, self.recovery_text()),
            ("Within 1 % (minutes)", *none, self.recovery_text(NEARLY)),
        )
        return table(
            " | ".join(f"{g.group.hours:g} hr {g.group.text}" for g in groups),
            ("", *(g.group.name for g in groups)),
            rows,
            note="Recovery is complete at the first sample of AG3 that reaches the mean of AG1.",
        )

    def _samples_file(self) -> DataFile:
        head = ("group", "sample", "time_ns", "bytes_per_s", "iops", "latency_mean_ns",
                "latency_max_ns")  # fmt: skip
        rows = (
            (group.group.name, number, round(time), *rest)
            for group in self.groups
            for number, time, *rest in zip(
                group.samples.number.tolist(),
                group.time_ns.tolist(),
                group.samples.bytes_per_s.tolist(),
                group.samples.iops.tolist(),
                group.samples.mean_ns.tolist(),
                group.samples.max_ns.tolist(),
                strict=True,
            )
        )
        return data_file("samples.csv", head, rows)

    def results(self) -> dict[str, Any]:
        """Return the samples, groups and recovery times."""
        return {
            "sample_s": self.sample_s,
            "groups": [
                {
                    **asdict(group.group),
                    "samples": len(group.samples),
                    **{name: getattr(group, name) for name in SHOWN},
                }
                for group in self.groups
            ],
            "recovered": self.recovery_minutes() is not None if len(self.groups) == 3 else None,
            "recovery_minutes": self.recovery_minutes(),
            "within_1_pct_minutes": self.recovery_minutes(NEARLY),
        }


def _line(group: GroupData, values: Numbers) -> Line:
    return Line(group.label, group.time_ns.tolist(), values.tolist())
