"""PCIe link and host adapter of a drive, read from sysfs for the report header.

Adapter names are taken from the PCI ID database that distributions install. If the database is
missing, the numeric IDs are shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from writecliff.engines.blockdev.topology import read_text

# PCI Express generation by rate in GT/s per lane (Base Specification 6.0, 8.1).
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_DATABASES = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids")
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_MASS_STORAGE = "0x01"  # PCI class code of mass storage controllers.


@dataclass(frozen=True)
class PcieLink:
    """Speed and width of a PCIe link, read from sysfs."""

    rate: str  # Current rate, such as "16.0 GT/s x4".
    generation: int | None
    width: int
    most: str  # Maximum rate in the format of `rate`; "" if unknown.

    def __str__(self) -> str:
        """Return the current link rate, for example "16.0 GT/s PCIe x4"."""
        return self.rate.replace(" x", " PCIe x")

    @property
    def short(self) -> str:
        """Link in report header form ("Gen 4 x 4"), including the maximum if it is higher."""
        if self.generation is None:
            return self.rate
        text = f"Gen {self.generation} x {self.width}"
        return f"{text} (at most {self.most})" if self.most not in ("", self.rate) else text


def pcie_link(function: Path) -> PcieLink | None:
    """Return a PCI function's link, or None if sysfs has none, for example for virtual drives."""
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
    """Return the mass storage controller nearest to a disk, or None if none exists.

    The result is the host adapter of a SATA or SAS drive, or the NVMe drive itself.
    """
    for directory in disk_directory.resolve().parents:
        if _ADDRESS.fullmatch(directory.name):
            code = read_text(directory / "class") or ""
            return directory if code.startswith(_MASS_STORAGE) else None
    return None


def function_name(function: Path, root: Path = Path("/")) -> str | None:
    """Return a PCI function's vendor and device name, or the numeric IDs if these are unknown."""
    vendor, device = _numbers(function)
    if not vendor:
        return None
    names = _database_with(vendor, root)
    if vendor in names:
        return " ".join(filter(None, (names[vendor], names.get(f"{vendor}:{device}"))))
    return f"PCI {vendor}:{device}"


def vendor_name(function: Path, root: Path = Path("/")) -> str | None:
    """Return a PCI function's vendor name, or None if the database does not contain it."""
    vendor, _ = _numbers(function)
    return _database_with(vendor, root).get(vendor)


def _numbers(function: Path) -> tuple[str, str]:
    vendor, device = (read_text(function / name) or "" for name in ("vendor", "device"))
    return vendor.removeprefix("0x"), device.removeprefix("0x")


def _database_with(vendor: str, root: Path) -> dict[str, str]:
    """Return the first database that contains the vendor, or an empty database."""
    databases = (_names(root / database) for database in _DATABASES)
    return next((names for names in databases if vendor in names), {})


@lru_cache(maxsize=2)
def _names(database: Path) -> dict[str, str]:
    """Read vendors and devices from pci.ids, or return an empty result if it is not installed."""
    try:
        text = database.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    names: dict[str, str] = {}
    vendor = ""
    for line in text.splitlines():
        if line.startswith("C "):  # The list of classes follows.
            break
        if match := re.match(r"([0-9a-f]{4})  (.+)", line):
            vendor = match[1]
            names[vendor] = match[2]
        elif match := re.match(r"\t([0-9a-f]{4})  (.+)", line):
            names[f"{vendor}:{match[1]}"] = match[2]
    return names
