"""ATA SANITIZE DEVICE through hdparm: block erase, or crypto scramble as a weaker substitute.

Needs no password, goes on after a power cycle, and works where the firmware of the machine has
frozen ATA security, which most do (ACS-4 4.18: the security feature set blocks it only while the
drive is locked). The drive works on in the background; `--sanitize-status` is asked until it ends.

Formats are those of hdparm 9.65 (`hdparm.c`: `sanitize_normal_output`, `sanitize_error_output`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from writecliff.engines.base import PurgeHook, PurgeReport, unseen
from writecliff.engines.blockdev.hdparm import doubt, identify
from writecliff.engines.blockdev.tools import Runner, ToolResult

State = Literal["idle", "frozen", "in process", "failed"]
BLOCK_ERASE = ("--sanitize-block-erase", "BLOCK_ERASE_EXT command")
CRYPTO_SCRAMBLE = ("--sanitize-crypto-scramble", "CRYPTO_SCRAMBLE_EXT command")

_STATE = re.compile(r"State:\s+SD(\d)")
_PROGRESS = re.compile(r"Progress:\s+0x[0-9a-fA-F]+ \((\d+)%\)")
_REASON = re.compile(r"SANITIZE device error reason: (.+)")
_SUCCEEDED = "Last Sanitize Operation Completed Without Error"
_FAILED = "SD3 Sanitize Operation Failed"
_STATES: dict[str, State] = {"0": "idle", "1": "frozen", "2": "in process", "3": "failed"}
_TIMEOUT_S = 12 * 3600.0
_POLL_S = 2.0

Sleep = Callable[[float], None]


@dataclass(frozen=True)
class SanitizeStatus:
    """SANITIZE STATUS EXT (ACS-4 7.36): `succeeded` is of the last operation that ended."""

    state: State
    succeeded: bool = False
    percent: int | None = None


def parse_status(answer: ToolResult) -> SanitizeStatus | str:
    """The output of `hdparm --sanitize-status`; a string says why it is none."""
    if _FAILED in answer.stderr:
        return SanitizeStatus("failed")
    if not answer.ok:
        return reason_of(answer)
    if found := doubt(answer):
        return found
    match = _STATE.search(answer.stdout)
    if match is None or match[1] not in _STATES:
        return "hdparm prints no sanitize state"
    progress = _PROGRESS.search(answer.stdout)
    return SanitizeStatus(
        _STATES[match[1]], _SUCCEEDED in answer.stdout, int(progress[1]) if progress else None
    )


def reason_of(answer: ToolResult) -> str:
    """Why hdparm's sanitize command failed, in the drive's words where it gives any."""
    match = _REASON.search(answer.stderr)
    return match[1].strip().lower() if match else answer.message


def ata_sanitize(
    run: Runner,
    path: str,
    kind: tuple[str, str] = BLOCK_ERASE,
    *,
    sleep: Sleep = time.sleep,
    on_progress: PurgeHook = unseen,
) -> PurgeReport | str:
    """Sanitize the whole drive and wait until it is done; a string says why it was not done.

    An operation that an interrupted run has left behind is waited for first: until it ends, the
    drive refuses everything else.
    """
    option, feature = kind
    drive = identify(run, path)
    if isinstance(drive, str):
        return drive
    if not drive.enabled(feature):
        return "not supported by the drive"
    before = _settled(run, path, sleep, on_progress)
    if isinstance(before, str):
        return before
    if before.state == "frozen":
        return "sanitize is frozen (plug the drive in again, or power the machine off and on)"
    started = run(["hdparm", "--yes-i-know-what-i-am-doing", option, path])
    if not started.ok:
        return f"starting: {reason_of(started)}"
    ended = _settled(run, path, sleep, on_progress)
    if isinstance(ended, str):
        return ended
    if ended.state == "failed":
        return "the drive reports that it failed"
    if not ended.succeeded:
        return f"the drive is {ended.state} again and does not say that it succeeded"
    if kind == CRYPTO_SCRAMBLE:
        note = "the drive has new keys; its blocks may still be mapped"
        return PurgeReport("ATA sanitize (crypto scramble)", False, note)
    return PurgeReport("ATA sanitize (block erase)", True)


def _settled(run: Runner, path: str, sleep: Sleep, on_progress: PurgeHook) -> SanitizeStatus | str:
    """The status once no operation is in process."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        status = parse_status(run(["hdparm", "--sanitize-status", path]))
        if isinstance(status, str) or status.state != "in process":
            return status
        if time.monotonic() >= deadline:
            return f"did not end in {_TIMEOUT_S / 3600:g} h ({status.percent} % done)"
        if status.percent is not None:
            on_progress(status.percent / 100)
        sleep(_POLL_S)
