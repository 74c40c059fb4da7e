"""Erases an NVMe namespace: by format, else by sanitize.

Neither is used where it would reach beyond the target. A format covers all namespaces of the
controller where FNA bit 0 or 1 says so, a sanitize always those of the whole subsystem: they are
used only if the target is the subsystem's only namespace, whether attached here or not.
"""

from __future__ import annotations

from writecliff.engines.base import PurgeHook, PurgeReport, unseen
from writecliff.engines.blockdev.nvme.drive import NvmeDrive, Refused
from writecliff.engines.blockdev.nvme.format import format_namespace
from writecliff.engines.blockdev.nvme.pages import Controller
from writecliff.engines.blockdev.nvme.sanitize import sanitize
from writecliff.engines.blockdev.nvme.topology import shown_namespaces
from writecliff.engines.blockdev.topology import BlockDevice, System


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
