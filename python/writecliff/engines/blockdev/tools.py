"""Runs the small system tools (nvme, smartctl, hdparm, blkid, sg_*) that speak to drives.

A `Runner` never uses a shell, always has a time limit and never raises for a tool that is absent or
fails. It is a parameter everywhere, so that recorded answers can replace it in tests.
"""

from __future__ import annotations

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
        done = subprocess.run(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ToolResult(-1, "", f"{argv[0]} did not answer within {timeout_s:g} s")
    except OSError as error:
        return ToolResult(ABSENT, "", str(error))
    text, errors = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
    return ToolResult(done.returncode, text, errors, done.stdout)
