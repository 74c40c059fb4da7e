"""Runs a command and captures its I/O at each step of its way to the drive.

System calls come from the preloaded library, the rest from the kernel. Both traces are made in
memory (/dev/shm) and moved at the end, because what writing them asked of the drive would be
captured too. The file system is synced before the command and after it: what others had written
before does not count, and what the command left in the page cache does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from writecliff.capture import events
from writecliff.capture.block.run import BlockCapture
from writecliff.capture.events import Events, Op
from writecliff.capture.run import Options, execute, program_of, session
from writecliff.capture.stack.account import Account, DriveRows
from writecliff.capture.stack.file_system import FileSystem, file_system_of, sync
from writecliff.capture.stack.kernel_events import Collected, wanted
from writecliff.capture.stack.result import Stack
from writecliff.capture.trace import read_trace
from writecliff.capture.watch import is_static
from writecliff.store.files import claim_directory, store_error

CALLS, DEVICE = "calls.parquet", "device.parquet"
_MEMORY = Path("/dev/shm")


def capture_stack(
    command: Sequence[str], folder: Path, *, root: Path, stdout: int | None = None
) -> Stack:
    """Run `command`, keep the traces `calls.parquet` and `device.parquet` in `folder`, which must
    be empty or not exist, and say what became of the I/O to files below `root`.

    `stdout`: a file descriptor for the output of the command. Raises TargetError (no such program
    or folder, no block device behind it, not root, no tracefs), ConfigError, EngineError,
    StoreError.
    """
    program = program_of(command)
    file_system = file_system_of(root)
    memory = _MEMORY if _MEMORY.is_dir() else None
    claim_directory(folder)
    with tempfile.TemporaryDirectory(prefix="writecliff-", dir=memory) as text:
        place = Path(text)
        place.chmod(0o755)  # programs that drop root privileges write their events there
        stack = _captured(command, program, file_system, root, place, stdout)
        for name in (CALLS, DEVICE):
            try:
                shutil.move(place / name, folder / name)
            except OSError as error:
                raise store_error(error, folder / name) from error
    return stack


def _captured(
    command: Sequence[str],
    program: str,
    file_system: FileSystem,
    root: Path,
    place: Path,
    stdout: int | None,
) -> Stack:
    sync(root)
    collected = Collected()
    capture = BlockCapture(
        file_system.device,
        place / DEVICE,
        others=wanted(file_system),
        on_events=collected.add,
    )
    try:
        options = Options(place / CALLS, root, reads=True)
        with session(options, public=place) as calls:
            if is_static(Path(program)):
                calls.notes.append(f"{program} is linked statically: its calls are not captured")
            capture.start()
            code, watch = execute(command, calls.environment(), stdout, None, executable=program)
            ended_ns = time.monotonic_ns() - capture.began_ns
            sync(root)
            capture.stop()
            calls.notes += watch.notes()
            noted = events.read(calls.events)
            done = calls.finish(command, Path(program).name, code)
        metadata = capture.finish({"command": list(command), "notes": []})
    finally:
        capture.close()
    account = Account(
        file_system=file_system,
        root=root.resolve(),
        calls=read_trace(place / CALLS),
        drive=DriveRows.of(
            read_trace(place / DEVICE),
            kind=file_system.kind,
            program=processes(noted),
            own=os.getpid(),
        ),
        events=collected,
        known=capture.others,
        shift_ns=noted.start_ns - capture.began_ns,
    )
    notes = (*done.metadata["notes"], *metadata["notes"])
    return _summed_up(account, command, ended_ns, metadata, notes, code)


def processes(noted: Events) -> set[int]:
    """The processes that were captured."""
    mine = noted.slots["op"] == Op.PROCESS
    return set(np.unique(noted.slots["pid"][mine]).tolist())


def _summed_up(
    account: Account,
    command: Sequence[str],
    ended_ns: int,
    metadata: dict[str, object],
    notes: Sequence[str],
    code: int,
) -> Stack:
    calls = account.call_step()
    missing = {event.name for event in wanted(account.file_system)} - {
        event.name for event in account.known
    }
    told = [f"this kernel has no event {name}" for name in sorted(missing)]
    return Stack(
        command=tuple(command),
        root=str(account.root),
        file_system=account.file_system.describe(),
        program_ns=ended_ns,
        duration_ns=int(str(metadata["duration_ns"])),
        calls=calls,
        bios=account.bio_step(),
        requests=account.request_step(),
        origins=tuple(account.origin_rows()),
        cache=account.page_cache(calls.reads.bytes),
        journal=account.journal(),
        waits=account.waits(),
        written=account.written(),
        lost_events=int(str(metadata["lost_events"])),
        exit_code=code,
        notes=(*notes, *told),
    )
