"""Runs a short test on a drive that fails in the middle of it, and resumes the run afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from writecliff.cli.main import main
from writecliff.store.rundir import RunDirectory

Fault = Callable[[], object]
SHORT = ("--end", "time", "--time-hours", "0.0015", "--sample-seconds", "0.5")
SHORT += ("--round-minutes", "0.025")
# For faults that find no writes in flight: a loop device takes as many as both cores can issue.
LIGHT = (*SHORT, "--threads", "1", "--queue-depth", "1")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    error: str
    hint: str


class FailingRun:
    """A run of `test wsat` on `target`; the user confirms with `consent`."""

    def __init__(
        self,
        target: str,
        consent: str,
        directory: Path,
        capsys: pytest.CaptureFixture[str],
        *options: str,
    ) -> None:
        self.directory = directory
        self._words = ["--on", target, "--destroy", consent, *options]
        self._capsys = capsys

    def fails_by(
        self, fault: Fault, after_rounds: int = 2, options: tuple[str, ...] = SHORT
    ) -> Ended:
        """Start the run and let the fault happen once `after_rounds` rounds are stored."""
        failed: list[BaseException] = []
        over = threading.Event()
        last = self.directory / "rounds" / f"{after_rounds:06d}.parquet"

        def wait() -> None:
            while not last.exists() and not over.is_set():
                time.sleep(0.02)
            try:
                assert last.exists(), "the run ended before the fault"
                fault()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        try:
            ended = self._command(*self._words, "--output", str(self.directory), *options)
        finally:
            over.set()
            thread.join()
        assert not failed, (failed, ended)
        return ended

    def resume(self, *words: str) -> Ended:
        return self._command("--resume", str(self.directory), *(words or self._words))

    def _command(self, *words: str) -> Ended:
        self._capsys.readouterr()
        code = main(["test", "wsat", "--quiet", *words])
        said = self._capsys.readouterr().err.splitlines()
        lines = {line.partition(": ")[0]: line.partition(": ")[2] for line in said}
        assert not any("Traceback" in line for line in said), said
        return Ended(code, lines.get("error", ""), lines.get("hint", ""))

    def kept(self) -> tuple[str, int]:
        """Status of the run and the number of its complete steps."""
        with RunDirectory.open(self.directory) as run:
            return run.status, run.rounds().num_rows

    def assert_kept(self, ended: Ended, cause: str) -> int:
        """It failed for a reason that is named, and all complete steps are there."""
        import re

        assert ended.code == 1, ended
        assert re.search(cause, ended.error), ended.error
        assert f"--resume {self.directory}" in ended.hint, ended.hint
        status, rows = self.kept()
        assert status == "failed"
        assert rows >= 2
        assert f"{rows} complete steps stored;" in ended.hint
        return rows

    def assert_resumes(self, rows: int, *words: str) -> None:
        """The drive is back: the run goes on after its last complete step, to its end."""
        ended = self.resume(*words)
        assert ended.code == 0, ended
        status, all_rows = self.kept()
        assert status == "complete"
        assert all_rows > rows
