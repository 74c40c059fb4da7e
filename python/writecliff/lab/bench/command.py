"""A command as a benchmark measures it: whole, in a process of its own, from the start of Python.

It runs as an installed program does: Python keeps compiled modules, which installers make and some
environments switch off (PYTHONDONTWRITEBYTECODE), so that each start would compile them anew.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """A command that has ended. `cpu_s` is that of all its processes."""

    exit_code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float


def measured(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Ran:
    """Run `writecliff` with these words; `environment` is added to that of this process."""
    ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, begin_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "writecliff", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**ours, **(environment or {})},
    )
    wall_s, after = time.monotonic() - begin_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(done.returncode, done.stdout, done.stderr, wall_s, cpu_s)
