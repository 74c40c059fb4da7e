"""NVMe namespace erase by format or, if the format fails, by sanitize.

Commands that would affect data outside the target are not used. A format covers all namespaces of
the controller if FNA bit 0 or 1 is set. A sanitize covers all namespaces of the subsystem. Such a
command is used only if the target is the subsystem's only namespace, including namespaces that are
not attached to this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from writecliff.engines.base import PurgeHook, PurgeReport, unseen
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.pages import (
    SANITIZE_BYTES,
    Controller,
    Namespace,
    SanitizeStatus,
)
from writecliff.engines.blockdev.nvme.topology import shown_namespaces
from writecliff.engines.blockdev.topology import BlockDevice, System, read_int
from writecliff.errors import EngineError


def nvme_erase(
    system: System, disk: BlockDevice, on_progress: PurgeHook = unseen
) -> PurgeReport | str:
    """Erase the namespace, or return the reason why it was not erased.

    Raises:
        EngineError: If the erase left the drive in a state that prevents the test from continuing.
    """
    drive = NvmeDrive(system, disk)
    try:
        controller = drive.controller()
    except Refused as reason:
        return str(reason)
    others = other_namespaces(drive, controller)
    if controller.formats_all and others:
        formatted: PurgeReport | str = f"would erase {others} too"
    else:
        formatted = format_namespace(drive, controller)
    if isinstance(formatted, PurgeReport):
        return formatted
    sanitized = f"would erase {others} too" if others else sanitize(drive, controller, on_progress)
    if isinstance(sanitized, PurgeReport):
        note = "; ".join(part for part in (f"format: {formatted}", sanitized.note) if part)
        return PurgeReport(sanitized.method, sanitized.conformant, note)
    return f"format: {formatted}; sanitize: {sanitized}"


def other_namespaces(drive: NvmeDrive, controller: Controller) -> str:
    """Return the subsystem's other namespaces as text, or "" if it has none.

    If the list cannot be read, the function assumes that other namespaces exist.
    """
    namespaces = set(shown_namespaces(drive.system, drive.disk))
    try:
        namespaces |= set(drive.namespace_list(allocated=False))
        if controller.manages_namespaces or controller.may_have_others:
            namespaces |= set(drive.namespace_list(allocated=True))
    except Refused:
        if controller.namespaces > 1 or controller.may_have_others:
            return "other namespaces (the drive does not list them)"
    namespaces.discard(drive.nsid)
    if not namespaces:
        return ""
    named = ", ".join(map(str, sorted(namespaces)))
    return f"namespace{'s' * (len(namespaces) > 1)} {named} of the same drive"


# -- format ----------------------------------------------------------------------------------------

# Format NVM with an erase setting (Base 2.1, 5.1.10), preserving the namespace layout.
#
# The layout (LBA format, metadata, protection information) is read beforehand and passed in full,
# because nvme-cli sets omitted values to 0. On drives that format all namespaces at once, nvme-cli
# selects LBA format 0 (FNA bit 0), which may change the sector size. After the format, the layout
# is read again and compared with the previous layout.

# Command timeout. Large drives erase for hours, but nvme-cli's default timeout is 10 minutes.
_TIMEOUT_S = 6 * 3600
_USER_DATA, _CRYPTO = 1, 2  # Secure Erase Settings (SES).
_RESCAN_S = 10.0


def format_namespace(drive: NvmeDrive, controller: Controller) -> PurgeReport | str:
    """Erase a namespace by formatting it, or return the reason for a failure.

    Raises:
        EngineError: If the format changed the namespace's layout or size.
    """
    if not controller.can_format:
        return "not supported"
    try:
        before = drive.namespace()
    except Refused as reason:
        return f"its layout cannot be read: {reason}"
    reasons: list[str] = []
    for setting, name in _settings(controller):
        try:
            drive.command(*_words(drive, before, setting), timeout_s=_TIMEOUT_S + 60)
        except Refused as reason:
            reasons.append(f"{name}: {reason}")
            continue
        _require_same(drive, before)
        return PurgeReport(f"NVMe format ({name})", True, f"kept {before.layout}")
    return "; ".join(reasons)


def _settings(controller: Controller) -> Iterator[tuple[int, str]]:
    """Yield Secure Erase Settings by preference, including crypto erase if FNA bit 2 is set."""
    yield _USER_DATA, "user data erase"
    if controller.formats_with_crypto:
        yield _CRYPTO, "cryptographic erase"


def _words(drive: NvmeDrive, before: Namespace, setting: int) -> list[str]:
    layout = before.layout
    return [
        "format",
        drive.node,
        f"--namespace-id={drive.nsid}",
        f"--lbaf={layout.lba_format}",
        f"--ms={int(layout.metadata_inline)}",
        f"--pi={layout.protection}",
        f"--pil={int(layout.protection_first)}",
        f"--ses={setting}",
        f"--timeout={1000 * _TIMEOUT_S}",
        "--force",  # nvme-cli would otherwise wait ten seconds for a Ctrl-C.
    ]


def _require_same(drive: NvmeDrive, before: Namespace) -> None:
    path = drive.disk.node(drive.system)
    try:
        drive.command("ns-rescan", drive.node)
        after = drive.namespace(again=True)
    except Refused as reason:
        raise EngineError(f"{path} does not respond after the format: {reason}") from reason
    if after.layout != before.layout:
        raise EngineError(
            f"{path}: the format changed the layout from {before.layout} to {after.layout}",
            hint=f"to restore the layout, run nvme format {path} --lbaf={before.layout.lba_format}",
        )
    if after.blocks != before.blocks:
        raise EngineError(
            f"{path}: the format changed the capacity from {before.size_bytes} to "
            f"{after.size_bytes} bytes",
            hint="start the test again, because its plan is for the previous capacity",
        )
    _wait_for_kernel(drive, before)


def _wait_for_kernel(drive: NvmeDrive, expected: Namespace) -> None:
    """Wait until the kernel has re-read the formatted namespace, whose size may be 0 at first."""
    queue = drive.disk.directory / "queue/logical_block_size"
    until = time.monotonic() + _RESCAN_S
    while True:
        sector, size = read_int(queue), drive.disk.size_bytes
        if sector in (None, expected.layout.data_bytes) and size == expected.size_bytes:
            return
        if time.monotonic() > until:
            raise EngineError(
                f"{drive.disk.node(drive.system)}: after the format, the kernel reports {size} "
                f"bytes in sectors of {sector} instead of {expected.size_bytes} in "
                f"{expected.layout.data_bytes}"
            )
        time.sleep(0.1)


# -- sanitize --------------------------------------------------------------------------------------

# Sanitize methods in order of preference (Base 2.1, 5.1.22 and 8.1.24): block erase, crypto erase,
# overwrite.
#
# The Sanitize command returns immediately. The code reads the Sanitize Status log (81h) as bytes,
# because nvme-cli's JSON output differs between versions. A sanitize operation continues after this
# program stops, and across power cycles. The drive rejects most commands until the sanitize
# completes.

_LOG = 0x81
_CRYPTO_ERASE, _BLOCK_ERASE, _OVERWRITE = 1 << 0, 1 << 1, 1 << 2  # Sanitize Capabilities (SANICAP).
_EXIT_FAILURE_MODE = 1  # Sanitize Action (SANACT).
_POLL_S = 2.0
# Maximum time without a response; a drive that is erasing may briefly fail to respond.
_SILENCE_S = 120.0
# A sanitize counts as stalled if it makes no progress for longer than this time and the drive's own
# estimate.
_STALL_S = 1800.0
_ESTIMATE_FACTOR = 3.0


def sanitize(drive: NvmeDrive, controller: Controller, on_progress: PurgeHook) -> PurgeReport | str:
    """Sanitize the whole subsystem, or return the reason for a failure.

    Raises:
        EngineError: If a sanitize was started but its completion cannot be detected.
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
    """Yield the drive's Sanitize Actions in order of preference, with overwrite last."""
    for bit, action, name in (
        (_BLOCK_ERASE, 2, "block erase"),
        (_CRYPTO_ERASE, 4, "crypto erase"),
        (_OVERWRITE, 3, "overwrite"),
    ):
        if controller.sanitize & bit:
            yield action, name


