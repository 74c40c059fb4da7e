"""`validate streams` in small, and how its verdicts are made."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.cli import CommandLine
from writecliff.validate import streams
from writecliff.validate.streams import Crossover, StreamsCase, StreamsReport

GOOD = StreamsCase(
    load="hot/cold", treatment=streams.TUNED, overprovision=0.07, unit_mib=None,
    waf_measured=5.15, reference=5.11, source="theory", tolerance_pct=2.0,
)  # fmt: skip


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture(scope="module")
def small() -> StreamsReport:
    return streams.run(pages_per_block=32, blocks=1024, passes=8)


def test_self_tuned_spare_is_near_the_best_split_even_in_small(small: StreamsReport) -> None:
    hot_cold = [row for row in small.rows if row.load.startswith("hot/cold")]
    assert len(hot_cold) == 4 * len(streams.HOT_COLD)
    for row in hot_cold:
        assert row.error_pct is not None
        if row.treatment == streams.TUNED:
            # 2 of 70 spare units are idle in the small drive: 3 % of the spare, as much in WAF.
            assert -1.0 < row.error_pct < 4.5, row
        else:
            assert row.error_pct > 20.0, row


def test_sequential_writers_with_streams_amplify_nothing(small: StreamsReport) -> None:
    rows = [row for row in small.rows if row.load.startswith("four")]
    assert len(rows) == 18
    assert all(row.waf_measured == 1.0 and row.ok for row in rows)


def test_handles_are_compared_with_the_paper_but_not_judged(small: StreamsReport) -> None:
    rows = [row for row in small.rows if row.unit_mib]
    assert len(rows) == 24
    assert sum(row.reference is not None for row in rows) == 12
    assert all(row.ok and row.tolerance_pct is None for row in rows)
    assert [found.unit_mib for found in small.crossovers] == [256, 128]


def test_crossovers_lie_between_the_last_loss_and_the_first_gain() -> None:
    def row(op: float, kind: str, waf: float) -> StreamsCase:
        return replace(GOOD, unit_mib=256, overprovision=op, treatment=kind, waf_measured=waf)

    def found(losses: int) -> Crossover:
        rows = []
        for number, op in enumerate(streams.HANDLE_OVERPROVISIONS):
            rows.append(row(op, "initially isolated", 2.0))
            rows.append(row(op, "persistently isolated", 2.5 if number < losses else 1.5))
        return streams._crossover(256, rows)

    assert found(0).measured == (None, 0.03)
    assert found(2).measured == (0.04, 0.05)
    assert not found(2).reproduced
    assert found(4).measured == (0.07, 0.09)
    assert found(4).reproduced
    assert found(6).measured == (0.10, None)


def test_the_command_fails_when_a_row_that_theory_decides_is_off(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossover = Crossover(256, (0.04, 0.05), (0.07, 0.09))
    off = replace(GOOD, waf_measured=5.4)
    for rows, code in (((GOOD,), 0), ((GOOD, off), 1)):
        report = StreamsReport(rows, (crossover,))
        monkeypatch.setattr("writecliff.validate.streams.run", lambda report=report: report)
        said = cli("validate streams --json")
        assert said.code == code
        answer = json.loads(said.out)
        assert answer["ok"] is (code == 0)
        assert [row["ok"] for row in answer["rows"]] == [True, False][: len(rows)]
        assert answer["crossovers"][0]["reproduced"] is False
    said = cli("validate streams")
    assert said.code == 1
    assert "OFF" in said.out
    assert "between 4 and 5 %" in said.out
    assert "not reproduced" in said.out
