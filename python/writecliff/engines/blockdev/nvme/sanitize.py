"""Sanitize (Base 2.1, 5.1.22 and 8.1.24): block erase, else crypto erase, else overwrite.

The command returns at once; its end is read from the Sanitize Status log (81h) as bytes, because
the JSON of nvme-cli differs between versions. A sanitize goes on when this program is stopped, and
even across a power cycle: until it has ended the drive refuses most commands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from writecliff.engines.base import PurgeHook, PurgeReport
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.pages import SANITIZE_BYTES, Controller, SanitizeStatus
from writecliff.errors import EngineError

_LOG = 0x81
_CRYPTO_ERASE, _BLOCK_ERASE, _OVERWRITE = 1 << 0, 1 << 1, 1 << 2  # SANICAP
_EXIT_FAILURE_MODE = 1  # SANACT
_POLL_S = 2.0
# A drive that is busy erasing may fail to answer now and then, but not for this long.
_SILENCE_S = 120.0
# No progress for this long, and longer than the drive's own estimate: it has stopped.
_STALL_S = 1800.0
_ESTIMATE_FACTOR = 3.0


def sanitize(drive: NvmeDrive, controller: Controller, on_progress: PurgeHook) -> PurgeReport | str:
    """Sanitize the whole subsystem; a string says why that was not done.

    Raises `EngineError` if one was begun and its end cannot be seen: the drive is then busy.
    """
    reasons: list[str] = []
    for action, name in _actions(controller):
        words = ["sanitize", drive.node, f"--sanact={action}", "--ause"]
        words += ["--owpass=1"] * (name == "overwrite")
        try:
            drive.command(*words)
        except Refused as reason:
            reasons.append(f"{name}: {reason}")
            continue
        if _wait(drive, action, on_progress):
            return PurgeReport(f"NVMe sanitize ({name})", True)
        reasons.append(f"{name}: the drive reports that it failed{_left_failure_mode(drive)}")
    return "; ".join(reasons) or "not supported"


def _actions(controller: Controller) -> Iterator[tuple[int, str]]:
    """Sanitize Actions that the drive has, best first: overwriting wears the flash."""
    for bit, action, name in (
        (_BLOCK_ERASE, 2, "block erase"),
        (_CRYPTO_ERASE, 4, "crypto erase"),
        (_OVERWRITE, 3, "overwrite"),
    ):
        if controller.sanitize & bit:
            yield action, name


def _wait(drive: NvmeDrive, action: int, on_progress: PurgeHook) -> bool:
    """Wait for the end; returns whether it succeeded."""
    heard = moved = time.monotonic()
    last: SanitizeStatus | None = None
    while True:
        now = time.monotonic()
        try:
            status = SanitizeStatus.of(drive.log(_LOG, SANITIZE_BYTES))
        except Refused as reason:
            if now - heard > _SILENCE_S:
                raise EngineError(
                    f"{drive.node}: a sanitize was begun and the drive does not answer: {reason}",
                    hint=_wait_hint(drive),
                ) from reason
            time.sleep(_POLL_S)
            continue
        heard = now
        if status.state != SanitizeStatus.RUNNING:
            done = (SanitizeStatus.DONE, SanitizeStatus.DONE_WITHOUT_DEALLOCATION)
            return status.state in done and status.action in (action, 0)  # 0: not kept
        if last is None or status.progress != last.progress:
            last, moved = status, now
            on_progress(status.progress)
        patience = max(_STALL_S, _ESTIMATE_FACTOR * (status.estimates_s.get(action) or 0))
        if now - moved > patience:
            raise EngineError(
                f"{drive.node}: the sanitize stands still at {100 * status.progress:.0f} % since"
                f" {(now - moved) / 60:.0f} minutes",
                hint=_wait_hint(drive),
            )
        time.sleep(_POLL_S)


def _left_failure_mode(drive: NvmeDrive) -> str:
    """A failed sanitize leaves the drive refusing commands; `--ause` allows to leave that mode."""
    try:
        drive.command("sanitize", drive.node, f"--sanact={_EXIT_FAILURE_MODE}")
    except Refused as reason:
        return f" (it stays in failure mode: {reason})"
    return ""


def _wait_hint(drive: NvmeDrive) -> str:
    return f"`nvme sanitize-log {drive.node}` shows when it has ended; then run again"
