"""Execution of system tools that send drive commands: nvme, smartctl, hdparm, blkid, sg_*.

A `Runner` uses no shell, enforces a time limit, and does not raise an error if a tool is missing or
fails. The runner is always a parameter, so that tests can replay recorded output.
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

# Most of these tools are in sbin, which is often missing from the PATH of unprivileged users.
_EXTRA_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")
ABSENT = 127
_KILL_GRACE_S = 1.0


@dataclass(frozen=True)
class ToolResult:
    """Result of running a tool."""

    returncode: int  # Exit status; 127 if the program is not installed, and -1 after a timeout.
    stdout: str
    stderr: str = ""
    data: bytes = b""  # Standard output as bytes.

    @property
    def ok(self) -> bool:
        """True if the tool succeeded."""
        return self.returncode == 0

    @property
    def absent(self) -> bool:
        """True if the tool is not installed."""
        return self.returncode == ABSENT

    @property
    def message(self) -> str:
        """Last line of the tool's output, for error messages."""
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.returncode}"

    def json(self) -> dict[str, Any]:
        """Return the output as a JSON object, which is empty if the output is not valid JSON."""
        try:
            data = json.loads(self.stdout)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


class Runner(Protocol):
    """Function that runs a tool."""

    def __call__(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
        """Run a tool, subject to a time limit."""
        ...


def find_tool(name: str) -> str | None:
    """Return a tool's full path in PATH or root's PATH, or None if the tool is missing."""
    path = os.environ.get("PATH", "")
    return shutil.which(name, path=os.pathsep.join([path, *_EXTRA_PATH]))


def run_tool(argv: Sequence[str], *, timeout_s: float = 30.0) -> ToolResult:
    """Run a tool to completion in a neutral locale and with no standard input."""
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
        return ToolResult(-1, "", f"{argv[0]} did not finish within {timeout_s:g} s")
    except BaseException:
        _abandon(child)
        raise
    text, errors = (part.decode(errors="replace") for part in (out, err))
    return ToolResult(child.returncode, text, errors, out)


def _abandon(child: subprocess.Popen[bytes]) -> None:
    """Kill a tool, but do not wait if it hangs in the kernel on a dead drive."""
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=_KILL_GRACE_S)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
