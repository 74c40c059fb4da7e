"""Run a short test on a drive that fails midway, then resume the run."""

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
SHORT = ("--end", "time", "--time-hours", "0.0012", "--sample-seconds", "0.3")
SHORT += ("--round-minutes", "0.015")
# Options for faults that need few writes in flight, because a loop device accepts as many writes
# as the CPUs issue.
LIGHT = (*SHORT, "--threads", "1", "--queue-depth", "1")


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    code: int
    error: str
    hint: str


class FailingRun:
    """A run of `test wsat` on `target`, confirmed with the options in `consent`."""

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
        """Start the run and inject the fault once `after_rounds` rounds have been stored."""
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
        messages = self._capsys.readouterr().err.splitlines()
        lines = {line.partition(": ")[0]: line.partition(": ")[2] for line in messages}
        assert not any("Traceback" in line for line in messages), messages
        return Ended(code, lines.get("error", ""), lines.get("hint", ""))

    def stored_steps(self) -> tuple[str, int]:
        """Return the run's status and number of complete steps."""
        with RunDirectory.open(self.directory) as run:
            return run.status, run.rounds().num_rows

    def assert_kept(self, ended: Ended, cause: str) -> int:
        """Check that the run failed for the expected cause and retained all complete steps."""
        import re

        assert ended.code == 1, ended
        assert re.search(cause, ended.error), ended.error
        assert f"--resume {self.directory}" in ended.hint, ended.hint
        status, rows = self.stored_steps()
        assert status == "failed"
        assert rows >= 2
        assert f"{rows} complete steps stored;" in ended.hint
        return rows

    def assert_resumes(self, rows: int, *words: str) -> None:
        """Check that the run, resumed on the restored drive, continues after its last complete step."""
        ended = self.resume(*words)
        assert ended.code == 0, ended
        status, all_rows = self.stored_steps()
        assert status == "complete"
        assert all_rows > rows
