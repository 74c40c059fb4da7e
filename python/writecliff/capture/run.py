"""Capture a command's file I/O, and write it as a trace.

The command stays in writecliff's process group, so that Ctrl-C also reaches the command. A signal
that only writecliff receives is forwarded to the command. Events recorded before an interruption
are always written to the trace.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from writecliff.capture import events
from writecliff.capture.watch import ProcessWatch, is_static
from writecliff.errors import TargetError, WritecliffError
from writecliff.output_files import check_kind
from writecliff.signals import TERMINATIONS, handling

LIBRARY = Path(__file__).with_name("libwritecliff_preload.so")
BUILD_HINT = "install a wheel, run `make setup`, or use `capture --via strace`"
_POLL_S = 0.2


@dataclass(frozen=True)
class Options:
    """Options of a file I/O capture. `root` limits the trace to the files below a folder."""

    output: Path  # Trace path.
    root: Path | None = None
    reads: bool = False  # `True` to trace reads as well as writes.
    # `True` to retry hints that were not 64 bits wide with the correct width.
    repair_hints: bool = False


@dataclass(frozen=True)
class Captured:
    """A trace file and its metadata. `exit_code` is the command's, or 128 + n for signal n."""

    output: Path  # Trace path.
    exit_code: int
    metadata: dict[str, Any]  # Capture metadata: command, duration, bytes, hints, notes.


