"""Reads of a run that was just measured: once for its limits, its report and its comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine, serve_fake_drive
from tests.support.fake_engine import FakeEngine
from writecliff.report.base import TestReport
from writecliff.store import rundir

TEST = "test wsat --on sim:fake --end time --time-hours 0.02 --quiet"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Numbers of reports built, and of Parquet files and manifests read."""
    reads: Counter[str] = Counter()

    def counted(place: Any, name: str, what: str) -> None:
        original: Callable[..., Any] = getattr(place, name)

        def count(*values: Any, **named: Any) -> Any:
            result = original(*values, **named)
            reads[what] += 1
            return result

        monkeypatch.setattr(place, name, count)

    counted(TestReport, "__init__", "reports")
    counted(rundir, "read_manifest", "manifests")
    counted(rundir, "read_state", "manifests")
    opened = rundir._opened

    @contextmanager
    def count_opened(path: Path) -> Iterator[Any]:
        with opened(path) as file:
            reads["Parquet files"] += 1
            yield file

    monkeypatch.setattr(rundir, "_opened", count_opened)
    return reads


def test_limits_baseline_and_report_of_a_new_run_read_it_once(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    counts: Counter[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    serve_fake_drive(monkeypatch, FakeEngine)
    cli = CommandLine(capsys)
    assert cli(f"{TEST} --output base").code == 0
    counts.clear()
    completed = cli(f"{TEST} --output new --expect waf<=99 --baseline base --json")
    assert completed.code == 0, completed.err
    # The counts include one report on the run and one on the baseline.
    assert counts["reports"] == 2
    assert counts["Parquet files"] <= 6
    assert counts["manifests"] <= 3
