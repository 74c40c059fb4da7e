"""What reports of campaigns share: steps by operation, the list of results, the page around them.

A result is one figure with what it is of, in the terms in which such figures are published: access,
block size, share of reads, outstanding I/Os, metric, value, unit. `results` of the summary holds
all of them, so that two runs, or a run and a publication, can be compared without knowing the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.report.assembly import assembled
from writecliff.report.header import NOT_APPLICABLE, header
from writecliff.report.loops import STEPS_CSV, steps_csv
from writecliff.report.model import DataFile, KeyFigure, ReportModel, Section, Verdict
from writecliff.report.summary import described, files
from writecliff.report.testdata import TestData

if TYPE_CHECKING:
    from writecliff._native import Histogram

MS = 1e6
RESULTS_CSV = "results.csv"


@dataclass(frozen=True)
class Result:
    """One figure; what does not apply is None."""

    item: str  # the part of the campaign: "mixes"
    access: str  # "random", "sequential", or the name of a profile
    metric: str  # "iops", "latency_p99.9", ...
    value: float
    unit: str
    block_kib: float | None = None
    read_pct: float | None = None
    oio: int | None = None  # outstanding I/Os
    higher_is_better: bool | None = True  # None: neither


@dataclass(frozen=True)
class Steps:
    """The steps of a run, by operation as well. `operation` None is all of them together."""

    data: TestData

    def phase(self, name: str) -> Sequence[StepRow]:
        """Those of a stage, as far as the run got; not the ones that prepared it."""
        stage = self.data.stage(name)
        return () if stage is None else stage.rows

    @cached_property
    def _totals(self) -> Mapping[int, Mapping[str, Any]]:
        return {row["seq"]: row for row in self.data.run.rounds().to_pylist()}

    @cached_property
    def _histograms(self) -> dict[str | None, Mapping[int, Histogram]]:
        return {}

    def column(self, row: StepRow, name: str) -> Any:
        """A column of the table `rounds`."""
        return self._totals[self.data.seq(row)].get(name)

    def iops(self, row: StepRow, operation: str | None = None) -> float:
        if operation is None:
            return row.iops
        ios: int = self.column(row, f"{operation}_ios")
        return ios / (row.elapsed_ns / 1e9) if row.elapsed_ns else 0.0

    def histogram(self, row: StepRow, operation: str | None = None) -> Histogram | None:
        if operation not in self._histograms:
            self._histograms[operation] = self.data.run.histograms_by_step(operation=operation)
        return self._histograms[operation].get(self.data.seq(row))

    def quantile_ns(self, row: StepRow, q: float, operation: str | None = None) -> float | None:
        """None where the sample does not support it."""
        found = self.histogram(row, operation)
        return None if found is None else found.quantile(q).value_ns

    def mean_ns(self, row: StepRow, operation: str | None = None) -> float | None:
        found = self.histogram(row, operation)
        return None if found is None else found.mean_ns

    def max_ns(self, row: StepRow, operation: str | None = None) -> float | None:
        found = self.histogram(row, operation)
        return None if found is None else found.max_ns


def latency_results(
    steps: Steps,
    row: StepRow,
    place: Mapping[str, Any],
    operation: str | None = None,
    *,
    prefix: str = "",
) -> list[Result]:
    """Average, 99.9 %, 99.99 % and maximum in ms, those that are known."""
    found = {
        "avg": steps.mean_ns(row, operation),
        "p99.9": steps.quantile_ns(row, 0.999, operation),
        "p99.99": steps.quantile_ns(row, 0.9999, operation),
        "max": steps.max_ns(row, operation),
    }
    return [
        Result(
            metric=f"{prefix}latency_{name}",
            value=value / MS,
            unit="ms",
            higher_is_better=False,
            **place,
        )
        for name, value in found.items()
        if value is not None
    ]


def oio_of(row: StepRow) -> int | None:
    """Outstanding I/Os of all threads."""
    if row.threads is None or row.queue_depth is None:
        return None
    return row.threads * row.queue_depth


def known(value: float | None) -> float:
    """For figures: unknown is NaN."""
    return float("nan") if value is None else value


def summary(data: TestData, results: Sequence[Result], **more: Any) -> dict[str, Any]:
    """The summary of a campaign's run, "writecliff/NAME/1"; see docs/reference/json.md."""
    return {
        "schema": f"writecliff/{data.manifest.procedure}/1",
        **described(data),
        "results": [asdict(result) for result in results],
        **more,
        **files(data),
    }


def page(
    data: TestData,
    *,
    verdict: Verdict,
    key_figures: Sequence[KeyFigure],
    sections: Sequence[Section],
    summary: dict[str, Any],
    files: Sequence[DataFile] = (),
    more_notes: Sequence[str] = (),
) -> ReportModel:
    """The report, of what its campaign has to show and what all of them show."""
    return assembled(
        data,
        title=data.manifest.title,
        header=header(data, NOT_APPLICABLE),
        verdict=verdict,
        key_figures=(*key_figures, _written(data)),
        sections=sections,
        more_notes=more_notes,
        files=(DataFile(STEPS_CSV, steps_csv(data)), *files),
        summary=summary,
    )


def _written(data: TestData) -> KeyFigure:
    """In the steps; a simulated drive may have been brought to its state before."""
    amount = units.size(sum(row.host_write_bytes for row in data.rows)).rpartition(" ")
    untimed = any(row.host_write_bytes and not row.elapsed_ns for row in data.rows)
    note = "in the steps" if untimed else f"in {units.duration(data.elapsed_ns)}"
    return KeyFigure("Written", amount[0], amount[2], note)


def results_file(results: Sequence[Result]) -> DataFile:
    """All results as CSV."""
    from writecliff.report.csvs import csv_text

    columns = tuple(Result.__dataclass_fields__)
    rows = ([_plain(getattr(result, name)) for name in columns] for result in results)
    return DataFile(RESULTS_CSV, csv_text(columns, rows))


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
