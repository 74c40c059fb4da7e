"""Runs the small system tools (nvme, smartctl, hdparm, blkid, sg_*) that speak to drives.

A `Runner` never uses a shell, always has a time limit and never raises for a tool that is absent or
fails. It is a parameter everywhere, so that recorded answers can replace it in tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# Distributions keep most of these tools in sbin, which the path of a normal user often lacks.
_EXTRA_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")
ABSENT = 127
_KILL_GRACE_S = 1.0


@dataclass(frozen=True)
class ToolResult:
    """Output of one tool. `returncode` 127 means that it is not installed, -1 that it timed out.

    `data` is its standard output as bytes, for tools that print them.
    """

    returncode: int
    stdout: str
    stderr: str = ""
    data: bytes = b""

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    @property
    def absent(self) -> bool:
        return self.returncode == ABSENT

    @property
    def message(self) -> str:
        """The last line that it printed, for error messages."""
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.returncode}"

    def json(self) -> dict[str, Any]:
        """Its output as a JSON object; empty if it is not one."""
        try:
            data = json.loads(self.stdout)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


class Runner(Protocol):
    def __call__(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult: ...


def find_tool(name: str) -> str | None:
    """Full path of a tool, also when only root's path would have it."""
    path = os.environ.get("PATH", "")
    return shutil.which(name, path=os.pathsep.join([path, *_EXTRA_PATH]))


def run_tool(argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
    """Run a tool to its end with a neutral locale and without standard input."""
    program = find_tool(argv[0])
    if program is None:
        return ToolResult(ABSENT, "", f"{argv[0]} is not installed")
    try:
        child = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        return ToolResult(ABSENT, "", str(error))
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _abandon(child)
        return ToolResult(-1, "", f"{argv[0]} did not answer within {timeout_s:g} s")
    except BaseException:
        _abandon(child)
        raise
    text, errors = (part.decode(errors="replace") for part in (out, err))
    return ToolResult(child.returncode, text, errors, out)


def _abandon(child: subprocess.Popen[bytes]) -> None:
    """Kill a tool; one that waits for a dead drive does not even die, and is left behind."""
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=_KILL_GRACE_S)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
