"""NVMe format (user data erase) and sanitize (block erase) through nvme-cli.

The controller's capabilities decide whether either may be used. Format is not used where the
controller applies it to all namespaces, nor sanitize (which always covers the whole subsystem)
where there is more than one namespace: both would erase namespaces that the user did not name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev.topology import BlockDevice, System

_OACS_FORMAT = 1 << 1
_FNA_FORMAT_ALL, _FNA_ERASE_ALL = 1 << 0, 1 << 1
_SANICAP_BLOCK_ERASE = 1 << 1
_SANITIZE_STATUS = 0b111
_SANITIZE_DONE, _SANITIZE_FAILED = (1, 4), (3,)
_TIMEOUT_S = 6 * 3600.0
_POLL_S = 2.0


def nvme_erase(system: System, disk: BlockDevice, path: str) -> PurgeReport | str:
    """Erase the namespace; a string says why it was not done."""
    answer = system.run(["nvme", "id-ctrl", path, "-o", "json"])
    if not answer.ok:
        return answer.message
    controller = answer.json()
    alone = _namespaces(disk, controller) == 1
    formatted = _format(system, path, controller, alone)
    if isinstance(formatted, PurgeReport):
        return formatted
    sanitized = _sanitize(system, disk, path, controller, alone)
    if isinstance(sanitized, PurgeReport):
        return sanitized
    return f"format: {formatted}; sanitize: {sanitized}"


def _namespaces(disk: BlockDevice, controller: Mapping[str, Any]) -> int:
    """Namespaces of the controller: those the kernel shows, or its limit if it shows none."""
    shown = [
        entry
        for entry in (disk.directory / "device").glob("nvme*n*")
        if (entry / "queue").exists() or (entry / "nsid").exists()
    ]
    return len(shown) or int(controller.get("nn", 0))


def _format(
    system: System, path: str, controller: Mapping[str, Any], alone: bool
) -> PurgeReport | str:
    if not int(controller.get("oacs", 0)) & _OACS_FORMAT:
        return "not supported"
    if int(controller.get("fna", 0)) & (_FNA_FORMAT_ALL | _FNA_ERASE_ALL) and not alone:
        return "would erase the controller's other namespaces too"
    done = system.run(["nvme", "format", path, "--ses=1", "--force"], timeout_s=_TIMEOUT_S)
    return PurgeReport("NVMe format (user data erase)", True) if done.ok else done.message


def _sanitize(
    system: System, disk: BlockDevice, path: str, controller: Mapping[str, Any], alone: bool
) -> PurgeReport | str:
    if not int(controller.get("sanicap", 0)) & _SANICAP_BLOCK_ERASE:
        return "block erase not supported"
    if not alone:
        return "would erase the subsystem's other namespaces too"
    started = system.run(["nvme", "sanitize", path, "--sanact=2"])  # 2: block erase
    if not started.ok:
        return started.message
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        status = _sanitize_status(system, path)
        if status in _SANITIZE_DONE:
            return PurgeReport("NVMe sanitize (block erase)", True)
        if status in _SANITIZE_FAILED:
            return "the drive reports that it failed"
        time.sleep(_POLL_S)
    return "did not end in time"


def _sanitize_status(system: System, path: str) -> int | None:
    """SSTAT bits 2:0 of log 81h; the JSON of nvme-cli nests it under the device or not."""
    log: Mapping[str, Any] = system.run(["nvme", "sanitize-log", path, "-o", "json"]).json()
    if "sstat" not in log:
        log = next((value for value in log.values() if isinstance(value, dict)), {})
    status = log.get("sstat")
    if isinstance(status, dict):
        status = status.get("status")
    if isinstance(status, str):
        status = int(status, 0)
    return status & _SANITIZE_STATUS if isinstance(status, int) else None
