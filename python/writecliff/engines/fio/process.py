"""A fio process and its JSON reports.

A thread reads fio's output immediately, so that fio never waits for the caller. fio runs in a
private directory and a separate session, and has a parent death signal, so that fio never outlives
its caller. fio exits when its work is done or on `stop` (its last report is still read), and the
kernel kills fio if this process is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from writecliff.errors import EngineError
from writecliff.signals import die_with_parent

_STOP_GRACE_S = 10.0  # Time for I/Os in flight to complete between SIGINT and SIGKILL.
_TICK_S = 0.5
_LINES_MAX = 50
_LEAST_INTERVAL_MS = 100

Document = dict[str, Any]


@dataclass(frozen=True)
class Exit:
    """Exit result of a fio process."""

    returncode: int
    message: str  # fio's last message; "" if fio printed none.
    fault: str = ""  # Reason for a failure despite exit status 0.
    lines: tuple[str, ...] = ()  # fio's last messages.

    @property
    def reason(self) -> str:
        """One-line reason for a failure, or "" on success."""
        if self.returncode < 0:
            name = signal.Signals(-self.returncode).name
            return f"killed by {name}" + (f" ({self.message})" if self.message else "")
        if self.returncode > 0:
            return self.message or f"exit status {self.returncode}"
        return self.fault


class DocumentSplitter:
    """Parser that splits fio's standard output into JSON documents and messages.

    Only a document's outer braces are in the first column. All other lines outside a document are
    messages.
    """

    def __init__(self) -> None:
        """Create a parser that holds no data yet."""
        self._rest = b""
        self._open: list[bytes] | None = None
        self.messages: deque[str] = deque(maxlen=_LINES_MAX)

    def feed(self, data: bytes) -> list[Document]:
        """Add output, and return the documents that the output completes.

        Raises:
            EngineError: If a document is not valid JSON.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        documents = []
        for line in lines:
            if self._open is None:
                if line.startswith(b"{"):
                    self._open = [line]
                elif line.strip():
                    self.messages.append(line.decode(errors="replace").strip())
                continue
            self._open.append(line)
            if line.startswith(b"}"):
                text = b"\n".join(self._open)
                self._open = None
                try:
                    # File names may not be valid UTF-8.
                    documents.append(json.loads(text.decode("utf-8", "replace")))
                except ValueError as error:
                    raise EngineError(f"fio's JSON output cannot be read: {error}") from error
        return documents


class _Report(NamedTuple):
    """A fio report or a parser error, and the arrival time."""

    content: Document | EngineError
    arrived_ns: int


