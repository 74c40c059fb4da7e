"""Format NVM with an erase (Base 2.1, 5.1.10), which keeps the layout of the namespace.

The layout (LBA format, metadata, protection information) is read beforehand and named in full:
nvme-cli takes 0 for what is not named, and LBA format 0 on drives that format all namespaces at
once (FNA bit 0), which may change the size of a sector. Afterwards it is read again and compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.pages import Controller, Namespace
from writecliff.engines.blockdev.topology import read_int
from writecliff.errors import EngineError

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
