"""Fixtures: a small table of published figures and fixed results; nothing is simulated."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.published.conditions import Load, condition
from writecliff.published.figures import COLUMNS, PublishedFigure, read_figures
from writecliff.published.scores import Results

TABLE = """\
paper,table 1,pm863-960,,random,4,100,32,iops,100000,IOPS,
paper,table 1,mlc-a-800,,random,4,100,32,iops,80000,IOPS,read from a plot
paper,table 1,pm863-960,,random,4,0,32,latency_max,10,ms,
paper,table 1,mlc-a-800,,random,4,0,32,latency_max,5,ms,
paper,table 1,pm863-960,mlc-a-800,random,4,0,32,iops_improvement,50,%,
paper,table 2,pm863-960,,,,,,tbw,1000,TB,
paper,table 2,hdd-none,,random,4,100,,iops,150,IOPS,
other,text,pm863-960,,dance,4,100,,iops,9000,IOPS,
other,text,pm863-960,,random,4,100,,iosp,9000,IOPS,
"""
# Fixed results for each drive, independent of the load.
METRICS = {
    "pm863-960": {"iops": 110_000.0, "latency_max": 4.0, "latency_max_write": 3.5, "waf": 4.0},
    "mlc-a-800": {"iops": 60_000.0, "latency_max": 8.0, "waf": 2.0},
}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(",".join(COLUMNS) + "\n" + TABLE)
    return path


@pytest.fixture
def figures(table: Path) -> tuple[PublishedFigure, ...]:
    return read_figures(table)


def _results(figures: tuple[PublishedFigure, ...]) -> Results:
    results: dict[str, dict[Load, dict[str, float]]] = {}
    devices = {"pm863-960", "mlc-a-800"}
    for figure in figures:
        for name in {figure.device, figure.baseline} & devices:
            measured = condition(dataclasses.replace(figure, device=name))
            if measured is not None and measured.load is not None:
                results.setdefault(name, {})[measured.load] = METRICS[name]
    return results


@pytest.fixture
def results(figures: tuple[PublishedFigure, ...]) -> Results:
    return _results(figures)
