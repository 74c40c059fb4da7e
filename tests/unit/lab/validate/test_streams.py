"""`validate streams` with small drives, and its verdicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.cli import CommandLine
from writecliff.lab.validate import handles, streams
from writecliff.lab.validate.handles import RUNS, WITHIN_RUNS, RecordedRun
from writecliff.lab.validate.stream_rows import Crossover, StreamsCase, StreamsReport

GOOD = StreamsCase(
    load="hot/cold", treatment=streams.TUNED, overprovision=0.07, unit_mib=None,
    waf_measured=5.15, reference=5.11, source="theory", tolerance_pct=2.0,
)  # fmt: skip


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture(scope="module")
def small() -> StreamsReport:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(handles, "calls", lambda pages: [])
        patched.setattr(handles, "crossovers", lambda rows: ())
        return streams.run(pages_per_block=32, blocks=1024, passes=8)


def test_self_tuned_spare_is_near_the_best_split_even_in_small(small: StreamsReport) -> None:
    hot_cold = [row for row in small.rows if row.load.startswith("hot/cold")]
    assert len(hot_cold) == 4 * len(streams.HOT_COLD)
    for row in hot_cold:
        assert row.error_pct is not None
        if row.treatment == streams.TUNED:
            # 2 of 70 spare units are idle in the small drive, which is 3 % of the spare units and
            # of the WAF.
            assert -1.0 < row.error_pct < 4.5, row
        else:
            assert row.error_pct > 20.0, row


def test_sequential_writers_with_streams_amplify_nothing(small: StreamsReport) -> None:
    rows = [row for row in small.rows if row.load.startswith("four")]
    assert len(rows) == 18
    assert all(row.waf_measured == 1.0 and row.ok for row in rows)


def _run(log: str, runs: tuple[RecordedRun, ...] = RUNS) -> RecordedRun:
    return next(run for run in runs if run.log.endswith(log))


@pytest.mark.parametrize(
    "run",
    [
        _run("log-ii-zoned-RU256OP5-2"),
        _run("log-pi-zoned-RU256OP5-1"),
        _run("log-pi-zoned-RU256OP14"),
    ],
    ids=lambda run: run.log,
)
def test_the_drive_writes_what_the_emulator_wrote(run: RecordedRun) -> None:
    row = handles.recorded(run, 64)
    assert row.ok, row
    assert row.tolerance_pct == handles.TOLERANCE_PCT
    assert row.error_pct is not None
    assert abs(row.error_pct) < 3.0


def test_a_drive_with_other_handles_does_not() -> None:
    run = _run("log-ii-zoned-RU256OP7")
    assert not handles.recorded(replace(run, persistent=True), 64).ok


def test_logs_are_read_as_they_were_written() -> None:
    run = _run("log-pi-zoned-RU256OP5-1", WITHIN_RUNS)
    assert run.capacities == pytest.approx(5.06, abs=0.01)
    assert run.waf == pytest.approx(2.036, abs=0.001)
    assert run.rates == pytest.approx((0.859, 0.071, 0.069), abs=0.001)
    for run in (*RUNS, *WITHIN_RUNS):
        assert sum(run.rates) == pytest.approx(1.0)
        assert 0.7 < run.rates[0] < 0.9
    assert len({run.log for run in RUNS}) == len(RUNS)


def test_every_point_of_the_figure_is_taken_and_none_is_judged() -> None:
    points = [call for call in handles.calls(8) if call.func is handles.figure]  # type: ignore[attr-defined]
    shares = 1 + len(handles.SLOWER_SHARES)
    assert len(points) == 2 * len(handles.OVERPROVISIONS) * (1 + shares)
    row = points[0]()
    assert row.tolerance_pct is None
    assert row.reference == handles.PUBLISHED[256, 0.03][0]
    assert row.waf_settled is not None
    assert row.waf_settled > row.waf_measured > 1.0
    slower = points[shares]()
    assert slower.treatment == handles.PERSISTENTLY
    assert slower.waf_settled is None


def test_crossovers_lie_between_the_last_loss_and_the_first_gain() -> None:
    def row(op: float, kind: str, waf: float) -> StreamsCase:
        return replace(
            GOOD, load=handles.FIGURE, unit_mib=256, overprovision=op, treatment=kind,
            waf_measured=waf, waf_settled=4.0 - waf, sequential_share=0.87,
        )  # fmt: skip

    def crossover(losses: int, *, settled: bool = False) -> Crossover:
        rows = []
        for number, op in enumerate(handles.OVERPROVISIONS):
            rows.append(row(op, handles.INITIALLY, 2.0))
            rows.append(row(op, handles.PERSISTENTLY, 2.5 if number < losses else 1.5))
        return handles.crossover(256, (0.87, 0.87), settled, rows)

    assert crossover(0).measured == (None, 0.03)
    assert crossover(2).measured == (0.04, 0.05)
    assert not crossover(2).reproduced
    assert crossover(5).measured == (0.07, 0.08)
    assert crossover(5).reproduced
    assert crossover(8).measured == (0.10, None)
    assert crossover(8, settled=True).measured == (None, 0.03)


def test_the_command_fails_when_a_row_that_theory_decides_is_off(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossover = Crossover(256, (0.87, 0.84), False, (0.04, 0.05), (0.07, 0.09))
    off = replace(GOOD, waf_measured=5.4)
    for rows, code in (((GOOD,), 0), ((GOOD, off), 1)):
        report = StreamsReport(rows, (crossover,))
        monkeypatch.setattr("writecliff.lab.validate.streams.run", lambda report=report: report)
        output = cli("lab validate streams --json")
        assert output.code == code
        answer = json.loads(output.out)
        assert answer["ok"] is (code == 0)
        assert [row["ok"] for row in answer["rows"]] == [True, False][: len(rows)]
        assert answer["crossovers"][0]["reproduced"] is False
    output = cli("lab validate streams")
    assert output.code == 1
    assert "OFF" in output.out
    assert "87.0 % of the bytes (84.0 % with persistent isolation)" in output.out
    assert "between 4 and 5 %" in output.out
    assert "not reproduced" in output.out
