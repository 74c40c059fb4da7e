"""What hdparm says of an ATA drive, and whether its answer can be believed.

hdparm reads the drive's registers out of the sense data of an ATA PASS-THROUGH command. Where a
bridge returns none it prints "SG_IO: bad/missing sense data" (or nothing at all) and takes zeros
for the registers: a sanitize status of zeros reads "SD0 Sanitize Idle". Such answers are refused.
Sources: hdparm 9.65, `sgio.c` (`sg16`), `hdparm.c` and `identify.c`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from writecliff.engines.blockdev.tools import Runner, ToolResult

_DOUBTFUL = re.compile(r"^SG_IO: .*(?:bad|missing|questionable).* sense data.*$", re.MULTILINE)
_FEATURE = re.compile(r"^\s+(\*?)\s*(\S.*?)\s*$")
_CACHE = re.compile(r"write-caching\s*=\s*(\d|not supported)")
NO_REGISTERS = (
    "hdparm gets none of the drive's registers back: something between the machine and the drive"
    " does not pass ATA commands on unchanged"
)


@dataclass(frozen=True)
class AtaDrive:
    """IDENTIFY DEVICE as `hdparm -I` prints it."""

    text: str

    def enabled(self, feature: str) -> bool:
        """Whether the list "Commands/features" has `feature` with a star: supported and on."""
        rows = (_FEATURE.match(line) for line in self.text.splitlines())
        return any(row is not None and row[1] == "*" and row[2] == feature for row in rows)


def identify(run: Runner, path: str) -> AtaDrive | str:
    """Ask a drive what it is; a string says why it does not tell."""
    answer = run(["hdparm", "-I", path])
    if not answer.ok:
        return answer.message
    if "ATA device" not in answer.stdout and "Commands/features" not in answer.stdout:
        return doubt(answer) or "hdparm cannot identify the drive"
    return AtaDrive(answer.stdout)


def doubt(answer: ToolResult) -> str:
    """Why an answer of hdparm cannot be believed; "" if it can."""
    return NO_REGISTERS if _DOUBTFUL.search(answer.stderr) else ""


def write_cache_state(answer: ToolResult) -> bool | None:
    """What `hdparm -W DEVICE` read from IDENTIFY DEVICE words 82 and 85; None if it read nothing.

    A drive without a volatile write cache has none that could be on.
    """
    match = _CACHE.search(answer.stdout) if answer.ok else None
    return None if match is None else match[1] == "1"
