"""SCSI SANITIZE (block erase) and FORMAT UNIT through sg3-utils.

Both run in the background on the drive; REQUEST SENSE and TEST UNIT READY are asked until they end,
because `sg_sanitize` takes a failed sanitize for a finished one. The format of the drive is kept:
`sg_format` would remove the protection information unless it is told the present type, and would
change block size and count only if it were told to.

Sources: SBC-4 5.3 (FORMAT UNIT: FMTPINFO, PROTECTION FIELD USAGE; table 38), 5.21 (READ
CAPACITY(16): P_TYPE, PROT_EN, P_I_EXPONENT), 5.30 (SANITIZE), 4.12; SPC-5 annex F (codes 04h/04h
and 04h/1Bh: in progress; 31h/00h, 31h/01h, 31h/03h: failed); sg_format(8), sg_sanitize(8).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.base import PurgeHook, PurgeReport, unseen
from writecliff.engines.blockdev.scsi_commands import (
    ILLEGAL_REQUEST,
    REQUEST_SENSE,
    TEST_UNIT_READY,
    UNIT_ATTENTION,
    ScsiAnswer,
    Sense,
    parse_sense,
    read_capacity_16,
)
from writecliff.engines.blockdev.topology import System
from writecliff.errors import EngineError

_TIMEOUT_S = 24 * 3600.0
_POLL_S = 2.0
_NOT_YET = 0x04  # logical unit not ready: format, sanitize... in progress
_DAMAGED = 0x31  # medium format corrupted; format or sanitize command failed
_RESETS_IN_A_ROW = 5

Sleep = Callable[[float], None]


@dataclass(frozen=True)
class ScsiFormat:
    """Block size and count, type of protection information (0: none) and its exponent."""

    block_bytes: int
    blocks: int
    protection: int
    protection_exponent: int

    @property
    def options(self) -> list[str]:
        """Options of `sg_format` that keep the protection information (SBC-4 table 38)."""
        information = {0: 0, 1: 2}.get(self.protection, 3)
        usage = 1 if self.protection == 3 else 0
        return [
            f"--fmtpinfo={information}",
            f"--pfu={usage}",
            f"--pie={self.protection_exponent}",
        ]


def read_format(system: System, path: Path) -> ScsiFormat | None:
    """The drive's format; None if it does not tell."""
    data = read_capacity_16(system.scsi, path)
    if not data:
        return None
    enabled, kind = data[12] & 0x01, (data[12] >> 1) & 0x07
    return ScsiFormat(
        block_bytes=int.from_bytes(data[8:12], "big"),
        blocks=int.from_bytes(data[:8], "big") + 1,
        protection=kind + 1 if enabled else 0,
        protection_exponent=data[13] >> 4,
    )


def scsi_sanitize(
    system: System,
    path: str,
    *,
    crypto: bool = False,
    sleep: Sleep = time.sleep,
    on_progress: PurgeHook = unseen,
) -> PurgeReport | str:
    """Sanitize the drive; a string says why it was not done."""
    what = "--crypto" if crypto else "--block"
    started = system.run(["sg_sanitize", what, "--early", "--quick", path])
    if not started.ok:
        return started.message
    if failure := _await_end(system, Path(path), sleep, on_progress):
        return failure
    if crypto:
        note = "the drive has new keys; its blocks may still be mapped"
        return PurgeReport("SCSI sanitize (crypto erase)", False, note)
    return PurgeReport("SCSI sanitize (block erase)", True)


def scsi_format_unit(
    system: System, path: str, *, sleep: Sleep = time.sleep, on_progress: PurgeHook = unseen
) -> PurgeReport | str:
    """Format the drive as it is; a string says why it was not done.

    Raises `EngineError` if its format is another one afterwards.
    """
    before = read_format(system, Path(path))
    if before is None:
        return "the drive does not tell its format, so that it could not be kept"
    words = ["sg_format", "--format", "--quick", *before.options]
    started = system.run([*words, "--early", path])
    if not started.ok:
        return started.message
    if failure := _await_end(system, Path(path), sleep, on_progress):
        return failure
    after = read_format(system, Path(path))
    if after != before:
        raise EngineError(
            f"{path}: the format changed from {before} to {after}",
            hint="format the drive with the vendor's tool before it is tested",
        )
    return PurgeReport("SCSI format unit", True)


def _await_end(system: System, path: Path, sleep: Sleep, on_progress: PurgeHook) -> str:
    """Wait until the drive is ready again. Returns "" then, else why it will not be."""
    deadline = time.monotonic() + _TIMEOUT_S
    resets = 0
    while time.monotonic() < deadline:
        sense = _pending(system.scsi(path, REQUEST_SENSE, 252))
        if sense is None:
            answer = system.scsi(path, TEST_UNIT_READY, 0)
            if answer.ok:
                return ""
            if answer.sense is None:
                return answer.message
            sense = answer.sense
        if sense.key == UNIT_ATTENTION and resets < _RESETS_IN_A_ROW:
            resets += 1
            continue
        if sense.asc != _NOT_YET:
            failed = " (the erase failed)" if sense.asc == _DAMAGED else ""
            return f"the drive reports {sense}{failed}"
        if sense.progress is not None:
            on_progress(sense.progress)
        sleep(_POLL_S)
    return f"did not end in {_TIMEOUT_S / 3600:g} h"


def _pending(answer: ScsiAnswer) -> Sense | None:
    """What the parameter data of REQUEST SENSE says is going on or wrong; None if nothing.

    NO SENSE with 04h is a sanitize in progress too (SBC-4 4.12.3).
    """
    sense = parse_sense(answer.data) if answer.ok else answer.sense
    if sense is None or sense.key == ILLEGAL_REQUEST:  # the drive has no REQUEST SENSE
        return None
    return sense if sense.key or sense.asc == _NOT_YET else None
