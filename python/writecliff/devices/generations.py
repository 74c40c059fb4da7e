"""Typical figures for flash generations and interfaces, and the ranges of actual parts.

The figures are rounded, and close to the figures in the catalogue's device files, which name their
sources. A data sheet determines values within the bounds. Without a data sheet, values are
estimates that are marked "usual".
"""

from __future__ import annotations

from dataclasses import dataclass

from writecliff.errors import ConfigError

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
SLOT = 4 * KIB
BLOCK = 128 * KIB
US, MS = 1e3, 1e6
BITS = {"slc": 1, "mlc": 2, "tlc": 3, "qlc": 4}
CYCLES = {"slc": 50_000, "mlc": 3000, "tlc": 2000, "qlc": 1000}
PLP_CYCLES = {"slc": 100_000, "mlc": 10_000, "tlc": 5000, "qlc": 1500}
PROGRAM_BOUNDS = (0.4, 2.5)  # Fastest and slowest flash, relative to the generation's typical time.
READ_BOUNDS = (0.6, 1.6)
DIES_MAX = 256
CHANNEL_DIES_MAX = 64  # Maximum number of dies per channel in a device file.
# Raw capacity of the largest drive that can be simulated at full capacity.
RAW_WHOLE_BYTES = 15_872 * GIB
RAW_MAX_BYTES = 1 << 50
_SPARE = 1.05  # Minimum ratio of raw flash to user capacity.


@dataclass(frozen=True)
class Generation:
    """A flash generation, with page read and program times in µs by cell type.

    Source of `erase_ms` for 3D flash with 64 layers or more: B. Kim, M. Kim, "REO", Electronics
    14(4), 738, 2025 (3.5 ms for one pulse).
    """

    last_year: int
    name: str
    die_gbit: int
    planes: int
    word_lines: int  # Word lines per block, summed over all strings.
    page_kib: int
    one_shot: bool
    read_us: dict[str, float]
    program_us: dict[str, float]
    erase_ms: float
    bus_mb_s: int
    independent: bool = False  # `True` if the planes can be read independently of each other.

    def die_gbit_of(self, bits: int) -> int:
        """Return the die size in Gbit.

        QLC dies have had a capacity of 1 Tbit since the first generation, which had 64 layers, in
        2018 (ComputerBase, "QLC-3D-NAND: Micron bringt noch dieses Jahr ersten Terabit-Flash",
        2018).
        """
        return max(self.die_gbit, 1024) if bits == 4 and self.last_year >= 2019 else self.die_gbit


GENERATIONS = (
    Generation(2012, "planar flash of 20 to 34 nm", 64, 2, 128, 8, False,
               {"slc": 25, "mlc": 55, "tlc": 75, "qlc": 100},
               {"slc": 250, "mlc": 1100, "tlc": 2000, "qlc": 4000}, 3, 200),
    Generation(2014, "planar flash of 15 to 19 nm", 128, 2, 128, 16, False,
               {"slc": 25, "mlc": 60, "tlc": 75, "qlc": 110},
               {"slc": 250, "mlc": 1000, "tlc": 1600, "qlc": 3500}, 3, 400),
    Generation(2016, "3D flash of 32 to 48 layers", 128, 2, 128, 16, True,
               {"slc": 25, "mlc": 50, "tlc": 60, "qlc": 110},
               {"slc": 200, "mlc": 450, "tlc": 700, "qlc": 2000}, 4, 533),
    Generation(2019, "3D flash of 64 to 96 layers", 256, 2, 256, 16, True,
               {"slc": 25, "mlc": 45, "tlc": 58, "qlc": 110},
               {"slc": 200, "mlc": 400, "tlc": 500, "qlc": 1800}, 3.5, 667),
    Generation(2021, "3D flash of 112 to 128 layers", 512, 2, 384, 16, True,
               {"slc": 20, "mlc": 40, "tlc": 48, "qlc": 90},
               {"slc": 150, "mlc": 300, "tlc": 400, "qlc": 1500}, 3.5, 1200, True),
    Generation(9999, "3D flash of 176 layers and more", 512, 4, 512, 16, True,
               {"slc": 20, "mlc": 35, "tlc": 42, "qlc": 75},
               {"slc": 150, "mlc": 300, "tlc": 500, "qlc": 1400}, 3.5, 1600, True),
)  # fmt: skip


@dataclass(frozen=True)
class Link:
    """An interface, with its display name, payload rate, command time and queues."""

    name: str
    most_mb_s: float
    command_us: float
    full_duplex: bool
    queues: int
    depth: int
    channels: int


LINKS = {
    "sata": Link("SATA 6Gb/s", 565, 2.0, False, 1, 32, 8),
    "sas": Link("SAS 12Gb/s", 1150, 1.5, True, 1, 128, 8),
    "pcie3": Link("NVMe PCIe 3.0 x4", 3600, 0.2, True, 32, 1023, 8),
    "pcie4": Link("NVMe PCIe 4.0 x4", 7500, 0.1, True, 32, 1023, 8),
    "pcie5": Link("NVMe PCIe 5.0 x4", 14_500, 0.05, True, 32, 1023, 16),
}


def check_capacity(capacity: float) -> None:
    """Raise ConfigError if no drive with this capacity can be derived."""
    most = RAW_MAX_BYTES / _SPARE
    if not GIB <= capacity <= most:
        hint = f"supported capacities are {GIB / 1e9:.2f} GB to {most / 1e12:.1f} TB"
        raise ConfigError(f"a capacity of {capacity / 1e9:,.2f} GB is not supported", hint=hint)


def raw_bytes_of(capacity: float) -> int:
    """Return the smallest typical flash capacity that provides at least 5 % spare flash.

    Typical capacities are 2^n or 3 x 2^n GiB, and the largest capacity that can be simulated whole.
    """
    check_capacity(capacity)
    sizes = {scale * 2**n * GIB for n in range(21) for scale in (1, 3)} | {RAW_WHOLE_BYTES}
    return min(size for size in sizes if size >= _SPARE * capacity)
