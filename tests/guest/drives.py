"""Drives of every guest, and free slots for drives that a test plugs in.

Tests identify drives by serial number. Images are sparse files that QEMU never flushes.
"""

from __future__ import annotations

from pathlib import Path

SIZE_BYTES = 128 << 20
FREE_SLOTS = 4

# Modules with options to load in the guest before its root is mounted. Each module may be built in.
MODULES = {
    **dict.fromkeys(("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_console"), ""),
    "configfs": "",
    "nvme": "",
    "ahci": "",
    "sd_mod": "",
    "sg": "",
    # A SCSI drive with five permanent streams and UNMAP, backed by the guest's memory.
    "scsi_debug": f"dev_size_mb={SIZE_BYTES >> 20} lbpu=1 lbprz=1 delay=0 max_queue=64",
}


def options(images: Path) -> list[str]:
    """Return QEMU's options for the drives; create missing images in folder `images`."""
    slots = ["nvme", "nvme_fdp", *(f"free{index}" for index in range(FREE_SLOTS)), "nvme_pair"]
    words = []
    for number, name in enumerate(slots, 1):
        words += ["-device", f"pcie-root-port,id=slot_{name},chassis={number},slot={number}"]
    for name in ("nvme", "nvme_fdp", "sata", "nvme_pair", "nvme_detached"):
        words += ["-drive", f"id=image_{name},if=none,file={_image(images, name)},{_RAW}"]
    # A drive with a volatile cache, several LBA formats, and the Open Compute Project's counters.
    words += ["-device", "nvme,id=nvme,bus=slot_nvme,serial=QPLAIN01,drive=image_nvme,ocp=on"]
    # A drive with flexible data placement: one reclaim group, eight handles, 8 MiB reclaim units.
    placement = "fdp=on,fdp.nruh=8,fdp.nrg=1,fdp.runs=8M"
    words += ["-device", f"nvme-subsys,id=placement,nqn=placement,{placement}"]
    words += ["-device", "nvme,id=nvme_fdp,bus=slot_nvme_fdp,serial=QFDP0001,subsys=placement"]
    words += ["-device", "nvme-ns,drive=image_nvme_fdp,bus=nvme_fdp,nsid=1,fdp.ruhs=0-7"]
    # A drive with two namespaces, one of which is not attached to any controller. A drive with two
    # namespaces cannot be hot-plugged.
    words += ["-device", "nvme-subsys,id=pair,nqn=pair"]
    words += ["-device", "nvme,id=nvme_pair,bus=slot_nvme_pair,serial=QPAIR001,subsys=pair"]
    words += ["-device", "nvme-ns,drive=image_nvme_pair,bus=nvme_pair,nsid=1"]
    words += ["-device", "nvme-ns,drive=image_nvme_detached,bus=nvme_pair,nsid=2,detached=on"]
    words += [
        "-device",
        "ide-hd,id=sata,bus=ide.0,serial=QSATA001,drive=image_sata,rotation_rate=1",
    ]
    return words


_RAW = "format=raw,cache=unsafe,discard=unmap"


def _image(images: Path, name: str) -> Path:
    path = images / f"{name}.img"
    with path.open("ab") as file:
        file.truncate(SIZE_BYTES)
    return path