class FioProcess:
    """A fio process; call `start`, read reports with `next`, and always call `close`."""

    def __init__(self, program: str, job_text: str, interval_ms: float) -> None:
        """Prepare a process that runs a job file and reports every `interval_ms`."""
        self._program = program
        self._job_text = job_text
        self._interval_ms = max(_LEAST_INTERVAL_MS, round(interval_ms))
        self._splitter = DocumentSplitter()
        self._errors: deque[str] = deque(maxlen=_LINES_MAX)
        self._reports: queue.SimpleQueue[_Report | None] = queue.SimpleQueue()
        self._directory = tempfile.TemporaryDirectory(prefix="writecliff-fio-")
        self._child: subprocess.Popen[bytes]
        self._reader: threading.Thread | None = None
        self.pid: int | None = None
        self.waited_ns = 0  # Time from the last report's arrival to its processing.

    def start(self) -> Self:
        """Start fio.

        Raises:
            EngineError: If fio cannot be started.
        """
        job_file = Path(self._directory.name) / "workload.fio"
        job_file.write_text(self._job_text, "utf-8", "surrogateescape")
        argv = [
            self._program,
            "--output-format=json+",
            "--eta=never",
            f"--status-interval={self._interval_ms}ms",
            str(job_file),
        ]
        try:
            self._child = subprocess.Popen(
                argv,
                cwd=self._directory.name,  # fio leaves its state files in this directory.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        except OSError as error:
            self._directory.cleanup()
            raise EngineError(f"cannot start {self._program}: {error.strerror}") from error
        self.pid = self._child.pid
        self._reader = threading.Thread(target=self._read, name="fio-reader", daemon=True)
        self._reader.start()
        return self

    def next(self, on_tick: Callable[[], None] = lambda: None) -> Document | None:
        """Wait for and return the next report, or None if fio has exited or is about to exit.

        `on_tick` is called twice a second during the wait.
        """
        while True:
            with contextlib.suppress(queue.Empty):
                report = self._reports.get(timeout=_TICK_S)
                break
            on_tick()
        if report is None:
            self._reports.put(None)
            return None
        if isinstance(report.content, EngineError):
            raise report.content
        self.waited_ns = time.monotonic_ns() - report.arrived_ns
        return report.content

    def stop(self) -> list[Document]:
        """Stop fio, wait for its exit, and return the unread reports.

        The call has no effect if fio was not started or has exited.
        """
        if self._reader is None:
            return []
        self._signal(signal.SIGINT)
        self._reader.join(_STOP_GRACE_S)
        reports = []
        while not self._reports.empty():
            report = self._reports.get()
            if report is not None and not isinstance(report.content, EngineError):
                reports.append(report.content)
        self._reports.put(None)
        return reports

    def ended(self) -> Exit:
        """Wait for fio to exit (killing it if it closed its pipes), and return the exit result."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=_STOP_GRACE_S)
        self.close()
        lines = (*self._errors, *self._splitter.messages)
        if self._child.returncode is None:
            return Exit(-signal.SIGKILL, self._message(), "it does not exit", lines)
        return Exit(self._child.returncode, self._message(), lines=lines)

    def close(self) -> None:
        """Kill fio if it still runs, and release its resources (further calls have no effect)."""
        if self._reader is not None:
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(timeout=0 if self._reader.is_alive() else _STOP_GRACE_S)
            finally:  # fio does not stop, or the user pressed Ctrl-C again.
                self._signal(signal.SIGKILL)
                # A process that waits for a dead drive cannot be killed.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(timeout=_STOP_GRACE_S)
                    self._reader.join()
                for pipe in (self._child.stdout, self._child.stderr):
                    close_quietly(pipe)
        self._directory.cleanup()

    def _read(self) -> None:
        """Read until both pipes are closed."""
        readable = True  # Output after an unreadable report is discarded.
        for pipe, data in self._chunks():
            if pipe is self._child.stderr:
                self._keep_errors(data)
            elif readable:
                try:
                    for document in self._splitter.feed(data):
                        self._reports.put(_Report(document, time.monotonic_ns()))
                except EngineError as error:
                    self._reports.put(_Report(error, time.monotonic_ns()))
                    readable = False
        self._reports.put(None)

    def _chunks(self) -> Iterator[tuple[IO[bytes], bytes]]:
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe in (self._child.stdout, self._child.stderr):
                selector.register(pipe, selectors.EVENT_READ, pipe)
            while selector.get_map():
                for key, _ in selector.select():
                    if data := os.read(key.fd, 1 << 16):
                        yield key.data, data
                    else:
                        selector.unregister(key.fileobj)

    def _keep_errors(self, data: bytes) -> None:
        lines = data.decode(errors="replace").splitlines()
        self._errors.extend(line.strip() for line in lines if line.strip())

    def _signal(self, number: signal.Signals) -> None:
        """Signal fio's process group, which fio leads, unless fio has exited."""
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, number)

    def _message(self) -> str:
        """Return the last error or, if none, the last message, without the "fio: " prefix."""
        for lines in (self._errors, self._splitter.messages):
            if lines:
                return " ".join(lines[-1].split()).removeprefix("fio: ")
        return ""


def close_quietly(pipe: IO[bytes] | None) -> None:
    """Close a pipe, and ignore errors."""
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()
