"""Output of hdparm for ATA drives, with a check of its validity.

hdparm takes the drive's registers from the sense data of an ATA PASS-THROUGH command. If a bridge
returns none, it prints "SG_IO: bad/missing sense data" (or nothing) and uses zeros as registers: a
sanitize status of zeros reads "SD0 Sanitize Idle". This module rejects such output. Sources: hdparm
9.65, `sgio.c` (`sg16`), `hdparm.c` and `identify.c`.
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
    """IDENTIFY DEVICE as `hdparm -I` prints it."""

    text: str

    def enabled(self, feature: str) -> bool:
        """Return True if "Commands/features" lists `feature` with a star: supported and on."""
        rows = (_FEATURE.match(line) for line in self.text.splitlines())
        return any(row is not None and row[1] == "*" and row[2] == feature for row in rows)


def identify(run: Runner, path: str) -> AtaDrive | str:
    """Read IDENTIFY DEVICE; a string is the reason why it cannot be read."""
    answer = run(["hdparm", "-I", path])
    if not answer.ok:
        return answer.message
    if "ATA device" not in answer.stdout and "Commands/features" not in answer.stdout:
        return doubt(answer) or "hdparm cannot identify the drive"
    return AtaDrive(answer.stdout)


def doubt(answer: ToolResult) -> str:
    """Return the reason why hdparm's output is not valid; "" if it is."""
    return NO_REGISTERS if _DOUBTFUL.search(answer.stderr) else ""


def write_cache_state(answer: ToolResult) -> bool | None:
    """Return the write cache state of `hdparm -W DEVICE`; None if it printed none.

    hdparm reads words 82 and 85 of IDENTIFY DEVICE. False for drives without a volatile cache.
    """
    match = _CACHE.search(answer.stdout) if answer.ok else None
    return None if match is None else match[1] == "1"
