"""A process that runs WSAT on the fake drive until it is killed.

`python kill_target.py DIR SECONDS LAST` prints a line after every step, so that the test knows when
to kill the process, and waits to be killed after `LAST` steps. With `resume` as LAST, the process
runs to the end. The process's clock advances by SECONDS each time it is read.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.fake_engine import FakeEngine
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.model import History, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.wsat import Wsat, WsatOptions

OPTIONS = WsatOptions(end=("time",), time_hours=0.5, round_minutes=2)


class Announce(RunProgress):
    def __init__(self, last: int | None) -> None:
        self._last = last

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        print(len(history.rows), flush=True)
        if len(history.rows) == self._last:
            time.sleep(60)


if __name__ == "__main__":
    resume = sys.argv[3:] == ["resume"]
    run_procedure(
        Wsat(OPTIONS),
        FakeEngine(wall_s_per_run=0.0 if resume else 0.02),
        Path(sys.argv[1]),
        Announce(None if resume else int(sys.argv[3])),
        resume=resume,
        checkpoint_interval_s=0.1,
        clock=itertools.count(step=float(sys.argv[2])).__next__,
    )
