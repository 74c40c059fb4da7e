"""Runs one fio process to its end and hands on its JSON reports as they come.

fio gets a private directory, a session of its own and a death signal, so that it never outlives
`FioProcess.run`: it ends with its work, on an exception or Ctrl-C here (it is then asked to stop,
and its last report is still read), or through the kernel if this process is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from writecliff.errors import EngineError
from writecliff.signals import die_with_parent

_STOP_GRACE_S = 10.0  # for I/Os in flight, after SIGINT; then SIGKILL
_POLL_S = 0.5
_KEPT_LINES = 50
_LEAST_INTERVAL_MS = 100

OnDocument = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Exit:
    """How fio ended. `message` is its last message, "" if none."""

    returncode: int
    message: str

    @property
    def reason(self) -> str:
        """Why it failed, in one line; "" if it did not."""
        if self.returncode < 0:
            name = signal.Signals(-self.returncode).name
            return f"killed by {name}" + (f" ({self.message})" if self.message else "")
        if self.returncode > 0:
            return self.message or f"exit status {self.returncode}"
        return ""


class DocumentSplitter:
    """Cuts fio's standard output into JSON documents and the plain messages between them.

    fio writes a document as a whole, with its braces alone in the first column; anything else at
    top level is a message.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._open: list[bytes] | None = None
        self.messages: deque[str] = deque(maxlen=_KEPT_LINES)

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Documents that the data completes."""
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
                    documents.append(json.loads(text))
                except ValueError as error:
                    raise EngineError(f"fio's JSON cannot be read: {error}") from error
        return documents


class FioProcess:
    """One run of fio. Call `run` once."""

    def __init__(self, program: str, job_text: str, interval_ms: float) -> None:
        self._program = program
        self._job_text = job_text
        self._interval_ms = max(_LEAST_INTERVAL_MS, round(interval_ms))
        self._splitter = DocumentSplitter()
        self._errors: deque[str] = deque(maxlen=_KEPT_LINES)
        self.pid: int | None = None

    def run(self, on_document: OnDocument) -> Exit:
        """Run to the end; `on_document` gets every report, the final one last.

        An exception (of the callback, or Ctrl-C) stops fio, delivers its last reports, and is then
        raised to the caller.
        """
        with tempfile.TemporaryDirectory(prefix="writecliff-fio-") as directory:
            job_file = Path(directory) / "workload.fio"
            job_file.write_text(self._job_text)
            child = self._start(directory, job_file)
            self.pid = child.pid
            try:
                self._follow(child, on_document)
            except BaseException:
                self._stop(child, on_document)
                raise
            finally:
                self._reap(child)
            return Exit(child.returncode, self._message())

    def _start(self, directory: str, job_file: Path) -> subprocess.Popen[bytes]:
        argv = [
            self._program,
            "--output-format=json+",
            "--eta=never",
            f"--status-interval={self._interval_ms}ms",
            str(job_file),
        ]
        try:
            return subprocess.Popen(
                argv,
                cwd=directory,  # where fio would leave state files
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        except OSError as error:
            raise EngineError(f"{self._program}: cannot be started: {error.strerror}") from error

    def _follow(
        self, child: subprocess.Popen[bytes], on_document: OnDocument, seconds: float | None = None
    ) -> None:
        """Read until both pipes are closed, or for `seconds`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        assert child.stdout is not None
        assert child.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe in (child.stdout, child.stderr):
                if not pipe.closed:
                    selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map() and (deadline is None or time.monotonic() < deadline):
                for key, _ in selector.select(_POLL_S):
                    pipe = key.fileobj  # type: ignore[assignment]
                    data = os.read(pipe.fileno(), 1 << 16)
                    if not data:
                        selector.unregister(pipe)
                        pipe.close()
                    elif pipe is child.stdout:
                        for document in self._splitter.feed(data):
                            on_document(document)
                    else:
                        self._keep_errors(data)

    def _keep_errors(self, data: bytes) -> None:
        lines = data.decode(errors="replace").splitlines()
        self._errors.extend(line.strip() for line in lines if line.strip())

    def _stop(self, child: subprocess.Popen[bytes], on_document: OnDocument) -> None:
        """Ask fio to stop and read its last report; a failing callback no longer matters."""
        if child.poll() is None:
            _signal_group(child, signal.SIGINT)
        with contextlib.suppress(Exception):
            self._follow(child, on_document, _STOP_GRACE_S)

    def _reap(self, child: subprocess.Popen[bytes]) -> None:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=_STOP_GRACE_S)
        finally:
            if child.poll() is None:  # it did not stop, or a second Ctrl-C came while we waited
                _signal_group(child, signal.SIGKILL)
                child.wait()
            for pipe in (child.stdout, child.stderr):
                close_quietly(pipe)

    def _message(self) -> str:
        """The last error, else the last message; without fio's own name in front."""
        for lines in (self._errors, self._splitter.messages):
            if lines:
                return " ".join(lines[-1].split()).removeprefix("fio: ")
        return ""


def close_quietly(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal fio's own group (it is the leader of its session); does nothing once fio has ended."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
