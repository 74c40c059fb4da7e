"""NVMe drives of a fake machine: recorded output of nvme-cli, and output built by field.

`recorded/nvme-cli-VERSION.json` contains the output that this version printed for the drives of
QEMU 10.0 in a guest with Linux 7.3: drive serial number -> moment -> command -> exit status and
output. "data" is standard output as bytes, compressed by zlib, in Base64.
`tests/drives/record_nvme.py` records them.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from tests.support.block_machine import MIB, Machine
from writecliff.engines.blockdev.topology import BlockDevice, device_at

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = ("2.3", "2.16")
NODE = "/dev/nvme0n1"


NEW, WRITTEN = "before", "after 20 MiB were written"


def replay(machine: Machine, version: str, serial: str, moment: str = NEW) -> None:
    """Reply as this nvme-cli version did for this drive; unrecorded commands are missing."""
    answers = json.loads((RECORDED / f"nvme-cli-{version}.json").read_text())[serial][moment]
    for command, answer in answers.items():
        data = zlib.decompress(base64.b64decode(answer["data"])) if "data" in answer else b""
        machine.answer(
            command.replace("/dev/", f"{machine.dev}/"),
            answer.get("stdout", ""),
            returncode=answer["returncode"],
            stderr=answer.get("stderr", ""),
            data=data,
        )


def alone(machine: Machine, *, size_bytes: int = MIB, serial: str = "S5XY") -> BlockDevice:
    """Add `nvme0n1` of the controller `nvme0`, as the kernel shows it without multipath."""
    path = machine.disk("nvme0n1", (259, 0), serial=serial, model="FAST 1TB")
    directory = machine.sys / "devices/nvme0n1"
    controller = machine.sys / "devices/pci0000:00/0000:00:06.0/nvme/nvme0"
    controller.parent.mkdir(parents=True)
    (directory / "device").rename(controller)
    (directory / "device").symlink_to(controller)
    (controller / "nvme0n1").symlink_to(directory)
    (controller / "device").symlink_to(controller.parent.parent)
    machine.write(directory, {"nsid": "1", "size": str(size_bytes // 512)})
    machine.write(controller, {"state": "live", "transport": "pcie"})
    return device_at(machine.system, path)


def shared(machine: Machine, controllers: tuple[str, ...] = ("nvme3", "nvme4")) -> BlockDevice:
    """Add `nvme0n1` of the subsystem `nvme-subsys0`, as the kernel shows it with multipath."""
    path = machine.disk("nvme0n1", (259, 0), serial="S5XY", model="FAST 1TB")
    directory = machine.sys / "devices/nvme0n1"
    subsystem = machine.sys / "class/nvme-subsystem/nvme-subsys0"
    subsystem.parent.mkdir(parents=True)
    (directory / "device").rename(subsystem)
    (directory / "device").symlink_to(subsystem)
    (subsystem / "nvme0n1").symlink_to(directory)
    machine.write(directory, {"nsid": "1"})
    for number, name in enumerate(controllers):
        controller = machine.sys / f"devices/pci0000:00/0000:00:0{number}.0/nvme/{name}"
        leg = f"nvme0c{number}n1"
        machine.write(controller, {"state": "live", "transport": "pcie", f"{leg}/nsid": "1"})
        (controller / "device").symlink_to(controller.parent.parent)
        (subsystem / name).symlink_to(controller)
    return device_at(machine.system, path)


def page(size: int, fields: Mapping[int, tuple[int, int]]) -> bytes:
    """Return a zeroed page with `fields`: byte offset -> (field size, value)."""
    data = bytearray(size)
    for start, (width, value) in fields.items():
        data[start : start + width] = value.to_bytes(width, "little")
    return bytes(data)


def controller_page(
    *,
    vendor: int = 0x1B36,
    oacs: int = 0b10,
    fna: int = 0,
    vwc: int = 1,
    sanicap: int = 0,
    ctratt: int = 0,
    cmic: int = 0,
) -> bytes:
    """Return an Identify Controller page."""
    fields = {0: (2, vendor), 76: (1, cmic), 96: (4, ctratt), 256: (2, oacs), 328: (4, sanicap)}
    data = bytearray(page(4096, fields | {516: (4, 32), 524: (1, fna), 525: (1, vwc)}))
    data[4:24], data[24:64], data[64:72] = b"S5XY".ljust(20), b"FAST 1TB".ljust(40), b"1.2.3   "
    return bytes(data)


# LBA formats in `namespace_page`: metadata bytes, and log2 of the data bytes.
FORMATS = ((0, 9), (8, 9), (0, 12), (8, 12))


def namespace_page(
    *, blocks: int = MIB // 512, flbas: int = 0, dps: int = 0, endurance_group: int = 0
) -> bytes:
    """Return an Identify Namespace page with `FORMATS`."""
    fields = {0: (8, blocks), 25: (1, len(FORMATS) - 1), 26: (1, flbas), 29: (1, dps)}
    fields[102] = (2, endurance_group)
    for number, (metadata, power) in enumerate(FORMATS):
        fields[128 + 4 * number] = (4, metadata | power << 16)
    return page(4096, fields)


def list_page(*numbers: int) -> bytes:
    """Return a namespace list."""
    return page(4096, {4 * at: (4, number) for at, number in enumerate(numbers)})


def sanitize_page(
    state: int, *, progress: int = 0xFFFF, action: int = 2, estimate_s: int = 0xFFFFFFFF
) -> bytes:
    """Return a Sanitize Status page (log 81h)."""
    times = dict.fromkeys((8, 12, 16), (4, estimate_s))
    return page(512, {0: (2, progress), 2: (2, 0x100 | state), 4: (4, 0x8 | action), **times})


def answer_controller(machine: Machine, **fields: int) -> None:
    """Reply for a plain drive, with `fields` set in its `controller_page`."""
    node = f"{machine.dev}/nvme0"
    machine.answer(f"nvme id-ctrl {node}", data=controller_page(**fields))
    machine.answer(f"nvme id-ns {node}", data=namespace_page())
    machine.answer(f"nvme admin-passthru {node} --opcode=0x06 --cdw10=0x2", data=list_page(1))
    machine.answer(f"nvme admin-passthru {node} --opcode=0x06 --cdw10=0x10", data=list_page(1))
