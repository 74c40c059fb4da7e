"""Commands in forks of a process with all modules imported: a case costs only milliseconds.

The limits are on CPU time, so that other load on the machine does not make any case fail.
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

# These modules are imported before processes are forked. Libraries with thread pools are limited to
# one thread.
_MODULES = (
    "numpy", "pyarrow.parquet", "pyarrow.dataset", "duckdb", "msgspec", "cyclopts", "jinja2", "matplotlib.backends.backend_svg",
    "matplotlib.figure", "writecliff._native", "writecliff.cli.commands", "writecliff.report.pages", "writecliff.engines.sim",
    "writecliff.procedures.framework", "writecliff.workload.fiojob", "writecliff.cli.runner",
)  # fmt: skip
_PROGRAMS = ("__main__", "member")
_SUBREAPER = 36  # Value of PR_SET_CHILD_SUBREAPER.
_LOOKS_S = 0.1
# A runnable process receives some CPU time within this interval, even behind busier processes.
_HANGS_S, _HANGS_BELOW_S = 90.0, 0.02

Why = Literal["", "slow", "hangs"]


def get_ready() -> None:
    """Import the modules of all commands, and become the parent of orphaned descendants."""
    # Suites start many member processes, which need the bytecode cache.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for module in _MODULES:
        import_module(module)
    _import_all()
    _compile_templates()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    gc.freeze()
    atexit.register(gc.unfreeze)


def _import_all() -> None:
    """Import every module of the program, so that no fork has to load one again."""
    import writecliff

    for module in walk_packages(writecliff.__path__, "writecliff."):
        if module.name.rpartition(".")[2] not in _PROGRAMS:
            with contextlib.suppress(
                ImportError
            ):  # The module needs an extra that is not installed.
                import_module(module.name)


def _compile_templates() -> None:
    """Compile the page templates, so that no fork has to compile them."""
    from writecliff.report.pages import _environment

    for name in _environment().list_templates():
        if name.endswith((".html", ".j2")):
            _environment().get_template(name)


def fork(run: Callable[[], int]) -> int:
    """Fork a process that exits with the exit code of `run`, and return its ID."""
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
    """Wait until a process ends, at most for `seconds_max` of CPU time.

    Return "" if the process ended, "slow" if it and its descendants used up the time, "hangs" if
    they used no CPU for a long time. The process is neither reaped nor stopped.
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
    """Return the CPU time of a process and its descendants, in seconds."""
    total = 0.0
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
            for child in (task / "children").read_text().split():
                total += spent(int(child))
    return total


def left_behind(wait_s: float) -> dict[int, str]:
    """Return the orphaned processes still running after `wait_s`, with their command lines.

    These processes are then killed.
    """
    end = time.monotonic() + wait_s
    while (left := _ours()) and time.monotonic() < end:
        time.sleep(0.02)
    commands = {}
    for pid in left:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            commands[pid] = words.decode(errors="replace").strip()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while _ours():
        time.sleep(0.01)
    return commands


def _ours() -> list[int]:
    """Return the running child processes, including inherited ones; reap those that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return [
        int(child)
        for task in Path("/proc/self/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
