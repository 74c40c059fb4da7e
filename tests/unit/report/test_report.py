"""Reports of good and bad runs, which are byte-identical every time."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from inline_snapshot import snapshot

from tests.support.bad_runs import killed_early_run, unsteady_real_run
from tests.support.figure_gallery import HEAD
from tests.support.synthetic_run import Drive, build_run, manifest, records
from writecliff.errors import StoreError
from writecliff.report import build_report, summarise, write_report
from writecliff.report.model import ReportModel
from writecliff.store.rundir import RunDirectory


@pytest.fixture(scope="module")
def good(good_run: Path) -> ReportModel:
    return build_report(RunDirectory.open(good_run))


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> ReportModel:
    path = unsteady_real_run(tmp_path_factory.mktemp("bad") / "run")
    return build_report(RunDirectory.open(path))


def test_good_run(good: ReportModel) -> None:
    assert good.title == "Write Saturation Test: Example SATA TLC 120, 120 GB"
    assert good.disclosures == ()
    assert good.verdict.level == "good"
    assert (
        good.verdict.headline
        == "Steady state reached, rounds 2 to 6, with IOPS still falling by 0.68 % a round"
    )
    assert [(key.label, key.value, key.unit) for key in good.key_figures] == snapshot(
        [
            ("FOB IOPS", "83,645", ""),
            ("Steady-state IOPS", "11,904", ""),
            ("Share of FOB", "14.2", "%"),
            ("Write amplification", "3.39", ""),
            ("Written", "720", "GB"),
            ("Drive fills", "6.00", ""),
        ]
    )
    assert [section.title for section in good.sections] == snapshot(
        [
            "Steady state",
            "Write amplification and latency over the run",
            "Response times",
            "Differences between sources of the standard",
            "Reference test platform",
        ]
    )


def test_header_block(good: ReportModel) -> None:
    header = good.header
    assert header.test_run_date == "03/02/2026 03:30 PM UTC"
    assert [column.title for column in header.columns] == [
        "Test Platform", "Device Under Test", "Set Up Parameters", "Test Parameters",
    ]  # fmt: skip
    assert [len(column.rows) for column in header.columns] == [10, 10, 10, 10]
    assert header.columns[0].rows == snapshot(
        (
            ("Ref Test Platform", "Simulated, virtual time"),
            ("Motherboard", "N/A (simulated)"),
            ("CPU", "N/A (simulated)"),
            ("Memory", "N/A (simulated)"),
            ("Operating System", "N/A (simulated)"),
            ("Test SW", "writecliff 0.1.0"),
            ("Test SW Info", "simulation"),
            ("Test ID No.", "wsat-good"),
            ("HBA", "N/A (simulated)"),
            ("PCIe", "N/A (simulated)"),
        )
    )
    assert header.columns[1].rows == snapshot(
        (
            ("Mfgr", "Example"),
            ("Model No.", "SATA TLC 120"),
            ("S/N", "SIM0000001"),
            ("Firmware ver", "S1.0"),
            ("Capacity", "120 GB"),
            ("Interface", "SATA 6Gb/s"),
            ("NAND Type", "TLC"),
            ("PCIe NVM", "N/A"),
            ("Purge Method", "simulated purge"),
            ("Write Cache", "WCD"),
        )
    )
    assert header.columns[2].rows == snapshot(
        (
            ("Data Pattern", "RND"),
            ("(PC) AR", "100%"),
            ("AR Segments", "N/A"),
            ("Pre Condition 1", "None"),
            ("TOIO - TC/QD", "N/A"),
            ("Duration", "N/A"),
            ("Pre Condition 2", "None"),
            ("TOIO - TC/QD", "N/A"),
            ("SS Rounds", "Rounds 2 - 6"),
            ("Note", "Simulated drive"),
        )
    )
    assert header.columns[3].rows == snapshot(
        (
            ("Data Pattern", "RND"),
            ("AR & Amount", "100%, 120 GB"),
            ("Test Stimulus 1", "RND 4KiB W"),
            ("TOIO - TC/QD", "TC 4/QD 32"),
            ("Steady State", "Rounds 2 - 6"),
            ("Time", "3 h 6 min"),
            ("Test Stimulus 2", "None"),
            ("TOIO - TC/QD", "N/A"),
            ("Steady State", "N/A"),
            ("Time", "N/A"),
        )
    )


def test_real_drive_shows_its_platform(bad: ReportModel) -> None:
    platform = dict(bad.header.columns[0].rows)
    assert platform["CPU"] == "Example CPU, 2 threads"
    assert platform["Test SW Info"] == "fio-3.33"
    assert platform["HBA"] == "not known"
    assert dict(bad.header.columns[1].rows)["Write Cache"] == "not known"


def test_what_is_wrong_is_said_first(bad: ReportModel) -> None:
    assert bad.title == (
        "Write Saturation Test - not in steady state: Acme Flash SATA TLC 120, 120 GB"
    )
    assert bad.verdict.level == "bad"
    assert bad.verdict.headline == "Steady state not reached so far, after 6 rounds"
    assert bad.disclosures == snapshot(
        (
            "The run was interrupted (stopped by the user) and not resumed. The figures cover the measurements until then.",
            "The run was interrupted after 10 steps and resumed 03/02/2026 04:20 PM UTC: the drive was idle in between, while the standard requires all steps to follow each other without a pause.",
            'The purge ("blkdiscard") is not accepted by the standard: the drive may not have been fresh at the start. The drive may keep data mapped.',
            "Write cache unknown: the drive does not report it; the test requires it off.",
            "Option queue_depth is 8; recommended by PTS WSAT: 32.",
            "Host CPU was busy: 12 % steal.",
        )
    )
    assert ("Write amplification", "-") in [(key.label, key.value) for key in bad.key_figures]
    assert dict(bad.header.columns[3].rows[:6])["Steady State"] == "not steady in 6 rounds so far"
    names = [figure.name for figure in bad.figures]
    assert "waf" not in names  # Unknown values are not drawn.


def test_determination_table_shows_allowed_and_measured_when_failing(bad: ReportModel) -> None:
    table = next(t for s in bad.sections for t in s.tables if "determination" in t.title)
    cells = {row[0]: row[1:] for row in table.rows}
    data = next(value for name, value in cells.items() if name.startswith("Data excursion"))
    assert data[2] == "NOT met"
    allowed, measured = (float(text.split()[0].replace(",", "")) for text in data[:2])
    assert measured > allowed > 0
    assert "Least-squares line, R = round" in cells


def test_unsupported_percentiles_say_so(tmp_path: Path) -> None:
    model = build_report(RunDirectory.open(killed_early_run(tmp_path / "run")))
    nines = {key.label: (key.value, key.note) for key in model.latency_figures}
    assert nines["99.999 %"] == ("-", "not enough samples")
    table = next(t for s in model.sections for t in s.tables if t.title == "Response times")
    assert ["99.999 %", "not enough samples"] in [list(row[:2]) for row in table.rows]
    assert model.verdict.headline == "Too few rounds for steady state: 1 of 5"
    assert "process ended without a result" in model.disclosures[0]


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run, again = (
        build_run(tmp_path / folder / "run", rounds=6, steps_per_round=2, step_s=900.0)
        for folder in "ab"
    )
    first = write_report(run, tmp_path / "a.html").read_bytes()
    assert write_report(run, tmp_path / "b.html").read_bytes() == first
    assert write_report(again, tmp_path / "c.html").read_bytes() == first
    assert [p.name for p in tmp_path.glob("*.tmp")] == []


def test_default_path_and_unwritable_path(tmp_path: Path) -> None:
    run = killed_early_run(tmp_path / "run")
    assert write_report(run) == run / "report.html"
    with pytest.raises(StoreError, match="cannot write"):
        write_report(run, tmp_path / "absent" / "report.html")


class Page(HTMLParser):
    """Collects what a browser would fetch, and checks that elements are closed in order."""

    VOID = ("meta", "link", "br", "img", "input", "hr", "col")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.links: list[tuple[str | None, str]] = []
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag not in self.VOID:
            self.stack.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"] or "")
        if tag == "a":
            self.links.append((attributes.get("download"), attributes["href"] or ""))
        elif tag != "use":
            self.fetched += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop() == tag


def test_page_is_self_contained_and_well_formed(good_run: Path, tmp_path: Path) -> None:
    text = write_report(good_run, tmp_path / "r.html").read_text()
    page = Page(text)
    assert all(target.startswith("data:") for target in page.fetched)
    assert len(page.ids) == len(set(page.ids))
    assert all(target[1:] in page.ids for _, target in page.links if target.startswith("#"))
    assert re.findall(r"url\((?!#)", text) == []
    assert "@import" not in text
    text, _, script = text.partition("<script>")
    join = "".join(re.findall(r'data-plots="[^"]*"', text))
    assert len(join) + len(script) < 100_000, "replies take more of the page than they may"
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert used <= set(page.ids)


def test_data_in_the_page_is_that_of_the_run(good_run: Path, tmp_path: Path) -> None:
    text = write_report(good_run, tmp_path / "r.html").read_text()
    files = {
        name: base64.b64decode(uri.partition("base64,")[2]).decode()
        for name, uri in Page(text).links
        if name
    }
    assert sorted(files) == [
        "choices.csv", "histogram.csv", "latency-fills.csv", "samples.csv", "steps.csv",
        "table-reference-test-platform.csv", "table-response-times.csv",
        "table-steady-state-determination-rnd-4kib-w-iops.csv",
    ]  # fmt: skip
    steps = list(csv.DictReader(io.StringIO(files["steps.csv"])))
    stored = RunDirectory.open(good_run).rounds().to_pylist()
    assert [int(row["host_write_bytes_total"]) for row in steps] == [
        row["host_write_bytes_total"] for row in stored
    ]
    assert [float(row["iops"]) for row in steps] == pytest.approx([r["iops"] for r in stored])
    script = text.partition('id="writecliff-summary">')[2].partition("</script>")[0]
    assert json.loads(script) == summarise(good_run)


@pytest.mark.draws
def test_figures_are_svg_without_machine_or_date(good_run: Path) -> None:
    figures = list(build_report(RunDirectory.open(good_run)).figures)
    assert [figure.name for figure in figures] == snapshot(
        [
            "iops-time-linear",
            "iops-time-log",
            "iops-volume-linear",
            "iops-volume-log",
            "steady-window",
            "convergence",
            "waf",
            "latency-time",
            "latency-fills",
            "histogram",
            "confidence",
        ]
    )
    for figure in figures:
        root = ElementTree.fromstring(figure.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 3
        assert "Matplotlib" not in figure.svg
        assert root.get("aria-label")


@pytest.mark.draws
def test_steady_window_draws_the_fitted_line(tmp_path: Path) -> None:
    """Check the fitted line, which is not the line through the first and last samples."""
    from writecliff.procedures.steady import judge
    from writecliff.report.axes import Axis
    from writecliff.report.figures import steady_window

    # The first and last samples are equal and above all other samples, so a line through them would
    # be level.
    state = judge((10_000, 11_999, 10_000, 10_000, 10_000), (1, 2, 3, 4, 5))
    svg = steady_window(*HEAD, state, Axis("IOPS")).svg
    lines = re.findall(r'd="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \n"[^>]*--orange', svg)
    drawn = [tuple(map(float, line)) for line in lines]
    assert any(x2 > x1 + 100 and y2 > y1 + 5 for x1, y1, x2, y2 in drawn), drawn


@pytest.mark.parametrize("hostile", ['<script>alert("x")</script>', "A & B \"C\" 'D'"])
def test_names_from_outside_are_text(tmp_path: Path, hostile: str) -> None:
    path = tmp_path / "run"
    shown = manifest()
    shown = replace(
        shown, device=replace(shown.device, model=hostile), warnings=(hostile,), command=(hostile,)
    )
    with RunDirectory.create(path, shown) as run:
        for record in records(rounds=1, steps_per_round=2, step_s=1.0):
            run.append_round(record)
        run.finish("failed", reason=hostile)
    text = write_report(path).read_text()
    Page(text)
    assert "<script>alert" not in text
    script = text.partition('id="writecliff-summary">')[2].partition("</script>")[0]
    assert json.loads(script)["device"]["model"] == hostile


@pytest.mark.parametrize(
    "drive",
    [
        Drive(fresh_iops=2.0, saturated_iops=1.0),
        Drive(fresh_iops=2_600_000.0, saturated_iops=900_000.0, capacity_bytes=7_680_000_000_000),
        Drive(fresh_iops=20_000.0, saturated_iops=20_000.0, noise=0.0),
    ],
    ids=["two IOPS", "fast NVMe", "no cliff"],
)
def test_unusual_drives_have_reports(tmp_path: Path, drive: Drive) -> None:
    run = build_run(tmp_path / "run", drive, rounds=6, steps_per_round=2, step_s=5.0)
    Page(write_report(run).read_text())


def test_without_latencies_and_intervals(tmp_path: Path) -> None:
    from writecliff._native import Histogram

    with RunDirectory.create(tmp_path / "run", manifest()) as run:
        for record in records(rounds=6, steps_per_round=1, step_s=1.0):
            job = record.result.jobs[0]
            silent = replace(job.operations["write"], service=Histogram())
            job = replace(job, operations={"write": silent})
            run.append_round(
                replace(record, result=replace(record.result, jobs=(job,), intervals={}))
            )
        run.finish("complete")
    model = build_report(RunDirectory.open(tmp_path / "run"))
    assert model.latency_figures == ()
    assert model.latency_note == "No latencies were measured."
    names = [figure.name for figure in model.figures]
    assert "histogram" not in names
    assert "iops-time-linear" in names
    Page(write_report(tmp_path / "run").read_text())


def test_a_fresh_drive_is_not_called_saturated(tmp_path: Path) -> None:
    """Check that the page does not call five equal samples before the cliff steady."""
    path = build_run(tmp_path / "run", rounds=6, steps_per_round=1, step_s=5.0)
    model = build_report(RunDirectory.open(path))
    assert model.verdict.level == "warning"
    assert model.verdict.headline == "Rule met in rounds 2 to 6, but the drive may still be fresh"
    assert not any("sustains" in text for text in model.verdict.meaning)
    assert summarise(path)["steady_state"]["maybe_fresh"] is True


@pytest.mark.draws
def test_confidence_curve_reaches_every_marked_nine() -> None:
    """Check the case where all slow I/Os share the last bucket, as on a drive without a tail."""
    from writecliff._native import Histogram
    from writecliff.report.figures import confidence

    histogram = Histogram()
    histogram.record(1_000_000, 500_000)
    histogram.record(5_000_000, 500_000)
    svg = confidence(*HEAD, histogram).svg
    root = ElementTree.fromstring(svg)
    group = "{http://www.w3.org/2000/svg}"
    curve = next(
        p.get("d") or "" for p in root.iter(f"{group}path") if "--blue" in (p.get("style") or "")
    )
    highest = min(float(y) for _, y in re.findall(r"([\d.-]+) ([\d.-]+)", curve))
    dots = [
        float(u.get("y") or 0)
        for u in root.iter(f"{group}use")
        if "--orange" in (u.get("style") or "")
    ]
    assert dots
    assert highest <= min(dots)
