"""Trials that start with the same drive, and cut its power at a write selected by a seed.

At a cut, the drive's random decisions (which non-durable writes are lost, and where they are torn)
depend on the seed and on the program's writes so far. Threads and the kernel are not deterministic,
so a seed reproduces the time and type of a cut, but not every byte.
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
    """A program, and the drive that it runs on.

    A cut occurs at one of the drive's write requests from 1 to `writes_max`, counted from the start
    of the program.
    """

    target: str
    program: Program
    file_system: str = "ext4"
    writes_max: int = 500

    def check(self) -> None:
        """Check that the plan can run on this machine.

        Raises:
            ConfigError: If the file system is unknown.
            TargetError: If the drive is not simulated, or a program is missing.
        """
        if not is_simulated(self.target):
            raise TargetError(
                f"cannot cut the power of {self.target}, which is not simulated",
                hint="specify a simulated drive: sim:NAME",
            )
        check_machine()
        file_system.check(self.file_system)


@dataclass(frozen=True)
class Trial:
    """A power cut and its result.

    Attributes:
        seed: Seed of the cut.
        at_write: Write request at which the power was cut.
        acknowledged: Lines that the program had printed.
        pages_undone: Pages of the drive whose loss NVMe permits.
        undone_as: Reason for this loss (see `PowerCut`).
        finding: Data that the program lost, or "" if none.
    """

    seed: int
    at_write: int
    acknowledged: int
    pages_undone: int
    undone_as: str
    finding: str


class Trials:
    """Trials of a plan in a folder, which must exist and be empty."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        """Create the trials' subfolders."""
        self._plan = plan
        self._folder = folder
        self._state = folder / "prepared.state"
        folder.chmod(0o755)  # Servers that refuse to run as root run as another user.
        for name in ("device", "mounted"):
            (folder / name).mkdir()

    def prepare(self) -> None:
        """Create the file system, and run the program's preparation."""
        plan = self._plan
        with self._served(save=True) as server, self._attached(server) as attached:
            file_system.make(plan.file_system, attached.device)
            with file_system.mounted(attached.device, self._folder / "mounted") as root:
                if plan.program.prepare:
                    self._finish(plan.program.prepare, root, "prepare")

    def run(self, seed: int) -> Trial:
        """Run a trial.

        Raises:
            WritecliffError: If the program exited before the cut.
        """
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
        """Serve the drive in its saved state, which the final state replaces if `save` is set."""
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
                            f"{self._plan.program.name} exited with code {code} before write "
                            f"{at_write} reached the drive: {self._last_line('run')}",
                            hint="let the program run longer, or reduce --writes",
                        )
                    time.sleep(_LOOK_S)
                attached.cut()
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _check(self, server: DriveServer, acknowledged: Path) -> str:
        """Check the data after the cut, and return the problem in one line, or "" if none."""
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
        """Run a command to completion.

        Raises WritecliffError with the command's last line if it fails.
        """
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
            raise WritecliffError(f"{log}: {self._last_line(log)}")

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

    def _last_line(self, log: str) -> str:
        lines = (self._folder / f"{log}.log").read_text(errors="replace").splitlines()
        return lines[-1].strip() if lines else "no output"
