"""A command in a guest: its output as it arrives, its exit code, and the clean-up."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.guest.fetch import Parts
from tests.guest.machine import Machine, environment
from tests.guest.reasons import CannotRun, GuestFailed

_PREFIX = "writecliff-guest-"
_CONSOLE_LINES = 15
STARTED = "guest: switching"  # Line that init.sh prints.
_START_S, _STARTS = 120.0, 3


@contextmanager
def run_folder() -> Iterator[Path]:
    """Yield a folder for one guest; remove it at the end, with the folders of killed benches."""
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), (old / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Job:
    """A command in a guest; as a context manager, it ends the guest on exit.

    `out` is the folder that the guest sees as /run/out, `images` the folder with its drives'
    contents; both default to subfolders of the run folder. A second guest on the same drives needs
    the images of the first guest.
    """

    def __init__(
        self,
        parts: Parts,
        words: Sequence[str],
        *,
        run: Path,
        out: Path | None = None,
        images: Path | None = None,
        more: Mapping[str, str] | None = None,
        terminal: bool = False,
    ) -> None:
        self.out, self.images = out or run / "out", images or run / "images"
        for folder in (self.out, self.images):
            folder.mkdir(parents=True, exist_ok=True)
        self._status = self.out / "status"
        self._status.unlink(missing_ok=True)
        (self.out / "console").unlink(missing_ok=True)
        given = {"FOLDER": str(Path.cwd()), **_terminal(terminal), **(more or {})}
        variables = environment(parts, images=self.images, more=given)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        (self.out / "environment").write_text("".join(lines))
        (self.out / "job").write_text(f"exec {shlex.join(words)}\n")
        self._machine = Machine(parts, run=run, images=self.images, out=self.out)
        self._terminal = terminal

    def __enter__(self) -> Job:
        self._settings = termios.tcgetattr(sys.stdin) if self._terminal else None
        for _ in range(_STARTS):
            self._process = self._machine.start(terminal=self._terminal)
            if self._has_started():
                return self
            self.__exit__()
        last_line = (self._console().splitlines() or ["nothing"])[-1]
        raise CannotRun(
            f"the guest did not start in {_STARTS} x {_START_S:g} s; its console: {last_line}"
        )

    def _has_started(self) -> bool:
        """Wait until the guest mounts its root file system or ends; return `False` if it hangs.

        On a busy machine, an emulated CPU may hang while the kernel selects its clock source.
        """
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if STARTED in self._console() or self._process.poll() is not None:
                return True
            time.sleep(0.2)
        return False

    def _console(self) -> str:
        try:
            return self._machine.console.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def __exit__(self, *_: object) -> None:
        self.cut_power()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._settings is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._settings)

    def lines(self) -> Iterator[str]:
        """Yield the job's output, line by line."""
        assert self._process.stdout is not None
        yield from self._process.stdout

    def cut_power(self) -> None:
        """End the guest immediately, like a power failure."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> int:
        """Wait until the guest ends and return the exit code.

        Raises:
            GuestFailed: the guest ended before the command.
        """
        self._process.wait()
        try:
            return int(self._status.read_text())
        except (OSError, ValueError):
            last_lines = self._console().splitlines()[-_CONSOLE_LINES:]
            raise GuestFailed("\n".join(["the guest ended early", *last_lines])) from None

    def follow(self, seconds: float | None = None) -> int:
        """Print the output as it arrives and return the exit code; end the job after `seconds`."""
        timer = threading.Timer(seconds or 0, self._process.kill)
        if seconds is not None:
            timer.start()
        try:
            if not self._terminal:
                for line in self.lines():
                    print(line, end="", flush=True)
            return self.wait()
        finally:
            timer.cancel()


def _terminal(wanted: bool) -> dict[str, str]:
    if not wanted:
        return {"TERM": "dumb"}
    size = shutil.get_terminal_size()
    variables = {"TERMINAL": "/dev/hvc0", "ROWS": str(size.lines), "COLUMNS": str(size.columns)}
    return {**variables, "TERM": os.environ.get("TERM", "linux")}


def is_terminal() -> bool:
    """Return True if stdin and stdout are terminals, so that a shell can be used."""
    return sys.stdin.isatty() and sys.stdout.isatty()
