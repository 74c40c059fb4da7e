"""Captures with strace, for programs that do not work with the preload library.

These are static programs, and programs that write to mapped files and sync them. strace stops the
program at every call, which makes it several times slower, and provides less information: hints
without values, files by name. Its output is converted to the same events as those of the library.

Not captured: writes through io_uring; the time of writes to mapped pages (a range passed to msync
counts as written completely; without msync nothing is recorded); sizes of files from before the
capture, so appends to them begin at the size known so far.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import TargetError
from writecliff.output_files import check_kind

if TYPE_CHECKING:
    from writecliff.capture.run import Captured, Options

# Calls that name files, change offsets or transfer data.
_CALLS = (
    "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,write,pwrite64,writev,pwritev,"
    "pwritev2,read,pread64,readv,preadv,preadv2,sendfile,copy_file_range,fsync,fdatasync,"
    "sync_file_range,truncate,ftruncate,fallocate,mkdir,mkdirat,unlink,unlinkat,rename,renameat,"
    "renameat2,link,linkat,clone,clone3,fork,vfork,execve,chdir,fchdir,mmap,msync,io_uring_setup"
)
_OPTIONS = ("-f", "-y", "-Y", "-ttt", "-qq", "-s", "0", "--seccomp-bpf")


def capture(command: Sequence[str], options: Options, *, stdout: int | None = None) -> Captured:
    """Run `command` under strace and write its trace.

    Raises TargetError if strace is missing or may not trace, or the command cannot be started."""
    from writecliff.capture.run import execute, program_of, write_converted
    from writecliff.capture.strace_events import events_of
    from writecliff.capture.strace_files import existing

    program = program_of(command)
    strace = shutil.which("strace")
    if strace is None:
        raise TargetError("strace is not installed", hint="on Debian: apt-get install strace")
    check_kind(options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    log = options.output.absolute().with_name(options.output.name + ".strace")
    traced = [strace, *_OPTIONS, "-e", f"trace={_CALLS}", "-o", str(log), "--"]
    if options.output.exists():
        options.output.unlink()
    try:
        before = existing(options.root) if options.root else frozenset()
        begun_ns = time.monotonic_ns()
        code, _ = execute([*traced, program, *command[1:]], os.environ, stdout, None)
        duration_ns = time.monotonic_ns() - begun_ns
        if not log.exists() or not log.stat().st_size:
            raise TargetError(
                "strace traced nothing",
                hint="check whether tracing is allowed (kernel.yama.ptrace_scope, containers)",
            )
        with log.open(encoding="latin-1") as lines:
            read = events_of(lines, folder=Path.cwd(), before=before, reads=options.reads)
        metadata = {"command": list(command), "program": Path(program).name, "exit_code": code}
        return write_converted(
            options, read.events, metadata, duration_ns, read.notes, source="strace"
        )
    finally:
        log.unlink(missing_ok=True)
