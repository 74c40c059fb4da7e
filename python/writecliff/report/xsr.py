"""The report of XSR: throughput and response times over time, and how long recovery takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.errors import StoreError
from writecliff.procedures.xsr import Group, Xsr, recovery_sample
from writecliff.report.assembly import assembled
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.csvs import csv_text
from writecliff.report.header import NOT_APPLICABLE, amount, header, setup
from writecliff.report.latency import service_note
from writecliff.report.model import (
    Align,
    DataFile,
    Figure,
    Header,
    KeyFigure,
    ReportModel,
    Section,
    Table,
    Verdict,
    drawn,
)
from writecliff.report.plots import lines, two_axes
from writecliff.report.series import Samples, samples, series
from writecliff.report.style import house_style
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory
from writecliff.units import MB_S

if TYPE_CHECKING:
    from writecliff.procedures.model import StepRow
    from writecliff.report.series import Numbers

SAMPLES_CSV = "samples.csv"
NEARLY = 0.99  # a drive without noise may stay a few I/Os short of its mean while fresh
ZOOM_NS = 2 * 3600e9  # of each group beside a change-over
TP = Axis("Throughput", units=(MB_S,))
LATENCY = Axis("Response time", units=units.LATENCY_UNITS, log=True)


@dataclass(frozen=True)
class GroupData:
    """An access group, as far as the run got; times since the first group began."""

    group: Group
    begin_ns: float
    elapsed_ns: float
    samples: Samples

    @property
    def time_ns(self) -> Numbers:
        return self.begin_ns + self.samples.time_ns

    @property
    def label(self) -> str:
        return f"{self.group.name} {self.group.text}"

    @property
    def mean_bytes_per_s(self) -> float | None:
        values = self.samples.bytes_per_s
        return float(values.mean()) if values.size else None

    @property
    def end_bytes_per_s(self) -> float | None:
        """Of the last sample."""
        values = self.samples.bytes_per_s
        return float(values[-1]) if values.size else None

    @property
    def art_peak_ns(self) -> float | None:
        return _peak(self.samples.mean_ns)

    @property
    def mrt_peak_ns(self) -> float | None:
        return _peak(self.samples.max_ns)


def _peak(values: Numbers) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else None


@dataclass(frozen=True)
class XsrData:
    """A run of XSR."""

    data: TestData
    procedure: Xsr

    @property
    def sample_s(self) -> float:
        return float(self.procedure.options.sample_seconds)

    @cached_property
    def groups(self) -> tuple[GroupData, ...]:
        """Those that were begun."""
        found = []
        zero_ns = self.data.rows[0].started_ns
        for group in self.procedure.groups:
            stage = self.data.stage(group.phase)
            if stage is None or not stage.rows:
                break
            rows = stage.rows
            found.append(
                GroupData(
                    group,
                    float(rows[0].started_ns - zero_ns),
                    float(rows[-1].ended_ns - rows[0].started_ns),
                    samples(series(self.data, rows), self.sample_s * 1e9),
                )
            )
        return tuple(found)

    def recovery_minutes(self, share: float = 1.0) -> float | None:
        """End of the first sample of AG3 that is back at `share` of the mean of AG1; None: none is,
        or there is no AG3."""
        if len(self.groups) < 3:
            return None
        first, _, third = self.groups
        place = recovery_sample(
            first.samples.bytes_per_s.tolist(), third.samples.bytes_per_s.tolist(), share
        )
        if place is None:
            return None
        return int(third.samples.number[place - 1]) * self.sample_s / 60

    def recovery_text(self, share: float = 1.0) -> str:
        if len(self.groups) < 3:
            return "not measured"
        minutes = self.recovery_minutes(share)
        return "not yet" if minutes is None else f"{minutes:g}"


def load_xsr(run: RunDirectory) -> XsrData:
    """Raises StoreError: another test's run, or nothing measured yet."""
    data = load(run)
    if not isinstance(data.procedure, Xsr):
        raise StoreError(f"{run.path} is a run of {data.procedure.name}", hint="not of XSR")
    return XsrData(data, data.procedure)


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: another test's run, or nothing measured yet."""
    xsr = load_xsr(run)
    data = xsr.data
    rows = _group_rows(xsr, "AG3") or _group_rows(xsr, "AG1")
    histogram = data.histogram(rows)
    with house_style():
        sections = _sections(xsr)
    return assembled(
        data,
        title=xsr.procedure.title,
        header=_header(xsr),
        verdict=_verdict(xsr),
        key_figures=_key_figures(xsr),
        histogram=histogram,
        latency_note=service_note(
            histogram,
            f": all of {rows[0].phase.upper()}",
            otherwise="No response times were measured.",
        ),
        sections=sections,
        files=(DataFile(SAMPLES_CSV, _samples_csv(xsr)),),
        summary=_summary(xsr),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    return _summary(load_xsr(run))


def _group_rows(xsr: XsrData, name: str) -> list[StepRow]:
    stage = xsr.data.stage(name.lower())
    return list(stage.rows) if stage is not None else []


def _header(xsr: XsrData) -> Header:
    data = xsr.data
    rows = (
        ("Data Pattern", setup(data, "data_pattern")),
        ("AR & Amount", amount(data)),
        ("Test Stimulus 1", setup(data, "test_stimulus")),
        ("TOIO - TC/QD", setup(data, "toio")),
        ("Duration", setup(data, "duration")),
        ("Test Stimulus 2", setup(data, "test_stimulus_2")),
        ("TOIO - TC/QD", setup(data, "toio_2")),
        ("Duration", setup(data, "duration_2")),
        ("Sample", f"{xsr.sample_s:g} s"),
        ("Steady State", NOT_APPLICABLE),
    )
    return header(data, NOT_APPLICABLE, rows)


def _verdict(xsr: XsrData) -> Verdict:
    groups = xsr.groups
    first = groups[0].mean_bytes_per_s
    meaning = (
        f"{groups[0].label}: {_mb(first)} on average. The drive counts as recovered with the first "
        "sample of AG3 that is at that again.",
    )
    if len(groups) < 3:
        return Verdict("bad", "The run did not get to the third group", meaning)
    minutes, nearly = xsr.recovery_minutes(), xsr.recovery_minutes(NEARLY)
    if minutes is not None:
        text = f"Recovered after {minutes:g} minutes of sequential writes"
        return Verdict("good", text, meaning)
    best = float(groups[2].samples.bytes_per_s.max(initial=0.0))
    share = f"{100 * best / first:.2f} % of the mean of AG1" if first else "nothing"
    note = f"The best sample of AG3 is {_mb(best)}, {share}."
    if nearly is None:
        return Verdict("warning", "NOT YET RECOVERED at the end of AG3", (*meaning, note))
    text = f"Within 1 % after {nearly:g} minutes, but not quite at the mean of AG1 again"
    return Verdict("warning", text, (*meaning, note))


def _mb(bytes_per_s: float | None) -> str:
    return units.UNKNOWN if bytes_per_s is None else f"{units.number(bytes_per_s / 1e6, 1)} MB/s"


def _key_figures(xsr: XsrData) -> tuple[KeyFigure, ...]:
    found = [
        KeyFigure(
            f"{one.group.name}, {one.group.text}",
            units.number((one.end_bytes_per_s or 0) / 1e6, 1),
            "MB/s",
            f"at the end; {_mb(one.mean_bytes_per_s)} on average",
        )
        for one in xsr.groups
    ]
    for label, share in (("Recovery", 1.0), ("Within 1 %", NEARLY)):
        unit = "min" * (xsr.recovery_minutes(share) is not None)
        found.append(KeyFigure(label, xsr.recovery_text(share), unit, "of the mean of AG1"))
    return tuple(found)


# -- figures and tables ---------------------------------------------------------------------------


def _sections(xsr: XsrData) -> tuple[Section, ...]:
    unit = "minute" if xsr.sample_s == 60 else f"{xsr.sample_s:g} s"
    return (
        Section(
            "Throughput",
            f"A sample each {unit}, the groups one after the other without a gap.",
            _throughput(xsr),
            (_table(xsr),),
        ),
        Section("Change-overs", "", _zooms(xsr)),
        Section(
            "Response times",
            f"Average and maximum of all I/Os of each {unit}.",
            _latency(xsr) + _both(xsr),
        ),
    )


def _total_ns(groups: Sequence[GroupData]) -> float:
    return groups[-1].begin_ns + groups[-1].elapsed_ns - groups[0].begin_ns


def _line(one: GroupData, values: Numbers, label: str | None = None) -> Line:
    return Line(label or one.label, one.time_ns.tolist(), values.tolist())


def _throughput(xsr: XsrData) -> tuple[Figure, ...]:
    text = "Throughput over time, a line an access group"
    series_ = [_line(one, one.samples.bytes_per_s) for one in xsr.groups]
    svg = lines("tp-time", series_, time_axis(_total_ns(xsr.groups)), TP, description=text)
    return drawn("tp-time", "TP v time, all access groups", svg, SAMPLES_CSV, text)


def _zooms(xsr: XsrData) -> tuple[Figure, ...]:
    """Up to two hours of each of two groups, around where one follows the other."""
    found: tuple[Figure, ...] = ()
    for before, after in zip(xsr.groups, xsr.groups[1:], strict=False):
        change_ns = after.begin_ns
        parts = []
        for one in (before, after):
            near = np.abs(one.time_ns - change_ns) <= ZOOM_NS
            parts.append(
                Line(
                    one.label,
                    (one.time_ns[near] - change_ns).tolist(),
                    one.samples.bytes_per_s[near].tolist(),
                )
            )
        span = min(ZOOM_NS, before.elapsed_ns) + min(ZOOM_NS, after.elapsed_ns)
        name = f"tp-{before.group.phase}-{after.group.phase}"
        text = f"Throughput around the change from {before.label} to {after.label}"
        axis = time_axis(span, "Time from the change-over")
        svg = lines(name, parts, axis, TP, description=text)
        title = f"TP v time, {before.group.name} to {after.group.name}"
        found += drawn(name, title, svg, SAMPLES_CSV, text)
    return found


def _latencies(xsr: XsrData) -> list[Line]:
    """Average and maximum over all groups."""
    time = np.concatenate([one.time_ns for one in xsr.groups]).tolist()
    mean = np.concatenate([one.samples.mean_ns for one in xsr.groups]).tolist()
    high = np.concatenate([one.samples.max_ns for one in xsr.groups]).tolist()
    return [Line("ART", time, mean), Line("MRT", time, high)]


def _latency(xsr: XsrData) -> tuple[Figure, ...]:
    text = "Average and maximum response time of every sample over time"
    axis = time_axis(_total_ns(xsr.groups))
    svg = lines("latency-time", _latencies(xsr), axis, LATENCY, description=text)
    title = "Average and maximum latency v time"
    return drawn("latency-time", title, svg, SAMPLES_CSV, text)


def _both(xsr: XsrData) -> tuple[Figure, ...]:
    text = "Throughput, and average and maximum response time, over time"
    time = np.concatenate([one.time_ns for one in xsr.groups]).tolist()
    rate = np.concatenate([one.samples.bytes_per_s for one in xsr.groups]).tolist()
    svg = two_axes(
        "tp-latency",
        time_axis(_total_ns(xsr.groups)),
        (TP, [Line("TP", time, rate)]),
        (LATENCY, _latencies(xsr)),
        description=text,
    )
    return drawn("tp-latency", "TP, ART and MRT v time", svg, SAMPLES_CSV, text)


def _table(xsr: XsrData) -> Table:
    groups = xsr.groups
    right: list[Align] = ["right"] * len(groups)
    none = [units.UNKNOWN] * (len(groups) - 1)
    rows = (
        ("TP at end", *(_mb(one.end_bytes_per_s) for one in groups)),
        ("TP, mean", *(_mb(one.mean_bytes_per_s) for one in groups)),
        ("ART peak", *(units.latency(one.art_peak_ns) for one in groups)),
        ("MRT peak", *(units.latency(one.mrt_peak_ns) for one in groups)),
        ("Recovery (minutes)", *none, xsr.recovery_text()),
        ("Within 1 % (minutes)", *none, xsr.recovery_text(NEARLY)),
    )
    return Table(
        " | ".join(f"{one.group.hours:g} hr {one.group.text}" for one in groups),
        ("", *(one.group.name for one in groups)),
        rows,
        ("left", *right),
        "Recovery: the first sample of AG3 that is at least at the mean of AG1.",
    )


def _samples_csv(xsr: XsrData) -> str:
    head = ("group", "sample", "time_ns", "bytes_per_s", "iops", "latency_mean_ns",
            "latency_max_ns")  # fmt: skip
    rows = (
        (one.group.name, number, round(time), rate, iops, mean, high)
        for one in xsr.groups
        for number, time, rate, iops, mean, high in zip(
            one.samples.number.tolist(),
            one.time_ns.tolist(),
            one.samples.bytes_per_s.tolist(),
            one.samples.iops.tolist(),
            one.samples.mean_ns.tolist(),
            one.samples.max_ns.tolist(),
            strict=True,
        )
    )
    return csv_text(head, rows)


def _summary(xsr: XsrData) -> dict[str, Any]:
    """Schema "writecliff/xsr/1"; see docs/reference/json.md."""
    return {
        "schema": "writecliff/xsr/1",
        **described(xsr.data),
        "sample_s": xsr.sample_s,
        "groups": [
            {
                "name": one.group.name,
                "pattern": one.group.pattern,
                "block_bytes": one.group.block_bytes,
                "hours": one.group.hours,
                "samples": len(one.samples),
                "mean_bytes_per_s": one.mean_bytes_per_s,
                "end_bytes_per_s": one.end_bytes_per_s,
                "art_peak_ns": one.art_peak_ns,
                "mrt_peak_ns": one.mrt_peak_ns,
            }
            for one in xsr.groups
        ],
        "recovered": xsr.recovery_minutes() is not None if len(xsr.groups) == 3 else None,
        "recovery_minutes": xsr.recovery_minutes(),
        "within_1_pct_minutes": xsr.recovery_minutes(NEARLY),
        **files(xsr.data),
    }
