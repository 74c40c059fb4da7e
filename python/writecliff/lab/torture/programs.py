"""Programs under test, with their command lines and data checks.

A program runs in a folder on the drive. Each line that a program prints on stdout acknowledges
durable data. The lines are stored outside the drive, in the file that WRITECLIFF_ACKNOWLEDGED names
for the check.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass

from writecliff.errors import ConfigError, TargetError

READY = ("sqlite", "postgres", "rocksdb")


@dataclass(frozen=True)
class Program:
    """Command lines of a program.

    `prepare` runs once before the first cut, `run` until the cut, and `check` after it. A nonzero
    exit code of `check` means that the program lost data.
    """

    name: str
    run: tuple[str, ...]
    check: tuple[str, ...]
    prepare: tuple[str, ...] = ()


def ready_program(name: str, *, sync: bool) -> Program:
    """Return a built-in program and its check; `sync` makes it sync acknowledged data.

    Raises:
        ConfigError: If the name is unknown.
        TargetError: If the program is not installed.
    """
    if name not in READY:
        raise ConfigError.unknown("program", name, READY)
    if name == "postgres":
        from writecliff.capture.apps.postgres import installed

        installed()
    if name == "rocksdb" and importlib.util.find_spec("rocksdict") is None:
        raise TargetError("rocksdict is not installed", hint="pip install writecliff[rocksdb]")
    base = (sys.executable, "-m", f"writecliff.lab.torture.{name}")
    options = () if sync else ("--no-sync",)
    return Program(name, (*base, "write", *options), (*base, "check"), (*base, "prepare"))
