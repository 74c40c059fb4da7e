"""Aerospike certification test report with the verdict, the hourly table and the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.campaigns.act import SEARCH, Act
from writecliff.procedures.campaigns.act_judge import LIMITS_PCT, THRESHOLDS_MS, Slice, Trial
from writecliff.report import kinds, plots
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.act_text import (
    TABLE_MS,
    certified,
    procedure_of,
    slices,
    table_text,
)
from writecliff.report.campaigns.results import CampaignReport, Result, known_results
from writecliff.report.compared import Grid
from writecliff.report.csvs import data_file
from writecliff.report.figures import histogram_figures
from writecliff.report.interaction import Label
from writecliff.report.model import KeyFigure, Section, Verdict, section
from writecliff.report.table import Column, DataFile, Head, table

if TYPE_CHECKING:
    from writecliff._native import Histogram


class ActReport(CampaignReport):
    """Report of an ACT run."""

    samples_are = "mean over the slices"

    @cached_property
    def procedure(self) -> Act:
        """Test and its options."""
        return procedure_of(self.data)

    @cached_property
    def trial(self) -> Trial | None:
        """Last complete test, or None if the run did not complete a test."""
        return certified(self.data)

    @cached_property
    def slices(self) -> Sequence[Slice]:
        """Complete slices of the last complete test."""
        return slices(self.data, self.trial) if self.trial is not None else ()

    @cached_property
    def reads(self) -> Histogram | None:
        """Service times of all reads in the test."""
        if self.trial is None:
            return None
        steps = [self.data.seq(row) for row in self.trial.rows]
        return self.data.run.histogram(steps=steps, operation="read", job=0)

    @cached_property
    def measurements(self) -> Sequence[Result]:
        """Percentages of reads above the thresholds, by slice and on average."""
        if self.trial is None:
            return ()
        multiple = self.trial.multiple
        figures = []
        for ms in TABLE_MS:
            shares = [item.over_pct[ms] for item in self.slices]
            figures.append((f"over_{ms}ms_avg", fmean(shares) if shares else None, "%", False))
            figures.append((f"over_{ms}ms_max", max(shares, default=None), "%", False))
        results = known_results(figures, item=f"act {multiple:g}x", access="act")
        if self.procedure.options.search:
            best = multiple if self.procedure.passed(self.trial) else 0.0
            figure = ("largest_load", best, "x", True)
            results += known_results((figure,), item="act", access="act")
        return results

    def grids(self) -> list[Grid]:
        """Return the percentage of reads above each threshold, by slice."""
        rows = {str(item.number): item.over_pct for item in self.slices}
        if rows:
            every = list(rows.values())
            rows["average"] = {ms: fmean(pct[ms] for pct in every) for ms in TABLE_MS}
            rows["maximum"] = {ms: max(pct[ms] for pct in every) for ms in TABLE_MS}
        return [
            Grid(
                name="slices",
                title="Reads over each threshold by slice",
                corner="Slice",
                rows=list(rows),
                columns=[f"> {ms} ms" for ms in TABLE_MS],
                values={(n, f"> {ms} ms"): pct[ms] for n, pct in rows.items() for ms in TABLE_MS},
                unit="%",
                higher_is_better=False,
            )
        ]

    def samples_of(self, result: Result) -> Sequence[float | None]:
        """Return the percentages of the slices included in an average."""
        if not result.metric.endswith("_avg"):
            return ()
        ms = int(result.metric.removeprefix("over_").removesuffix("ms_avg"))
        return [item.over_pct[ms] for item in self.slices]

    def answer(self) -> str:
        """Return PASS or FAIL, the load factor, and the limit with the smallest margin."""
        trial, options = self.trial, self.procedure.options
        if trial is None:
            return f"FAIL: {self.verdict().headline.lower()}"
        passed = self.procedure.passed(trial)
        load = f"{'PASS' if passed else 'FAIL'} at load factor {trial.multiple:g}x"
        if passed and options.search:
            load += ", the largest that passes"
        if trial.stopped(options.max_lag_sec):
            return f"{load}: the drive cannot keep up"
        worst = [
            f"{units.significant(max(item.over_pct[ms] for item in self.slices))} % over {ms} ms "
            f"(limit {limit:g} %)"
            for ms, limit in LIMITS_PCT.items()
            if self.slices
        ]
        return f"{load}: {', '.join(worst) or 'no slice is complete'} in the worst slice"

    def more_results(self) -> Mapping[str, Any]:
        """Return the verdict, the limits and the search trials."""
        options, trial = self.procedure.options, self.trial
        passed = self.procedure.passed(trial) if trial is not None else None
        return {
            "act": {
                "model": options.model,
                "load": None if trial is None else trial.multiple,
                "passed": passed,
                "stopped": None if trial is None else trial.stopped(options.max_lag_sec),
                "largest_passed": trial.multiple if trial is not None and passed else None,
                "searched": options.search,
                "slices": [
                    {
                        "slice": item.number,
                        "reads": item.reads,
                        "passed": item.passed,
                        **{f"over_{ms}ms_pct": share for ms, share in item.over_pct.items()},
                    }
                    for item in self.slices
                ],
            }
        }

    def notes(self) -> tuple[str, ...]:
        """Return a note on latencies near a threshold."""
        return (
            "A latency within the histogram's resolution of a threshold (1/64 of it) counts as "
            "over it.",
        )

    def verdict(self) -> Verdict:
        """Return the verdict, the limits, and the slices that exceed them."""
        options, trial = self.procedure.options, self.trial
        rule = "; ".join(f"fewer than {pct:g} % over {ms} ms" for ms, pct in LIMITS_PCT.items())
        meaning = [f"Limits for the reads of every slice: {rule}."]
        if trial is None:
            text = "No load passed the search" if options.search else "Nothing was tested yet"
            return Verdict("bad", text, tuple(meaning))
        load, time = f"{trial.multiple:g}x", units.duration(_tested_ns(trial))
        bad = [item.number for item in trial.slices if not item.passed]
        meaning.append(
            f"Tested at {load} for {time}; the load was at most {units.significant(trial.lag_s)} s "
            "behind its schedule."
        )
        if trial.stopped(options.max_lag_sec):
            headline = f"Stopped: the drive cannot keep up with {load}"
            return Verdict("bad", headline, tuple(meaning))
        if not trial.complete:
            return Verdict("warning", f"{load}: test not completed", tuple(meaning))
        if bad:
            meaning.append(f"Slices over a limit: {', '.join(map(str, bad))}.")
            meaning.append("The stress test passed: it ran to its end.")
            return Verdict("bad", f"{load} failed", tuple(meaning))
        return Verdict("good", f"{load} passed", tuple(meaning))

    def finding(self) -> str:
        """Return PASS or FAIL with the load factor."""
        return f"{self.answer().partition(':')[0].partition(',')[0]}."

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the load, and the percentage of reads above each threshold."""
        if self.trial is None:
            return
        verdict = "passed" if self.procedure.passed(self.trial) else "not passed"
        label = "Largest load" if self.procedure.options.search else "Load"
        yield KeyFigure(label, f"{self.trial.multiple:g}", "x", verdict)
        for ms, limit in LIMITS_PCT.items():
            worst = max((item.over_pct[ms] for item in self.slices), default=None)
            note = f"in the worst slice; limit: below {limit:g} %"
            yield KeyFigure(f"Over {ms} ms", units.number(worst, 2), "%", note)

    def sections(self) -> Iterator[Section]:
        """Yield the sections about the slices, then the section about the search."""
        if self.trial is not None:
            yield self._by_slice(self.trial)
        if rows := self.data.stage_rows(SEARCH):
            yield self._search(self.procedure.trials(rows, SEARCH))

    def _by_slice(self, trial: Trial) -> Section:
        done = self.slices
        numbers = [float(item.number) for item in done]
        rows = [
            (str(item.number), item.reads, *(item.over_pct[ms] for ms in TABLE_MS),
             "" if item.passed else "over")
            for item in done
        ]  # fmt: skip
        data = self._slices_file()
        return section(
            "By slice",
            "Percent of the reads, as in the table of act_latency.py.",
            plots.lines(
                "slices",
                "Reads over 1, 8 and 64 ms by slice",
                data,
                [Line(f"> {ms} ms", numbers, [s.over_pct[ms] for s in done]) for ms in LIMITS_PCT],
                Axis("Slice", whole=True, from_zero=False),
                Axis(Label("Reads over the threshold", "%")),
                alt="Percent of the reads of each slice that took longer than 1, 8 and 64 ms",
                references=[
                    # The lines share a single name. A name that starts with "_" has no legend
                    # entry.
                    plots.Reference("_" * bool(index) + "limits", limit)
                    for index, limit in enumerate(LIMITS_PCT.values())
                ],
            ),
            *histogram_figures(self.reads, "-reads", "Reads: ", "reads-histogram.csv"),
            table(
                f"Reads over each threshold, {trial.multiple:g}x",
                (
                    "Slice",
                    Column("Reads", kinds.NUMBER),
                    *(Column(f"> {ms} ms", kinds.percents()) for ms in TABLE_MS),
                    Column(""),
                ),
                rows,
                note="" if done else "No slice was completed.",
                data=data,
            ),
        )

    def _slices_file(self) -> DataFile:
        head = ("slice", "reads", *(f"over_{ms}ms_pct" for ms in THRESHOLDS_MS))
        rows = ((item.number, item.reads, *item.over_pct.values()) for item in self.slices)
        return data_file("slices.csv", head, rows)

    def _search(self, trials: Sequence[Trial]) -> Section:
        lag_limit_s = self.procedure.options.max_lag_sec
        rows = []
        for trial in trials:
            cells = [trial.slices[0].over_pct[ms] if trial.slices else None for ms in LIMITS_PCT]
            verdict = "failed" if trial.failed(lag_limit_s) else "passed"
            if trial.stopped(lag_limit_s):
                verdict = "stopped: cannot keep up"
            load = f"{trial.multiple:g}x"
            rows.append((load, _tested_ns(trial), *cells, trial.lag_s, verdict))
        head: Head = (
            "Load",
            Column("Tested", kinds.DURATION),
            *(Column(f"> {ms} ms", kinds.percents()) for ms in LIMITS_PCT),
            Column("Lag", kinds.digits(3, "s")),
            "",
        )
        loads = table("Tested loads", head, rows)
        return section("Search", "One slice each, by doubling and halving.", loads)

    def files(self) -> tuple[DataFile, ...]:
        """Return the log and the table in ACT's formats."""
        files = [self.results_file]
        if self.slices:
            old = self.procedure.options.model == "3.x"
            files.append(DataFile("act-latency.txt", table_text(self.slices, old=old)))
        return tuple(files)


def _tested_ns(trial: Trial) -> float:
    return float(sum(row.elapsed_ns for row in trial.rows))
