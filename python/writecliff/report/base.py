"""What the reports of all tests share; a test's report says only what is its own.

A report is a `TestReport` of a stored run. Its class is named in the registry of tests, defines the
sections, key figures and results of the test, and inherits the rest: header block, disclosures,
notes, footer, CSV files and the summary around the results.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff import units, version
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
from writecliff.report.model import KeyFigure, ReportModel, Section, Verdict
from writecliff.report.table import DataFile

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.report.compared import Curve, Grid
    from writecliff.report.headline import Headline
    from writecliff.report.steady import SteadyView
    from writecliff.report.testdata import TestData

RUN_FILES = {
    "manifest": "manifest.json",
    "rounds": "rounds.parquet",
    "intervals": "intervals.parquet",
    "histograms": "histograms.parquet",
}


class TestReport:
    """The report of one run. Subclasses override what their test has to show."""

    __test__ = False  # not one of pytest's

    def __init__(self, data: TestData) -> None:
        self.data = data
        self.procedure: Any = data.procedure  # the test with its options; subclasses narrow it

    # -- what a test has to show --------------------------------------------------------------

    @property
    def title(self) -> str:
        """The title of the test."""
        return self.data.procedure.title

    @cached_property
    def views(self) -> Sequence[SteadyView]:
        """The stages whose steady state the verdict is about."""
        return ()

    @property
    def set_up_rounds(self) -> str:
        """The steady-state rounds in the column "Set Up Parameters" of the header block."""
        return steady_stages.views_text(self.views) if self.views else NOT_APPLICABLE

    def test_parameters(self) -> Rows | None:
        """The fourth column of the header block: ten rows, or None for those of the procedure."""
        return None

    def opening(self) -> Sequence[str]:
        """The first sentences of the verdict."""
        return [self.began()]

    def verdict(self) -> Verdict:
        """The first box of the page."""
        return steady_stages.verdict(self.views, self.opening())

    def key_figures(self) -> Iterable[KeyFigure]:
        """The results at the top of the page."""
        return ()

    @cached_property
    def histogram(self) -> Histogram | None:
        """The response times at the top of the page; None: there are none."""
        return None

    @cached_property
    def histograms_apart(self) -> Mapping[str, Histogram]:
        """The same by operation, where there are several: reads and writes are never one figure."""
        return {}

    @property
    def latency_note(self) -> str:
        """Which I/Os `histogram` is of, or why there is none."""
        return ""

    def sections(self) -> Iterable[Section]:
        """The pages of the test; empty ones are left out."""
        return ()

    def notes(self) -> Iterable[str]:
        """Notes besides those that every report has."""
        return ()

    def files(self) -> Iterable[DataFile]:
        """CSV files besides the steps and those of figures and tables."""
        return ()

    def results(self) -> Mapping[str, Any]:
        """The test's own keys of the summary, as JSON-able values with units in their names."""
        return {}

    def headlines(self) -> Sequence[Headline]:
        """What the run is quoted by, the most telling figure first; unknown ones are left out."""
        return ()

    @cached_property
    def quoted(self) -> Sequence[Headline]:
        """The headlines, found once: a page of many runs says them in several places."""
        return tuple(self.headlines())

    @classmethod
    def figure_units(cls, procedure: Any) -> Mapping[str, str] | None:
        """Return the unit of each possible figure of a run of `procedure`, by key; None if the
        figures depend on the run.
        """
        return None

    def limit_figures(
        self, percentiles: Collection[float]
    ) -> tuple[Sequence[Headline], Mapping[str, str]]:
        """Return the figures that limits may name, with further `percentiles`, and the reasons why
        other figures are unknown, by key.
        """
        known = {item.key for item in self.quoted}
        missing = (self.figure_units(self.data.procedure) or {}).keys() - known
        return self.quoted, dict.fromkeys(missing, "not measured, or not enough samples")

    @property
    def tells_tails(self) -> bool:
        """Whether the slowest I/Os are those of the drive. On a scaled one they are fewer, and what
        they wait for on flash, such as an erase, is shorter.
        """
        return self.data.manifest.device.scale == 1.0

    def curves(self) -> Sequence[Curve]:
        """What comparisons draw of this test."""
        return ()

    def grids(self) -> Sequence[Grid]:
        """What comparisons put side by side of this test, besides the headline figures."""
        return ()

    def answer(self) -> str:
        """The outcome in one line, the last one of a command that made the run."""
        figures = "; ".join(f"{item.label} {item.full_text}" for item in self.quoted[:3])
        return ". ".join(filter(None, (self.verdict().headline, figures)))

    # -- what all reports have ----------------------------------------------------------------

    def began(self) -> str:
        """How the drive began and what was done to it, in a sentence."""
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
        """What was done to the drive, as the participle of a sentence."""
        return "tested"

    def attributed(self) -> tuple[Sequence[StepRow], str]:
        """The steps whose latency is shown by cause, and which those are, in words."""
        windows = {view.stage.phase: view.window for view in self.views if view.stage is not None}
        rows = [row for row in self.data.rows if row.round in windows.get(row.phase, ())]
        if rows:
            return rows, "all I/Os of the measurement window"
        stages = self.data.history.stages.values()
        return [row for stage in stages for row in stage.rows], "all I/Os of the test"

    @cached_property
    def causes(self) -> Groups:
        """Latency by cause; empty if the drive did not record it."""
        return bands_of(self.data, self.attributed()[0])

    def written(self) -> Sequence[KeyFigure]:
        """How much was written and how long it took."""
        data = self.data
        # A simulated drive may have been brought to its state without simulating time.
        untimed = any(row.host_write_bytes and not row.elapsed_ns for row in data.rows)
        note = "in the steps" if untimed else f"in {units.duration(data.elapsed_ns)}"
        size, unit = units.size(data.host_write_bytes).split(" ")
        fills = units.significant(data.host_write_bytes / data.capacity_bytes)
        return (
            KeyFigure("Written", size, unit, note),
            KeyFigure("Drive fills", fills, "", "times the user capacity"),
        )

    def summary(self) -> dict[str, Any]:
        """The summary for programs: schema "writecliff/TEST/1", see docs/reference/json.md.

        Keys may be added within version 1, never renamed or removed; unknown is null.
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
        if len(self.histograms_apart) > 1:
            apart = self.histograms_apart.items()
            return tuple(f for op, h in apart for f in latency_figures(h, f"{op.capitalize()}s"))
        return () if self.histogram is None else latency_figures(self.histogram)

    @one_page()
    def model(self) -> ReportModel:
        """The whole report as plain data."""
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
        return ReportModel(
            title=f"{self.title}{steady_stages.flag(self.views)}: {_drive_text(data)}",
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
    """Vendor, model and, if that does not name it, size: "Example SATA TLC, 120 GB"."""
    device = data.manifest.device
    name = " ".join(filter(None, (device.vendor, device.model)))
    size = units.size(device.capacity_bytes)
    return name if size in name else f"{name}, {size}"


def _notes(data: TestData) -> tuple[str, ...]:
    found = [
        "Sizes are decimal (1 GB = 10^9 bytes), block sizes binary (4 KiB = 4096 bytes). "
        f"Drive fills refer to the user capacity of {units.size(data.capacity_bytes)}.",
        "This page depends on the run directory alone. Its Report Run Date is that of the last "
        "change of the data, so that the report of a run is the same, byte for byte, whenever it "
        "is made.",
    ]
    if data.manifest.device.simulated:
        found.append("The drive is simulated: times are virtual and exact, not wall-clock times.")
    if (idle := idle_text(data)) is not None and not grave_idle(data):
        found.append(idle)
    return tuple(found)


def _footer(data: TestData) -> tuple[tuple[str, str], ...]:
    manifest = data.manifest
    versions = ", ".join(
        f"{name} {version.removeprefix(f'{name}-')}"  # fio calls its own version fio-3.33
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