def _wait(drive: NvmeDrive, action: int, on_progress: PurgeHook) -> bool:
    """Wait for completion, and return True if the sanitize succeeded."""
    heard = moved = time.monotonic()
    last: SanitizeStatus | None = None
    while True:
        now = time.monotonic()
        try:
            status = SanitizeStatus.of(drive.log(_LOG, SANITIZE_BYTES))
        except Refused as reason:
            if now - heard > _SILENCE_S:
                raise EngineError(
                    f"{drive.node}: the drive stopped responding during a sanitize: {reason}",
                    hint=_wait_hint(drive),
                ) from reason
            time.sleep(_POLL_S)
            continue
        heard = now
        if status.state != SanitizeStatus.RUNNING:
            done = (SanitizeStatus.DONE, SanitizeStatus.DONE_WITHOUT_DEALLOCATION)
            # The action is 0 if the drive does not report it.
            return status.state in done and status.action in (action, 0)
        if last is None or status.progress != last.progress:
            last, moved = status, now
            on_progress(status.progress)
        limit_s = max(_STALL_S, _ESTIMATE_FACTOR * (status.estimates_s.get(action) or 0))
        if now - moved > limit_s:
            raise EngineError(
                f"{drive.node}: the sanitize stalled at {100 * status.progress:.0f} %, without "
                f"progress for {(now - moved) / 60:.0f} minutes",
                hint=_wait_hint(drive),
            )
        time.sleep(_POLL_S)


def _left_failure_mode(drive: NvmeDrive) -> str:
    """Exit the failure mode after a sanitize that failed with `--ause`, and return a note."""
    try:
        drive.command("sanitize", drive.node, f"--sanact={_EXIT_FAILURE_MODE}")
    except Refused as reason:
        return f" (it stays in failure mode: {reason})"
    return ""


def _wait_hint(drive: NvmeDrive) -> str:
    return f"`nvme sanitize-log {drive.node}` shows when it has ended; then run again"
