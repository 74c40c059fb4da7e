"""Which steps are one load: the driver leaves it running between them, and ends it in any case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.unit.procedures.test_hir_xsr import SHORT, make
from writecliff.errors import EngineError
from writecliff.procedures.framework import run_procedure, simulate
from writecliff.procedures.model import Procedure
from writecliff.procedures.wsat import Wsat, WsatOptions

QUICK = WsatOptions(quick=True, end=("time",), time_hours=0.005, histogram=True)


def ran(procedure: Procedure) -> FakeEngine:
    engine = FakeEngine()
    simulate(procedure, engine)
    assert not engine.running
    return engine


def test_the_rounds_of_wsat_are_one_load_and_the_histogram_is_another() -> None:
    kept = ran(Wsat(QUICK)).kept
    assert kept == [True] * 18 + [False]


def test_hir_rests_only_between_its_bursts() -> None:
    procedure = make("hir", **SHORT)
    engine = ran(procedure)
    names = [call.removeprefix("run ") for call in engine.calls if call.startswith("run ")]
    kept = dict(zip(names, engine.kept, strict=True))
    assert not any(goes_on for name, goes_on in kept.items() if name.startswith("bursts"))
    assert any(goes_on for name, goes_on in kept.items() if not name.startswith("bursts"))


@pytest.mark.parametrize("error", [EngineError("gone"), KeyboardInterrupt()])
def test_no_load_outlives_a_run_that_fails(tmp_path: Path, error: BaseException) -> None:
    def fail(number: int) -> None:
        if number == 3:
            raise error

    engine = FakeEngine(before_run=fail)
    with pytest.raises(Exception):  # noqa: B017 (either kind)
        run_procedure(Wsat(QUICK), engine, tmp_path / "run")
    assert engine.runs == 3
    assert not engine.running
