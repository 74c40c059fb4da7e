"""Drives of the guest as seen by its kernel, and hot-plugging of further drives."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.guest.qmp import Qmp

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive under test. `kind` is nvme, sata, scsi or virtio; `identifier` is QEMU's device ID, or ""."""

    path: str
    serial: str
    kind: str
    identifier: str = ""

    @property
    def name(self) -> str:
        """Kernel name, such as nvme0n1."""
        return Path(self.path).name

    @property
    def controller(self) -> str:
        """Controller node of an NVMe drive, such as /dev/nvme0."""
        return self.path.rpartition("n")[0]

    @property
    def size_bytes(self) -> int:
        return int(_text(Path("/sys/block", self.name, "size"))) * 512


_IDENTIFIERS = {"QPLAIN01": "nvme", "QFDP0001": "nvme_fdp", "QSATA001": "sata"}


def drives_by_serial() -> dict[str, Drive]:
    """Return all disks with a serial number, except the hidden paths of a multipath drive."""
    drives = {}
    for disk in _shown():
        if serial := _serial(disk):
            identifier = _IDENTIFIERS.get(serial, "")
            drives[serial] = Drive(f"/dev/{disk.name}", serial, _kind(disk), identifier)
    return drives


def _shown() -> list[Path]:
    return [disk for disk in Path("/sys/block").iterdir() if _text(disk / "hidden") != "1"]


def namespaces_of(serial: str) -> dict[int, Drive]:
    """Return the attached namespaces of an NVMe drive by NSID."""
    disks = [disk for disk in _shown() if _serial(disk) == serial]
    return {int(_text(disk / "nsid")): Drive(f"/dev/{disk.name}", serial, "nvme") for disk in disks}


def _kind(disk: Path) -> str:
    if disk.name.startswith("nvme"):
        return "nvme"
    if disk.name.startswith("vd"):
        return "virtio"
    return "sata" if _text(disk / "device/vendor") == "ATA" else "scsi"


def _serial(disk: Path) -> str:
    page = disk / "device/vpd_pg80"
    if page.exists():
        return page.read_bytes()[4:].decode(errors="replace").strip()
    return _text(disk / "device/serial") or _text(disk / "serial")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@contextmanager
def hot_plug(qmp: Qmp) -> Iterator[Callable[..., Drive]]:
    """Yield a function that hot-plugs a drive; all plugged drives are removed at the end."""
    images = Path(os.environ["WRITECLIFF_GUEST_IMAGES"])
    plugged: list[str] = []

    def plug(
        serial: str, size_bytes: int = 64 << 20, driver: str = "nvme", **properties: Any
    ) -> Drive:
        slot = f"free{len(plugged)}"
        node, device = f"node_{serial}", f"device_{serial}"
        file = {"driver": "file", "filename": str(images / f"{serial}.img")}
        create(qmp, {**file, "size": size_bytes})
        qmp.execute("blockdev-add", **{"driver": "raw", "node-name": node, "file": file})
        wanted = {"id": device, "bus": f"slot_{slot}", "serial": serial, "drive": node}
        qmp.execute("device_add", driver=driver, **wanted, **properties)
        plugged.append(serial)
        deadline = time.monotonic() + _PATIENCE_S
        while serial not in drives_by_serial():
            assert time.monotonic() < deadline, (
                f"the kernel does not show the hot-plugged drive {serial}"
            )
            time.sleep(0.1)
        return replace(drives_by_serial()[serial], identifier=device)

    try:
        yield plug
    finally:
        for serial in plugged:
            pull(qmp, f"device_{serial}")
            qmp.execute("blockdev-del", **{"node-name": f"node_{serial}"})
            (images / f"{serial}.img").unlink(missing_ok=True)


def create(qmp: Qmp, options: dict[str, Any]) -> None:
    """Make QEMU create an image file on its host."""
    job = f"create_{time.monotonic_ns()}"
    qmp.execute("blockdev-create", **{"job-id": job, "options": options})
    qmp.wait_event("JOB_STATUS_CHANGE", id=job, status="concluded")
    (ended,) = [entry for entry in qmp.execute("query-jobs") if entry["id"] == job]
    qmp.execute("job-dismiss", id=job)
    assert "error" not in ended, ended["error"]


def pull(qmp: Qmp, identifier: str) -> None:
    """Remove a drive from its slot and wait until it is gone; do nothing if it already is."""
    names = {entry["name"] for entry in qmp.execute("qom-list", path="/machine/peripheral")}
    if identifier in names:
        qmp.execute("device_del", id=identifier)
        qmp.wait_event("DEVICE_DELETED", device=identifier)