@dataclass
class Session:
    """A capture in progress, which includes all programs started with `environment`."""

    options: Options
    events: Path
    library: Path = LIBRARY
    notes: list[str] = field(default_factory=list)
    started_ns: int = field(default_factory=time.monotonic_ns)

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment variables that make a program load the library."""
        merged = dict(os.environ if base is None else base)
        others = merged.get("LD_PRELOAD", "")
        merged["LD_PRELOAD"] = f"{self.library}:{others}" if others else str(self.library)
        merged["WRITECLIFF_EVENTS"] = str(self.events)
        return merged

    def finish(
        self, command: Sequence[str], program: str, exit_code: int | None, **more: Any
    ) -> Captured:
        """Write the trace, add `more` to its metadata, and then remove the events."""
        duration_ns = time.monotonic_ns() - self.started_ns
        events.stop(self.events)
        metadata = {"command": list(command), "program": program, "exit_code": exit_code, **more}
        done = write_converted(
            self.options, events.read(self.events), metadata, duration_ns, self.notes
        )
        self.events.unlink()
        return done

    def rescue(self, error: BaseException) -> None:
        """Write the trace of the events recorded before `error` stopped the capture."""
        events.stop(self.events)
        if not len(events.read(self.events).slots):
            self.events.unlink()
            return
        reason = " ".join(str(error).split()) or "interrupted"
        self.notes.append(f"stopped early: {reason}")
        try:
            self.finish([], self.options.output.stem, None)
        except WritecliffError:
            beside = self.options.output.absolute().with_name(self.events.name)
            if self.events != beside:
                shutil.move(self.events, beside)  # The source folder is temporary.


@contextlib.contextmanager
def session(options: Options, *, public: Path | None = None) -> Iterator[Session]:
    """Start a capture. If the trace cannot be written, the events are stored next to its path.

    `public` is a folder that every user can access, for programs that drop root privileges and may
    be unable to access the user's own folders. The preload library and the events are stored in
    this folder.
    """
    check_library()
    check_kind(options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    path = options.output.absolute().with_name(options.output.name + ".events")
    library = LIBRARY
    if public is not None:
        path = public / path.name
        library = Path(shutil.copy(LIBRARY, public))
    if path.exists():
        raise WritecliffError(
            f"{path} contains events of an earlier capture",
            hint=f"recover the events with --recover {path}, or remove the file",
        )
    events.create(path, reads=options.reads, repair_hints=options.repair_hints)
    open_session = Session(options, path, library)
    try:
        # If the capture fails, an old trace could be mistaken for the new trace.
        options.output.unlink(missing_ok=True)
        yield open_session
    except BaseException as error:
        if path.exists():
            open_session.rescue(error)
        raise


def check_library() -> None:
    """Check that the preload library was built.

    Raises:
        WritecliffError: If the preload library is missing.
    """
    if not LIBRARY.is_file():
        raise WritecliffError("the preload library is not built", hint=BUILD_HINT)


def capture(
    command: Sequence[str],
    options: Options,
    *,
    stdout: int | None = None,
    stderr: int | None = None,
    program_name: str | None = None,
) -> Captured:
    """Run `command` and write a trace of its file I/O.

    Raises:
        TargetError: If the command cannot be started.
    """
    program = program_of(command)
    with session(options) as open_session:
        if is_static(Path(program)):
            open_session.notes.append(
                f"{program} is statically linked: its I/O can only be captured with --via strace"
            )
        environment = open_session.environment()
        code, watch = execute(command, environment, stdout, stderr, executable=program)
        open_session.notes += watch.notes()
        return open_session.finish(command, program_name or Path(program).name, code)


def recover(path: Path, options: Options) -> Captured:
    """Write the trace from the events of a killed capture, and do not delete the events.

    The events are retained because they are the only record of the capture, and the trace may
    differ from expectations.
    """
    if not path.is_file():
        raise TargetError(f"the event file {path} does not exist")
    events.stop(path)
    noted = events.read(path)
    given = noted.slots["time_ns"][noted.slots["op"] > 0]
    last_ns = int(given.max()) if len(given) else noted.start_ns
    duration_ns = min(max(0, last_ns - noted.start_ns), events.LONGEST_NS)
    notes = [
        "recovered from a killed capture, whose duration ends at the last event",
        f"the events remain in {path}; remove the file after checking the trace",
    ]
    metadata: dict[str, Any] = {"command": [], "program": "", "exit_code": None}
    return write_converted(options, noted, metadata, duration_ns, notes)


def program_of(command: Sequence[str]) -> str:
    """Return the program path of a command.

    Raises:
        TargetError: If the program does not exist.
    """
    program = shutil.which(command[0])
    if program is None:
        raise TargetError(
            f"the program {command[0]} does not exist",
            hint="specify the program and its arguments as you would in a shell",
        )
    return program


def write_converted(
    options: Options,
    noted: events.Events,
    metadata: Mapping[str, Any],
    duration_ns: int,
    notes: Sequence[str],
    *,
    source: str = "preload",
) -> Captured:
    """Convert the events, and write the trace."""
    from writecliff.capture.convert import convert
    from writecliff.capture.trace import write_trace

    converted = convert(noted, root=options.root, source=source)
    full = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "duration_ns": duration_ns,
        "root": None if options.root is None else options.root.name,
        **metadata,
        **converted.metadata,
    }
    full["notes"] = [*notes, *full["notes"]]
    write_trace(options.output, converted.table, full)
    return Captured(options.output, metadata["exit_code"] or 0, full)


def execute(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: int | None,
    stderr: int | None,
    *,
    executable: str | None = None,
) -> tuple[int, ProcessWatch]:
    """Run a command, and return its exit code, or 128 + n for signal n.

    Raises:
        TargetError: If the command cannot be run.
    """
    try:
        child = subprocess.Popen(
            command, executable=executable, env=environment, stdout=stdout, stderr=stderr
        )
    except OSError as error:
        name = executable or command[0]
        raise TargetError(f"cannot run {name}: {(error.strerror or '').lower()}") from error
    watch = ProcessWatch(child.pid)

    def hand_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    with handling(TERMINATIONS, hand_on):
        code = _wait(child, watch)
    return (128 - code if code < 0 else code), watch


def _wait(child: subprocess.Popen[bytes], watch: ProcessWatch) -> int:
    """Wait for the command to exit despite signals, and return its exit code."""
    asked = 0
    while True:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(timeout=_POLL_S)
            watch.look()
        except KeyboardInterrupt:
            asked += 1
            if asked > 1:
                child.kill()
            elif not _in_foreground():
                # In the foreground, the terminal signals the command directly.
                child.send_signal(signal.SIGINT)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
