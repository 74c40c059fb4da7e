"""Erases an NVMe namespace: by format, else by sanitize.

Neither is used where it would reach beyond the target. A format covers all namespaces of the
controller where FNA bit 0 or 1 says so, a sanitize always those of the whole subsystem: they are
used only if the target is the subsystem's only namespace, whether attached here or not.
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
    """Erase the namespace; a string says why it was not done.

    Raises `EngineError` if the drive was changed in a way that a test cannot go on with.
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
    """Namespaces of the subsystem beside the target, as text; "" if there is none.

    What cannot be read counts as others.
    """
    found = set(shown_namespaces(drive.system, drive.disk))
    try:
        found |= set(drive.namespace_list(allocated=False))
        if controller.manages_namespaces or controller.may_have_others:
            found |= set(drive.namespace_list(allocated=True))
    except Refused:
        if controller.namespaces > 1 or controller.may_have_others:
            return "other namespaces (the drive does not list them)"
    found.discard(drive.nsid)
    if not found:
        return ""
    named = ", ".join(map(str, sorted(found)))
    return f"namespace{'s' * (len(found) > 1)} {named} of the same drive"


# -- format ----------------------------------------------------------------------------------------

# Format NVM with an erase (Base 2.1, 5.1.10), which keeps the layout of the namespace.
#
# The layout (LBA format, metadata, protection information) is read beforehand and passed in full:
# nvme-cli uses 0 for omitted values, and LBA format 0 on drives that format all namespaces at once
# (FNA bit 0), which may change the sector size. Afterwards the layout is read again and compared.

# Of the command itself: large drives erase for hours, and nvme-cli gives up after 10 minutes.
_TIMEOUT_S = 6 * 3600
_USER_DATA, _CRYPTO = 1, 2  # SES
_RESCAN_S = 10.0


def format_namespace(drive: NvmeDrive, controller: Controller) -> PurgeReport | str:
    """Erase a namespace by formatting it; a string says why that was not done.

    Raises `EngineError` if the namespace has another layout or size afterwards.
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
    """Secure Erase Settings in the order in which they are tried. FNA bit 2: with crypto erase."""
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
        "--force",  # else it waits ten seconds for a Ctrl-C
    ]


def _require_same(drive: NvmeDrive, before: Namespace) -> None:
    path = drive.disk.node(drive.system)
    try:
        drive.command("ns-rescan", drive.node)
        after = drive.namespace(again=True)
    except Refused as reason:
        raise EngineError(f"{path}: formatted, but does not answer since: {reason}") from reason
    if after.layout != before.layout:
        raise EngineError(
            f"{path}: the format changed {before.layout} to {after.layout}",
            hint=f"nvme format {path} --lbaf={before.layout.lba_format} brings it back",
        )
    if after.blocks != before.blocks:
        raise EngineError(
            f"{path}: the format changed its capacity from {before.size_bytes} to"
            f" {after.size_bytes} bytes",
            hint="start the test anew: its plan is for the former capacity",
        )
    _wait_for_kernel(drive, before)


def _wait_for_kernel(drive: NvmeDrive, expected: Namespace) -> None:
    """The kernel reads the namespace again after a format; until then its size may be 0."""
    queue = drive.disk.directory / "queue/logical_block_size"
    until = time.monotonic() + _RESCAN_S
    while True:
        sector, size = read_int(queue), drive.disk.size_bytes
        if sector in (None, expected.layout.data_bytes) and size == expected.size_bytes:
            return
        if time.monotonic() > until:
            raise EngineError(
                f"{drive.disk.node(drive.system)}: after the format the kernel sees {size} bytes in"
                f" sectors of {sector}, not {expected.size_bytes} in {expected.layout.data_bytes}"
            )
        time.sleep(0.1)


# -- sanitize --------------------------------------------------------------------------------------

# Sanitize (Base 2.1, 5.1.22 and 8.1.24): block erase, else crypto erase, else overwrite.
#
# The command returns at once. Completion is read from the Sanitize Status log (81h) as bytes,
# because the JSON of nvme-cli differs between versions. A sanitize continues after this program
# stops, and across power cycles. Until it completes, the drive rejects most commands.

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
