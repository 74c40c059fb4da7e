"""PCI functions as the report's header names them: the link of a drive, and its host adapter.

Reads sysfs. Names of adapters are those of the PCI ID database that distributions install; without
it the numbers are shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from writecliff.engines.blockdev.topology import read_text

# GT/s of a lane -> generation of PCI Express (Base Specification 6.0, 8.1)
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_DATABASES = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids")
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_MASS_STORAGE = "0x01"  # class code


@dataclass(frozen=True)
class PcieLink:
    """Speed and width as sysfs prints them, now and at most; `most` is "" if it is unknown."""

    rate: str  # "16.0 GT/s x4"
    generation: int | None
    width: int
    most: str

    def __str__(self) -> str:
        return self.rate.replace(" x", " PCIe x")

    @property
    def short(self) -> str:
        """As report headers write it: "Gen 4 x 4", and what it could do where that is more."""
        if self.generation is None:
            return self.rate
        text = f"Gen {self.generation} x {self.width}"
        return f"{text} (at most {self.most})" if self.most not in ("", self.rate) else text


def pcie_link(function: Path) -> PcieLink | None:
    """The link of a PCI function; None where sysfs does not know it, as on virtual drives."""
    now = _link(function, "current")
    if now is None:
        return None
    speed, width = now
    most = _link(function, "max")
    return PcieLink(
        f"{speed} x{width}",
        _generation(speed),
        width,
        "" if most is None else f"{most[0]} x{most[1]}",
    )


def _link(function: Path, which: str) -> tuple[str, int] | None:
    speed = read_text(function / f"{which}_link_speed")
    width = read_text(function / f"{which}_link_width")
    if speed is None or width is None or not speed[0].isdigit() or width in ("0", "255"):
        return None
    return speed.removesuffix(" PCIe"), int(width)


def _generation(speed: str) -> int | None:
    try:
        return _GENERATIONS.get(float(speed.partition(" ")[0]))
    except ValueError:
        return None


def adapter_of(disk_directory: Path) -> Path | None:
    """The PCI function nearest to a disk that is a mass storage controller; None without one.

    For SATA and SAS that is the host adapter, for NVMe on PCIe the drive itself.
    """
    for directory in disk_directory.resolve().parents:
        if _ADDRESS.fullmatch(directory.name):
            code = read_text(directory / "class") or ""
            return directory if code.startswith(_MASS_STORAGE) else None
    return None


def function_name(function: Path, root: Path = Path("/")) -> str | None:
    """ "Intel Corporation 82801IR/IO/IH (ICH9R/DO/DH) 6 port SATA Controller", else its numbers."""
    vendor, device = _numbers(function)
    if not vendor:
        return None
    names = _known(vendor, root)
    if vendor in names:
        return " ".join(filter(None, (names[vendor], names.get(f"{vendor}:{device}"))))
    return f"PCI {vendor}:{device}"


def vendor_name(function: Path, root: Path = Path("/")) -> str | None:
    """The name of its vendor; None if the database does not have it."""
    vendor, _ = _numbers(function)
    return _known(vendor, root).get(vendor)


def _numbers(function: Path) -> tuple[str, str]:
    vendor, device = (read_text(function / name) or "" for name in ("vendor", "device"))
    return vendor.removeprefix("0x"), device.removeprefix("0x")


def _known(vendor: str, root: Path) -> dict[str, str]:
    """The first database that has the vendor; empty if none has."""
    found = (_names(root / database) for database in _DATABASES)
    return next((names for names in found if vendor in names), {})


@lru_cache(maxsize=2)
def _names(database: Path) -> dict[str, str]:
    """Vendors and devices of pci.ids; empty if it is not installed."""
    try:
        text = database.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    names: dict[str, str] = {}
    vendor = ""
    for line in text.splitlines():
        if line.startswith("C "):  # classes follow
            break
        if match := re.match(r"([0-9a-f]{4})  (.+)", line):
            vendor = match[1]
            names[vendor] = match[2]
        elif match := re.match(r"\t([0-9a-f]{4})  (.+)", line):
            names[f"{vendor}:{match[1]}"] = match[2]
    return names
