"""Run `suite pts-e --quick` on a drive without rendering its reports.

Usage: `run_suite.py DRIVE SERIAL FOLDER SETTING...`. Reports are built from run directories and
    never access a drive; in a guest with an emulated CPU, rendering eight reports takes longer than
    the tests.
Members are forked because starting Python takes half a minute in the guest.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from writecliff.cli.test_commands import setting
from writecliff.suite import children
from writecliff.suite.children import ChildEvent
from writecliff.suite.folder import SuiteFolder
from writecliff.suite.plan import plan_suite
from writecliff.suite.runner import run_suite


def fork_members() -> None:
    """Start member processes by fork, after importing all modules that a test needs."""
    for module in ("engines.target", "engines.fio", "procedures.framework", "store.rundir"):
        import_module(f"writecliff.{module}")
    vars(children)["subprocess"] = SimpleNamespace(Popen=Forked)


class Forked:
    """A member process with the subset of the `subprocess.Popen` interface that its parent uses."""

    def __init__(self, words: list[str], *, pass_fds: list[int]) -> None:
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                children.main_of_member(Connection(os.dup(pass_fds[0])), parent)
            finally:
                os._exit(0)

    def terminate(self) -> None:
        os.kill(self._pid, signal.SIGTERM)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def no_page(run: Path) -> None:
    """Skip rendering the report."""


def main(drive: str, serial: str, folder: str, *settings: str) -> None:
    special: dict[str, dict[str, Any]] = {}
    for text in settings:
        test, _, text_of_setting = text.partition(".")
        name, value = setting(test, text_of_setting)
        special.setdefault(test, {})[name] = value
    common = {"revision": "1.x", "quick": True}
    members = plan_suite("pts-e", drive, common=common, special=special)
    made = SuiteFolder.create(Path(folder), "suite", "pts-e", members)
    fork_members()
    opening = {"destroy_serial": serial}
    began = time.monotonic()

    def log(event: ChildEvent) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {event.name}: {event.text}", flush=True)

    run_suite(made, log, opening=opening, finish=no_page)


if __name__ == "__main__":
    main(*sys.argv[1:])
