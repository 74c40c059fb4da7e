"""Campaign results and the report that shows them.

A result is a figure and its load, described in the terms that publications use: access, block size,
read percentage, outstanding I/Os, metric, value, unit. The summary's `results` array contains all
results, so two runs, or a run and a publication, can be compared without knowledge of the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from writecliff.procedures.model import StepRow
from writecliff.report.base import TestReport
from writecliff.report.csvs import data_file
from writecliff.report.headline import ROUNDS, Headline, mean_headline
from writecliff.report.model import KeyFigure
from writecliff.report.table import DataFile
from writecliff.report.testdata import TestData

if TYPE_CHECKING:
    from writecliff._native import Histogram

MS = 1e6


@dataclass(frozen=True)
class Result:
    """A campaign result; fields that do not apply are `None`."""

    item: str  # Part of the campaign, such as "mixes".
    access: str  # Access pattern: "random", "sequential", or a profile name.
    metric: str  # Metric: "iops", "latency_p99.9", ...
    value: float
    unit: str
    block_kib: float | None = None
    read_pct: float | None = None
    oio: int | None = None  # Number of outstanding I/Os.
    higher_is_better: bool | None = True  # `None` if neither direction is better.

    @property
    def load(self) -> str:
        """Load of the figure, such as "random, 4 KiB, 100 % read, OIO 32"."""
        parts = [
            self.access or self.item,
            f"{self.block_kib:g} KiB" if self.block_kib is not None else "",
            f"{self.read_pct:g} % read" if self.read_pct is not None else "",
            f"OIO {self.oio}" if self.oio is not None else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def text(self) -> str:
        """Part and load, such as "basic: random, 4 KiB, 100 % read, OIO 32"."""
        return f"{self.item}: {self.load}"

    @property
    def key(self) -> str:
        """Key that identifies the result within a run."""
        return f"{self.text}: {self.metric}"


_LETTERS = frozenset({"iops", "tbw", "dwpd", "waf", "tco", "gb", "tb"})
_PARTS = {"avg": "average", "max": "maximum"}
_WORDS = {"stddev": "standard deviation", **_PARTS}


def metric_text(metric: str) -> str:
    """Return a metric in words, such as "99.9 % response time of writes"."""
    operation, _, rest = metric.partition("_")
    of = ""
    if operation in ("read", "write") and (rest == "iops" or rest.startswith("latency_")):
        metric, of = rest, f" of {operation}s"
    name, _, part = metric.partition("latency_")
    if part and not name:
        which = _PARTS.get(part) or f"{part.removeprefix('p')} %"
        return f"{which} response time{of}"
    words = (
        word.upper() if word in _LETTERS else _WORDS.get(word, word) for word in metric.split("_")
    )
    return " ".join(words) + of


def known_results(
    figures: Sequence[tuple[str, float | None, str, bool]], **of: Any
) -> list[Result]:
    """Return the results that have a known value.

    `figures` holds (metric, value, unit, higher is better) tuples.
    """
    return [
        Result(metric=metric, value=value, unit=unit, higher_is_better=better, **of)
        for metric, value, unit, better in figures
        if value is not None
    ]


class CampaignReport(TestReport):
    """Report of a published campaign."""

    samples_are: ClassVar[str] = ROUNDS  # Type of the samples that `samples_of` returns.

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """All figures in the campaign."""
        return ()

    def more_results(self) -> Mapping[str, Any]:
        """Return the summary keys to add to `results`."""
        return {}

    def samples_of(self, result: Result) -> Sequence[float | None]:
        """Return the samples whose mean is a result, or an empty list for a single value."""
        return ()

    def headlines(self) -> list[Headline]:
        """Return the results as headline figures, with confidence intervals."""
        steady = all(view.reached for view in self.views)
        return [
            item
            for result in self.measurements
            for item in mean_headline(
                result.key, f"{result.text}: {metric_text(result.metric)}", self.samples_of(result),
                result.unit, value=result.value, of=self.samples_are,
                higher_is_better=result.higher_is_better, steady=steady,
                group=result.item, load=result.load, metric=metric_text(result.metric),
            )
        ]  # fmt: skip

    def results(self) -> dict[str, Any]:
        """Return `results` and the keys returned by `more_results`."""
        return {"results": [asdict(result) for result in self.measurements], **self.more_results()}

    def written(self) -> Sequence[KeyFigure]:
        """Return the written data; the fill state is unknown, as no step preconditions."""
        return super().written()[:1]

    @cached_property
    def results_file(self) -> DataFile:
        """All results in CSV format."""
        columns = tuple(Result.__dataclass_fields__)
        rows = ([_plain(getattr(result, name)) for name in columns] for result in self.measurements)
        return data_file("results.csv", columns, rows)

    def files(self) -> tuple[DataFile, ...]:
        """Return the results in CSV format."""
        return (self.results_file,)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


@dataclass(frozen=True)
class Steps:
    """A run's steps, split by operation; `operation` is `None` for all operations."""

    data: TestData

    @cached_property
    def _histograms(self) -> dict[str | None, Mapping[int, Histogram]]:
        return {}

    def iops(self, row: StepRow, operation: str | None = None) -> float:
        """Return an operation's IOPS."""
        if operation is None:
            return row.iops
        ios: int = self.data.columns[self.data.seq(row)][f"{operation}_ios"]
        return ios * row.iops / row.ios if row.ios else 0.0

    def histogram(self, row: StepRow, operation: str | None = None) -> Histogram | None:
        """Return a step's service times, or None if the step completed no I/O."""
        if operation not in self._histograms:
            self._histograms[operation] = self.data.run.histograms_by_step(operation=operation)
        return self._histograms[operation].get(self.data.seq(row))

    def latency_ns(
        self, row: StepRow, q: float | None, operation: str | None = None
    ) -> float | None:
        """Return a statistic of a step's service times in ns (see `statistic`)."""
        return statistic(self.histogram(row, operation), q)


# Average, quantiles and maximum as arguments of `statistic`.
STATISTICS = (("avg", None), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0))


def statistic(histogram: Histogram | None, q: float | None) -> float | None:
    """Return a quantile in ns; None selects the mean, and 1 selects the maximum.

    The result is `None` if there are too few samples.
    """
    if histogram is None:
        return None
    if q is None:
        return histogram.mean_ns
    return histogram.max_ns if q == 1 else histogram.quantile(q).value_ns


def latency_results(
    steps: Steps,
    row: StepRow,
    of: Mapping[str, Any],
    operation: str | None = None,
    *,
    prefix: str = "",
) -> list[Result]:
    """Return a step's known `STATISTICS` in ms."""
    values = [(name, steps.latency_ns(row, q, operation)) for name, q in STATISTICS]
    figures = [
        (f"{prefix}latency_{name}", None if value is None else value / MS, "ms", False)
        for name, value in values
    ]
    return known_results(figures, **of)


def oio_of(row: StepRow) -> int | None:
    """Return the total number of outstanding I/Os over all threads."""
    if row.threads is None or row.queue_depth is None:
        return None
    return row.threads * row.queue_depth
