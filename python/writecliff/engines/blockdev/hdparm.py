"""Validated hdparm output for ATA drives.

hdparm reads the drive's registers from the sense data of an ATA PASS-THROUGH command. If a bridge
returns no sense data, hdparm prints "SG_IO: bad/missing sense data" (or nothing) and assumes that
the registers contain zeros. A sanitize status of zero means "SD0 Sanitize Idle". This module
rejects hdparm output that is based on missing sense data. Sources: hdparm 9.65, `sgio.c` (`sg16`),
`hdparm.c` and `identify.c`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from writecliff.engines.blockdev.tools import Runner, ToolResult

_DOUBTFUL = re.compile(r"^SG_IO: .*(?:bad|missing|questionable).* sense data.*$", re.MULTILINE)
_FEATURE = re.compile(r"^\s+(\*?)\s*(\S.*?)\s*$")
_CACHE = re.compile(r"write-caching\s*=\s*(\d|not supported)")
NO_REGISTERS = (
    "hdparm does not receive the drive's registers: a bridge or adapter between the machine and the"
    " drive changes ATA commands"
)


@dataclass(frozen=True)
class AtaDrive:
    """IDENTIFY DEVICE data printed by `hdparm -I`."""

    text: str

    def enabled(self, feature: str) -> bool:
        """Return True if "Commands/features" marks `feature` as supported and enabled (a star)."""
        rows = (_FEATURE.match(line) for line in self.text.splitlines())
        return any(row is not None and row[1] == "*" and row[2] == feature for row in rows)


def identify(run: Runner, path: str) -> AtaDrive | str:
    """Read IDENTIFY DEVICE, or return the reason why it cannot be read."""
    answer = run(["hdparm", "-I", path])
    if not answer.ok:
        return answer.message
    if "ATA device" not in answer.stdout and "Commands/features" not in answer.stdout:
        return doubt(answer) or "hdparm cannot identify the drive"
    return AtaDrive(answer.stdout)


def doubt(answer: ToolResult) -> str:
    """Return the reason why hdparm's output is invalid, or "" if it is valid."""
    return NO_REGISTERS if _DOUBTFUL.search(answer.stderr) else ""


def write_cache_state(answer: ToolResult) -> bool | None:
    """Return the write cache state that `hdparm -W DEVICE` prints, or None if it is missing.

    hdparm reads words 82 and 85 of IDENTIFY DEVICE. The state is `False` for drives that have no
    volatile cache.
    """
    match = _CACHE.search(answer.stdout) if answer.ok else None
    return None if match is None else match[1] == "1"
