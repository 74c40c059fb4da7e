"""Trials: each begins with the same drive, and cuts its power at a write that a seed chooses.

The drive's choices at the cut (which of the writes that are not durable are lost, and where they
are torn) depend on the seed and on what the program has written by then. Threads and the kernel
take turns as they like, so a seed repeats the moment and the kind of a cut, not each byte of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from writecliff.engines.target import is_simulated
from writecliff.errors import TargetError, WritecliffError
from writecliff.lab.torture import file_system
from writecliff.lab.torture.attachment import Attachment, check_machine
from writecliff.lab.torture.ledger import ACKNOWLEDGED
from writecliff.lab.torture.programs import Program
from writecliff.serve import DriveServer, ServeOptions
from writecliff.signals import die_with_parent

_LOOK_S = 0.002
_CHECK_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Plan:
    """What is tortured. `writes_max`: a cut comes at a write request of the drive from the first to
    this one, counted from the begin of the program.
    """

    target: str
    program: Program
    file_system: str = "ext4"
    writes_max: int = 500

    def check(self) -> None:
        """Raises ConfigError, or TargetError for what is missing on this machine."""
        if not is_simulated(self.target):
            raise TargetError(
                f"{self.target} cannot be tortured: it is not simulated", hint="give sim:NAME"
            )
        check_machine()
        file_system.check(self.file_system)


@dataclass(frozen=True)
class Trial:
    """One cut and what came of it. `at_write`: the write request at which power was cut;
    `acknowledged`: lines that the program had printed; `pages_undone`: of the drive, which NVMe
    allows for the reason `undone_as` (see `PowerCut`); `finding`: what the program lost, empty if
    nothing.
    """

    seed: int
    at_write: int
    acknowledged: int
    pages_undone: int
    undone_as: str
    finding: str


class Trials:
    """Trials of one plan in a folder of their own, which must exist and be empty."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._state = folder / "prepared.state"
        folder.chmod(0o755)  # servers that refuse root run as another user
        for name in ("device", "mounted"):
            (folder / name).mkdir()

    def prepare(self) -> None:
        """Make the file system, and what the program needs before the first cut."""
        plan = self._plan
        with self._served(save=True) as server, self._attached(server) as attached:
            file_system.make(plan.file_system, attached.device)
            with file_system.mounted(attached.device, self._folder / "mounted") as root:
                if plan.program.prepare:
                    self._finish(plan.program.prepare, root, "prepare")

    def run(self, seed: int) -> Trial:
        """One trial. Raises WritecliffError if the program ends on its own."""
        at_write = int(np.random.default_rng(seed).integers(1, self._plan.writes_max + 1))
        acknowledged = self._folder / "acknowledged"
        acknowledged.write_bytes(b"")
        with self._served(save=False) as server:
            self._run_until_cut(server, at_write, seed, acknowledged)
            (cut,) = server.power_cuts
            finding = self._check(server, acknowledged)
        lines = acknowledged.read_bytes().count(b"\n")
        undone = cut.pages_undone, cut.undone_as
        return Trial(seed, at_write, lines, *undone, finding)

    @contextmanager
    def _served(self, *, save: bool) -> Iterator[DriveServer]:
        """The drive as it was saved last. `save`: save it again, and it is what follows."""
        options = ServeOptions(slow_down=None, state=self._state)
        server = DriveServer(self._plan.target, options)
        try:
            server.listen_nbd(f"unix:{self._folder / 'drive.sock'}")
            yield server
        finally:
            server.end(save=save)

    def _attached(self, server: DriveServer) -> Attachment:
        return Attachment(server.addresses[-1], self._folder / "device")

    def _run_until_cut(
        self, server: DriveServer, at_write: int, seed: int, acknowledged: Path
    ) -> None:
        with (
            self._attached(server) as attached,
            file_system.mounted(attached.device, self._folder / "mounted") as root,
            acknowledged.open("ab") as output,
        ):
            server.seed_cuts(seed)
            server.plan_cuts(write=at_write)
            child = self._start(self._plan.program.run, root, output.fileno(), "run")
            try:
                while not server.power_cuts:
                    if (code := child.poll()) is not None and not server.power_cuts:
                        raise WritecliffError(
                            f"{self._plan.program.name} ended with exit code {code} before write "
                            f"{at_write} of the drive: {self._said('run')}",
                            hint="let it run longer, or give fewer --writes",
                        )
                    time.sleep(_LOOK_S)
                attached.cut()
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _check(self, server: DriveServer, acknowledged: Path) -> str:
        """What is wrong after the cut, on one line; empty if nothing."""
        with self._attached(server) as attached:
            try:
                with file_system.mounted(attached.device, self._folder / "mounted") as root:
                    self._finish(self._plan.program.check, root, "check", acknowledged)
            except WritecliffError as error:
                return str(error)
        return ""

    def _finish(
        self, command: tuple[str, ...], root: Path, log: str, acknowledged: Path | None = None
    ) -> None:
        """Run a command to its end. Raises WritecliffError with its last line if it fails."""
        with (self._folder / f"{log}.log").open("wb") as output:
            child = self._start(command, root, output.fileno(), log, acknowledged)
            try:
                code = child.wait(_CHECK_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if code:
            raise WritecliffError(f"{log}: {self._said(log)}")

    def _start(
        self,
        command: tuple[str, ...],
        root: Path,
        output: int,
        log: str,
        acknowledged: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        env = {**os.environ, ACKNOWLEDGED: str(acknowledged)} if acknowledged else None
        with (self._folder / f"{log}.log").open("ab") as errors:
            return subprocess.Popen(
                command,
                cwd=root,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509
            )

    def _said(self, log: str) -> str:
        lines = (self._folder / f"{log}.log").read_text(errors="replace").splitlines()
        return lines[-1].strip() if lines else "no output"
