"""Power of a real drive: a meter's log, joined to the run's steps by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from writecliff.cli.main import main
from writecliff.errors import ConfigError
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report import build_report
from writecliff.report.power_meter import keep, readings_of
from writecliff.store.rundir import RunDirectory

SIZES, MIXES = [64.0, 4.0], [100.0, 65.0, 0.0]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Create an IOPS run with 1 s steps on a drive that does not report power."""
    options = {"step_seconds": 1.0, "read_pcts": MIXES, "block_sizes_kib": SIZES}
    procedure = procedure_from_mapping("iops", options)
    run_procedure(procedure, FakeEngine(capacity_bytes=2_000_000_000), tmp_path / "run")
    return tmp_path / "run"


def headings(run: Path) -> list[str]:
    return [section.title for section in build_report(RunDirectory.open(run)).sections]


def meter_log(run: Path, path: Path, offset_s: float = 0.0) -> Path:
    """Return ten readings per second: 2 W during reads, 5 W during writes, 3 W otherwise."""
    from writecliff.procedures.journal import stored_rows

    lines = ["time (s),power (W)"]
    with RunDirectory.open(run) as opened:
        rows = stored_rows(opened)
    first_ns = rows[0].started_ns
    for row in rows:
        watts = {100.0: 2.0, 0.0: 5.0}.get(row.read_pct if row.phase == "rounds" else -1.0, 3.0)
        at_s = (row.started_ns - first_ns) / 1e9
        count = max(1, round(row.elapsed_ns / 1e8))
        lines += [f"{at_s + number / 10 + 1e-6 + offset_s},{watts}" for number in range(count)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("offset_s", [0.0, 12.5])
def test_readings_belong_to_the_steps_in_which_they_were_taken(
    run: Path, tmp_path: Path, offset_s: float
) -> None:
    assert "Power" not in headings(run)
    log = meter_log(run, tmp_path / "meter-log.csv", offset_s)
    assert main(["report", str(run), "--power", str(log), "--power-offset", f"{offset_s}"]) == 0
    model = build_report(RunDirectory.open(run))
    (power,) = [section for section in model.sections if section.title == "Power"]
    assert "reads, writes, mixes" in power.intro
    (figure,) = power.figures
    assert all(f"{way} (left)" in figure.svg for way in ("reads", "writes", "mixes"))
    watts = power.tables[0]
    assert watts.header[1:] == ("0/100", "65/35", "100/0")
    assert [row[1:] for row in watts.rows] == [("5.00", "3.00", "2.00")] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no readings"),
        ("seconds,watts\n1,2\n1,3\n", "timestamps are not in ascending order"),
        ("1,2\n2,much\n", ":2: '2,much' is not a time in seconds and a power in watts"),
        ("1,-2\n", "-2 W is below 0"),
    ],
)
def test_what_is_no_log_is_refused_and_not_kept(tmp_path: Path, text: str, message: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text)
    with pytest.raises(ConfigError) as caught:
        keep(log, tmp_path)
    assert message in str(caught.value)
    assert readings_of(tmp_path) is None
