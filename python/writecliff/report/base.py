"""Base class for all test reports.

A report is a `TestReport` for a stored run. The test registry names the subclass, which defines the
test's sections, key figures and results. The subclass inherits the header block, disclosures,
notes, footer, CSV files and the rest of the summary.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from string import Formatter
from typing import TYPE_CHECKING, Any

from writecliff import units, version
from writecliff.procedures.registry import entry_of
from writecliff.report import steady_stages
from writecliff.report.colours import one_page
from writecliff.report.csvs import with_data
from writecliff.report.disclosure import (
    choices_mapping,
    choices_section,
    disclosures,
    grave_idle,
    health_sections,
    idle_text,
    platform_section,
    remarks_section,
    step_disclosures,
)
from writecliff.report.expectations import expectations_disclosure, expectations_section
from writecliff.report.header import NOT_APPLICABLE, Rows, header
from writecliff.report.latency import latency_figures
from writecliff.report.latency_causes import Groups, bands_mapping, bands_of, causes_sections
from writecliff.report.model import KeyFigure, ReportModel, Section, Verdict, with_lead
from writecliff.report.table import DataFile

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.report.compared import Curve, Grid
    from writecliff.report.headline import Headline
    from writecliff.report.steady import SteadyView
    from writecliff.report.testdata import TestData

_FINDINGS = 2  # Maximum number of key figures at the top of a page that has no sentence.
RUN_FILES = {
    "manifest": "manifest.json",
    "rounds": "rounds.parquet",
    "intervals": "intervals.parquet",
    "histograms": "histograms.parquet",
}


class TestReport:
    """The report of a single run.

    Subclasses override the members that are specific to their test.
    """

    __test__ = False  # Tell pytest that this class is not a test class.
    lead = ""  # Name or switch of the figure at the top; "" for the first figure.
    # Answer at the top of the page, with key figure numbers in braces: "It sustains {0}."
    sentence = ""

    def __init__(self, data: TestData) -> None:
        """Create the report for `data`."""
        self.data = data
        self.procedure: Any = data.procedure  # Test and its options; subclasses narrow the type.

    # -- members that subclasses override -------------------------------------------------------

    @property
    def title(self) -> str:
        """Title of the test."""
        return self.data.procedure.title

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """Stages whose steady state the verdict covers."""
        return ()

    @property
    def set_up_rounds(self) -> str:
        """Steady-state rounds shown in the "Set Up Parameters" column of the header block."""
        return steady_stages.views_text(self.views) if self.views else NOT_APPLICABLE

    def test_parameters(self) -> Rows | None:
        """Return the header block's fourth column with ten rows, or None for the default rows.

        The default rows are the procedure's `setup`.
        """
        return None

    def opening(self) -> Sequence[str]:
        """Return the first sentences of the verdict."""
        return [self.began()]

    def verdict(self) -> Verdict:
        """Return the first box on the page."""
        return steady_stages.verdict(self.views, self.opening())

    def key_figures(self) -> Iterable[KeyFigure]:
        """Return the results to show at the top of the page."""
        return ()

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times shown at the top of the page, or None."""
        return None

    @cached_property
    def histograms_by_operation(self) -> Mapping[str, Histogram]:
        """Response times by operation, or an empty result if the test has a single operation.

        Reads and writes are never combined in one figure.
        """
        return {}

    @property
    def latency_note(self) -> str:
        """Description of the I/Os in `histogram`, or the reason why it is missing."""
        return ""

    def sections(self) -> Iterable[Section]:
        """Return the test's non-empty sections."""
        return ()

    def notes(self) -> Iterable[str]:
        """Return the notes to add to those included in every report."""
        return ()

    def files(self) -> Iterable[DataFile]:
        """Return the CSV files to add to those for the steps, figures and tables."""
        return ()

    def results(self) -> Mapping[str, Any]:
        """Return the summary keys that are specific to the test.

        Values are JSON-compatible, and key names include the unit.
        """
        return {}

    def headlines(self) -> Sequence[Headline]:
        """Return the run's known headline figures, in descending order of importance."""
        return ()

    @cached_property
    def quoted(self) -> Sequence[Headline]:
        """Headline figures, computed once."""
        return tuple(self.headlines())

    @classmethod
    def figure_units(cls, procedure: Any) -> Mapping[str, str] | None:
        """Return the unit of each possible figure in a run of `procedure`, by key.

        Returns:
            The result is `None` if the set of figures depends on the run.
        """
        return None

    def limit_figures(
        self, percentiles: Collection[float]
    ) -> tuple[Sequence[Headline], Mapping[str, str]]:
        """Return the figures that limits may name, and the reasons why other figures are unknown.

        Args:
            percentiles: Percentiles to add to the run's headline figures.

        Returns:
            Known figures, and the reason for each unknown figure, by key.
        """
        keys = {item.key for item in self.quoted}
        missing = (self.figure_units(self.data.procedure) or {}).keys() - keys
        return self.quoted, dict.fromkeys(missing, "not measured, or not enough samples")

    @property
    def tails_are_real(self) -> bool:
        """`True` if the tail latencies match those of the full-size drive.

        A scaled-down drive has fewer slow I/Os, and its I/Os wait less for flash operations such as
        an erase.
        """
        return self.data.manifest.device.scale == 1.0

    def curves(self) -> Sequence[Curve]:
        """Return the curves that comparisons draw for this test."""
        return ()

    def grids(self) -> Sequence[Grid]:
        """Return the figure grids that comparisons show side by side."""
        return ()

    def answer(self) -> str:
        """Return a one-line outcome, which the command prints last."""
        figures = "; ".join(f"{item.label} {item.full_text}" for item in self.quoted[:3])
        return ". ".join(filter(None, (self.verdict().headline, figures)))

    def finding(self) -> str:
        """Return the answer to the test's question in at most 20 words."""
        verdict, figures = self.verdict(), list(self.key_figures())
        if verdict.level == "bad" or not figures:
            return f"{verdict.headline}."
        texts = [f"{figure.value} {figure.unit}".strip() for figure in figures]
        if self.sentence and len(texts) > self.sentence_figures and units.UNKNOWN not in texts:
            return self.sentence.format(*texts)
        first = zip(figures[:_FINDINGS], texts, strict=False)
        return f"{'; '.join(f'{figure.label}: {text}' for figure, text in first)}."

    @property
    def sentence_figures(self) -> int:
        """Highest number of any key figure in `sentence`."""
        return max(int(field) for _, field, _, _ in Formatter().parse(self.sentence) if field)

    # -- common to all reports ---------------------------------------------------------------

    def began(self) -> str:
        """Return a sentence about the drive's initial state and the load on the drive."""
        data, manifest = self.data, self.data.manifest
        drive = "The simulated drive" if manifest.device.simulated else "The drive"
        method = "in an unknown state"
        if manifest.purge is not None:
            word = "" if manifest.not_purged else "purge: "
            method = f"{word}{manifest.purge.method}".replace(" (", ", ").removesuffix(")")
        fills = units.significant(data.host_write_bytes / data.capacity_bytes)
        ended = ""
        if data.status == "complete" and manifest.reason:
            ended = f" The run ended with: {manifest.reason}."
        return (
            f"{drive} ({method}) was {self.loaded()} for {units.duration(data.elapsed_ns)}; "
            f"{units.size(data.host_write_bytes)} were written, {fills} times its "
            f"capacity.{ended}"
        )

    def loaded(self) -> str:
        """Return a participle for the drive's treatment, such as "tested"."""
        return "tested"

    def attributed(self) -> tuple[Sequence[StepRow], str]:
        """Return the steps whose latency is shown by cause, and a name for these steps."""
        windows = {view.stage.phase: view.window for view in self.views if view.stage is not None}
        rows = [row for row in self.data.rows if row.round in windows.get(row.phase, ())]
        if rows:
            return rows, "all I/Os of the measurement window"
        stages = self.data.history.stages.values()
        return [row for stage in stages for row in stage.rows], "all I/Os of the test"

    @cached_property
    def causes(self) -> Groups:
        """Latency by cause, or an empty result if the drive did not record causes."""
        return bands_of(self.data, self.attributed()[0])

    def written(self) -> Sequence[KeyFigure]:
        """Return two key figures, the data written and the elapsed time."""
        data = self.data
        # A simulated drive may have been preconditioned without timing simulation.
        untimed = any(row.host_write_bytes and not row.elapsed_ns for row in data.rows)
        note = "in the steps" if untimed else f"in {units.duration(data.elapsed_ns)}"
        size, unit = units.size(data.host_write_bytes).split(" ")
        fills = units.significant(data.host_write_bytes / data.capacity_bytes)
        return (
            KeyFigure("Written", size, unit, note),
            KeyFigure("Drive fills", fills, "", "times the user capacity"),
        )

    def summary(self) -> dict[str, Any]:
        """Return the summary for programs, in the schema "writecliff/TEST/1".

        The summary format is documented in docs/reference/json.md. Keys may be added in version 1,
        but no key is renamed or removed. Unknown values are null.
        """
        data, manifest = self.data, self.data.manifest
        device = manifest.device
        return {
            "schema": f"writecliff/{manifest.procedure}/1",
            "run": {
                "name": data.name,
                "status": data.status,
                "reason": manifest.reason or None,
                **{
                    name: getattr(manifest, name)
                    for name in ("procedure", "edition", "created", "updated", "seed")
                },
                "command": list(manifest.command),
                "versions": dict(manifest.versions),
            },
            "device": {
                name: getattr(device, name)
                for name in ("target", "vendor", "model", "serial", "firmware", "capacity_bytes",
                             "simulated", "scale", "device_hash")
            },
            **self.results(),
            **({"latency_causes": bands_mapping(self.causes)} if self.causes else {}),
            **({"choices": choices} if (choices := choices_mapping(data)) else {}),
            "disclosures": list(disclosures(data)),
            "files": RUN_FILES,
        }  # fmt: skip

    def _latency_figures(self) -> tuple[KeyFigure, ...]:
        if len(self.histograms_by_operation) > 1:
            by_operation = self.histograms_by_operation.items()
            return tuple(
                f for op, h in by_operation for f in latency_figures(h, f"{op.capitalize()}s")
            )
        return () if self.histogram is None else latency_figures(self.histogram)

    @one_page()
    def model(self) -> ReportModel:
        """Return the whole report as plain data."""
        data = self.data
        steps = data.run.query(
            "select phase, round, label, seq, unnest(warnings) as warning from rounds order by seq"
        ).to_pylist()
        sections, files = with_data(
            [
                part
                for part in (
                    *expectations_section(data.manifest),
                    *self.sections(),
                    *causes_sections(self.causes, self.attributed()[1]),
                    *remarks_section(steps),
                    *health_sections(data),
                    choices_section(data),
                    platform_section(data),
                )
                if part.figures or part.tables
            ],
            (data.steps_file, *self.files()),
        )
        lead, sections = with_lead(sections, self.lead)
        return ReportModel(
            title=f"{self.title}{steady_stages.flag(self.views)}: {_drive_text(data)}",
            question=entry_of(data.manifest.procedure).question,
            finding=self.finding(),
            lead=lead,
            header=header(data, self.title, self.set_up_rounds, self.test_parameters()),
            disclosures=(
                *expectations_disclosure(data.manifest),
                *disclosures(data),
                *step_disclosures(steps),
            ),
            verdict=self.verdict(),
            key_figures=(*self.key_figures(), *self.written()),
            latency_figures=self._latency_figures(),
            latency_note=self.latency_note,
            sections=sections,
            notes=(*_notes(data), *self.notes()),
            footer=_footer(data),
            data=files,
            summary=self.summary(),
            stamp=data.stamp,
        )


