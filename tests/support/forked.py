"""Commands in forks of a process that has everything imported: a case costs milliseconds, not a
start. Their limits are processor time, so that a machine that is busy with other things fails nobody.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Literal, NoReturn

# Imported before processes are forked; those with threads of their own use one.
_MODULES = (
    "numpy", "pyarrow.parquet", "pyarrow.dataset", "duckdb", "msgspec", "cyclopts", "jinja2", "matplotlib.backends.backend_svg",
    "matplotlib.figure", "writecliff._native", "writecliff.cli.commands", "writecliff.report.pages", "writecliff.engines.sim",
    "writecliff.procedures.framework", "writecliff.workload.fiojob", "writecliff.cli.runner",
)  # fmt: skip
_PROGRAMS = ("__main__", "member")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LOOKS_S = 0.1
# What waits for a processor gets a little of it in this time, even beside much that goes first.
_HANGS_S, _HANGS_BELOW_S = 90.0, 0.02

Why = Literal["", "slow", "hangs"]


def get_ready() -> None:
    """Import what commands import, and become the parent of what children leave behind."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # members of suites start often
    for module in _MODULES:
        import_module(module)
    _import_all()
    _compile_templates()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    gc.freeze()
    atexit.register(gc.unfreeze)


def _import_all() -> None:
    """Every module of the program: else each command that needs one loads it again."""
    import writecliff

    for module in walk_packages(writecliff.__path__, "writecliff."):
        if module.name.rpartition(".")[2] not in _PROGRAMS:
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                import_module(module.name)


def _compile_templates() -> None:
    """Those of pages, for the same reason."""
    from writecliff.report.pages import _environment

    for name in _environment().list_templates():
        if name.endswith((".html", ".j2")):
            _environment().get_template(name)


def fork(run: Callable[[], int]) -> int:
    """The number of a process that runs `run` and ends with its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _end(run)
    return child


def _end(run: Callable[[], int]) -> NoReturn:
    code = 70
    try:
        code = run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        with contextlib.suppress(BaseException):
            sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # as a process does that ends
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def wait_within(pid: int, seconds_max: float) -> Why:
    """Wait until a process ends (""), has had so much processor time with its descendants
    ("slow"), or has none for a long time ("hangs"). It is not reaped, nor stopped.
    """
    descriptor = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        last_s, last_at = 0.0, time.monotonic()
        while not ended.poll(1000 * _LOOKS_S):
            if (now_s := spent(pid)) >= seconds_max:
                return "slow"
            if now_s > last_s + _HANGS_BELOW_S or now_s < last_s:
                last_s, last_at = now_s, time.monotonic()
            elif time.monotonic() > last_at + _HANGS_S:
                return "hangs"
    finally:
        os.close(descriptor)
    return ""


def spent(pid: int) -> float:
    """Processor time of a process and its descendants, in seconds."""
    total = 0.0
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
            for child in (task / "children").read_text().split():
                total += spent(int(child))
    return total


def left_behind(wait_s: float) -> dict[int, str]:
    """The processes that outlive their ancestor, with their command lines, `wait_s` later. They are
    killed then.
    """
    end = time.monotonic() + wait_s
    while (left := _ours()) and time.monotonic() < end:
        time.sleep(0.02)
    found = {}
    for pid in left:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            found[pid] = words.decode(errors="replace").strip()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while _ours():
        time.sleep(0.01)
    return found


def _ours() -> list[int]:
    """The processes that have become ours and run; those that have ended are reaped."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return [
        int(child)
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
