"""Report pages for the latency test, and the summary "writecliff/lat/1"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.cells import Cell
from writecliff.procedures.lat import TRACKED
from writecliff.procedures.pts import block_text, mix_text
from writecliff.report import kinds, steady_stages
from writecliff.report.axes import Axis
from writecliff.report.cells import CellReport, RowValue
from writecliff.report.compared import Grid
from writecliff.report.figures import histogram_figures
from writecliff.report.headline import (
    Headline,
    headline,
    mean_headline,
    ms,
    quantile_headline,
)
from writecliff.report.latency import latency_mapping, latency_table
from writecliff.report.model import KeyFigure, Section, section

if TYPE_CHECKING:
    from writecliff._native import Histogram

FIVE_NINES = 0.99999
KINDS = {"mean": "Average", "max": "Maximum"}
MAX_TEXT = {
    "window": "the longest of all I/Os of the window",
    "mean": "the mean of the maxima of the window's rounds",
}


_mean, _max = attrgetter("latency_mean_ns"), attrgetter("latency_max_ns")
PICKS: dict[str, RowValue] = {"mean": _mean, "max": _max}


_QUOTED: tuple[Cell, ...] = (TRACKED, (TRACKED[0], 100.0))


class LatReport(CellReport):
    """Report for a latency test run."""

    sentence = "A random 4 KiB write takes {0} on average, a read {2}."

    @classmethod
    def figure_units(cls, procedure: Any) -> Mapping[str, str]:
        """Return the latency unit for the main cells."""
        return {
            f"{_key(cell)}_{name}": "ms" for cell in _QUOTED for name in ("mean", "max", "p9999")
        }

    def headlines(self) -> list[Headline]:
        """Return the average and tail latencies of the main cells."""
        headlines = []
        for cell in _QUOTED:
            key = _key(cell)
            label = f"RND {block_text(cell[0])} {mix_text(cell[1])}"
            of: dict[str, Any] = {"higher_is_better": False, "steady": self.view.reached}
            means = map(ms, self.view.samples(cell, _mean))
            headlines += mean_headline(f"{key}_mean", f"{label} average", means, "ms", **of)
            if not self.tails_are_real:
                continue
            longest = ms(self.view.highest(cell, _max))
            headlines += headline(f"{key}_max", f"{label} maximum", longest, "ms", **of)
            histogram = self.histograms.get(cell[1])
            headlines += quantile_headline(f"{key}_p9999", f"{label} p99.99", histogram, 0.9999)
        return headlines

    @property
    def max_kind(self) -> str:
        """Definition of a cell's maximum, a key of `MAX_TEXT`."""
        return str(self.data.options["max_latency"])

    def value(self, kind: str, cell: Cell) -> float | None:
        """Return a cell's average or maximum latency over the window, in ns."""
        if kind == "max" and self.max_kind == "window":
            return self.view.highest(cell, _max)
        return self.view.mean(cell, PICKS[kind])

    @cached_property
    def nines(self) -> dict[Cell, int | None]:
        """99.999th percentile of all I/Os in the window in ns, or None for too few I/Os."""
        nines: dict[Cell, int | None] = {}
        for cell in self.view.cells:
            histogram = self.data.histogram(self.view.in_window(cell))
            nines[cell] = histogram.quantile(FIVE_NINES).value_ns if histogram is not None else None
        return nines

    @cached_property
    def histograms(self) -> dict[float, Histogram]:
        """Histograms measured after the rounds, by read percentage."""
        histograms = {}
        for row in self.data.stage_rows("rth"):
            histogram = self.data.histogram([row])
            if histogram is not None and histogram.count and row.read_pct is not None:
                histograms[row.read_pct] = histogram
        return histograms

    @cached_property
    def histogram(self) -> Histogram | None:
        """Histogram for the mix with the most writes, or None if no histogram was measured."""
        return next(iter(self.histograms.values()), None)

    @property
    def latency_note(self) -> str:
        """Load under which `histogram` was measured."""
        for mix, histogram in self.histograms.items():
            return f"Response-time histogram of RND 4KiB {mix_text(mix)}: {histogram.count:,} I/Os."
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return the definition of maximum latencies."""
        return (f"Maximum latencies in tables and columns are {MAX_TEXT[self.max_kind]}.",)

    def grids(self) -> list[Grid]:
        """Return latency by block size and mix, with maxima if the drive's tails are real."""
        by, kinds = "latency by block size and mix", KINDS if self.tails_are_real else ("mean",)
        return [
            self.side(f"latency-{kind}", f"{KINDS[kind]} {by}", partial(self.value, kind), "ms")
            for kind in kinds
        ]

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the main cells' average and maximum latencies."""
        for kind, cell in (("mean", TRACKED), ("max", TRACKED), ("mean", (TRACKED[0], 100.0))):
            if cell in self.view.cells:
                value, _, unit = units.latency(self.value(kind, cell)).rpartition(" ")
                note = self.view.note("" if kind == "mean" else MAX_TEXT[self.max_kind])
                label = f"{KINDS[kind]}, RND {block_text(cell[0])} {mix_text(cell[1])}"
                yield KeyFigure(label, value, unit, note)

    def sections(self) -> Iterator[Section]:
        """Yield the loop, followed by the histograms measured after the rounds."""
        if self.view.rounds:
            yield from self._loop_sections()
        for mix, histogram in self.histograms.items():
            what = f"RND 4KiB {mix_text(mix)}"
            yield section(
                f"Response-time histogram, {what}",
                "Measured after the rounds. Percentiles cover all I/Os and are upper bounds of the "
                "histogram's buckets, at most the maximum.",
                *histogram_figures(histogram, f"-{mix:g}", f"{what}: "),
                latency_table(histogram),
            )

    def _loop_sections(self) -> Iterator[Section]:
        view = self.view
        axes = {
            k: Axis(f"{title} latency", units=units.LATENCY_UNITS) for k, title in KINDS.items()
        }
        rounds = [
            self.by_round(
                f"convergence-{kind}", f"Steady-state convergence, {title.lower()} latency",
                PICKS[kind], f"latency_{kind}_{{}}_ns", axes[kind],
            )
            for kind, title in KINDS.items()
        ]  # fmt: skip
        yield section("Convergence", view.intro, *rounds)
        yield self.window_section()
        notes = {"mean": "", "max": MAX_TEXT[self.max_kind]}
        values = {kind: partial(self.value, kind) for kind in KINDS}
        files = {k: f"latency-{k}.csv" for k in KINDS}
        tables = [
            self.grid(
                f"{KINDS[k]} latency (ms)",
                values[k],
                kinds.IN_MS,
                "latency_ns",
                note=notes[k],
                file=files[k],
            )
            for k in KINDS
        ]
        if self.data.options["revision"] == "2.0":
            title = f"{units.nines(FIVE_NINES)} latency (ms)"
            note = "of all I/Os of the window"
            tables += [
                self.grid(title, self.nines.get, kinds.IN_MS, "latency_ns", note=note,
                          file="latency-99999.csv"),
                self.grid("IOPS", self.iops, kinds.decimals(1), "iops", file="iops.csv"),
            ]  # fmt: skip
        yield section("Tabular data", view.source, *tables)
        columns = [
            self.columns(
                f"latency-{kind}-3d", f"{title} latency - block size x R/W mix",
                values[kind], axes[kind], files[kind], slow=True,
            )
            for kind, title in KINDS.items()
        ]  # fmt: skip
        yield section("3-D columns", f"{view.source} Each maximum is {notes['max']}.", *columns)

    def results(self) -> dict[str, Any]:
        """Return the steady state, latencies and histograms."""
        return {
            "steady_state": steady_stages.views_mapping(self.views),
            "max_latency": self.max_kind,
            "results": [
                {
                    "block_bytes": cell[0],
                    "read_pct": cell[1],
                    "latency_mean_ns": self.value("mean", cell),
                    "latency_max_ns": self.value("max", cell),
                    "latency_p99999_ns": self.nines[cell],
                    "iops": self.iops(cell),
                }
                for cell in self.cells
            ],
            "histograms": [
                {"block_bytes": TRACKED[0], "read_pct": mix, **latency_mapping(histogram)}
                for mix, histogram in self.histograms.items()
            ],
        }


def _key(cell: Cell) -> str:
    return f"latency_4k_{mix_text(cell[1]).replace('/', '_')}"
