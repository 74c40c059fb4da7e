"""Programs that are tortured: what they run, and what finds out whether they lost anything.

A program runs in a folder of the drive. What it prints on stdout it has acknowledged: those lines
are kept outside of the drive, in the file that WRITECLIFF_ACKNOWLEDGED names for the check.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass

from writecliff.errors import ConfigError, TargetError

READY = ("sqlite", "postgres", "rocksdb")


@dataclass(frozen=True)
class Program:
    """Command lines. `prepare` runs once before the first cut, `run` until the cut, and `check`
    after it: an exit code that is not 0 says that the program lost something.
    """

    name: str
    run: tuple[str, ...]
    check: tuple[str, ...]
    prepare: tuple[str, ...] = ()


def ready_program(name: str, *, sync: bool) -> Program:
    """A program with its check. `sync`: whether it makes durable what it acknowledges.

    Raises ConfigError for an unknown name, TargetError if the program is not installed.
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