def _drive_text(data: TestData) -> str:
    """Return the vendor and model, adding the drive size unless the model name contains it.

    Example: "Example SATA TLC, 120 GB".
    """
    device = data.manifest.device
    name = " ".join(filter(None, (device.vendor, device.model)))
    size = units.size(device.capacity_bytes)
    return name if size in name else f"{name}, {size}"


def _notes(data: TestData) -> tuple[str, ...]:
    notes = [
        "Sizes are decimal (1 GB = 10^9 bytes), block sizes binary (4 KiB = 4096 bytes). Drive "
        f"fills refer to the user capacity of {units.size(data.capacity_bytes)}.",
        "This page depends on the run directory alone. Its Report Run Date is the date of the last "
        "change of the data, so the report of a run is byte-equal whenever it is written.",
    ]
    if data.manifest.device.simulated:
        notes.append("The drive is simulated: times are virtual and exact, not wall-clock times.")
    if (idle := idle_text(data)) is not None and not grave_idle(data):
        notes.append(idle)
    return tuple(notes)


def _footer(data: TestData) -> tuple[tuple[str, str], ...]:
    manifest = data.manifest
    versions = ", ".join(
        f"{name} {version.removeprefix(f'{name}-')}"  # fio reports its version as fio-3.33.
        for name, version in manifest.versions.items()
        if version is not None and not (name == "fio" and manifest.device.simulated)
    )
    return (
        ("Command", shlex.join(manifest.command)),
        ("Seed", str(manifest.seed)),
        ("Device hash", manifest.device.device_hash or units.UNKNOWN),
        ("Versions", versions),
        ("Report by", f"writecliff {version()}"),
        ("Run directory", data.name),
        ("Status", data.status + (f": {manifest.reason}" if manifest.reason else "")),
    )
