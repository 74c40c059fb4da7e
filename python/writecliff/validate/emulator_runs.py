"""Recorded runs of WARP, the emulator of Song et al., "Characterizing and Emulating FDP SSDs with
WARP" (FAST 2026): what logs in the paper's artifact (`archive/ops-log/`) end with, and what four of
them say at about the volume of the paper's figures.

A drive of 224 GiB with eight handles under the paper's three writers, units of 256 or 128 MiB, and
the collection that `crates/runner/src/validation/handles.rs` describes. Whether the handles were
initially or persistently isolated is read off the log (the last handle takes the survivors of all
others, or none); the names of several logs say the opposite. Left out are runs with another
collection (`custom`, and those before the collection was as published).
"""

from __future__ import annotations

from dataclasses import dataclass

CAPACITY_GB = 224 * 1.024**3
_SEQUENTIAL_SHARE = 0.9  # of the capacity: what the first writer fills; the second the rest


@dataclass(frozen=True)
class RecordedRun:
    """One log: the bytes that each of the three writers had written at its end (or at a line within
    it), and those that collection had copied, in GB."""

    log: str
    unit_mib: int
    overprovision: float
    persistent: bool
    host_gb: tuple[float, float, float]
    copied_gb: float

    @property
    def capacities(self) -> float:
        """Capacities written, the filling of the drive included."""
        return sum(self.host_gb) / CAPACITY_GB

    @property
    def waf(self) -> float:
        """Write amplification from the empty drive on."""
        return 1 + self.copied_gb / sum(self.host_gb)

    @property
    def rates(self) -> tuple[float, float, float]:
        """Shares of the three writers in what was written after the filling."""
        filled = (_SEQUENTIAL_SHARE, 1 - _SEQUENTIAL_SHARE, 0.0)
        after = [
            written - share * CAPACITY_GB
            for written, share in zip(self.host_gb, filled, strict=True)
        ]
        first, second, third = (written / sum(after) for written in after)
        return first, second, third


RUNS = (
    RecordedRun("hds4/log-ii-zoned-RU256OP3", 256, 0.03, False, (1440.69, 108.06, 84.90), 5029.39),
    RecordedRun(
        "hds4/log-pi-zoned-RU256OP3-2", 256, 0.03, False, (1614.64, 129.69, 104.78), 7782.75
    ),
    RecordedRun(
        "hds4/log-ii-zoned-RU256OP5-2", 256, 0.05, False, (1262.76, 104.69, 83.96), 1961.43
    ),
    RecordedRun("hds4/log-ii-zoned-RU256OP7", 256, 0.07, False, (3154.12, 258.63, 235.49), 4560.15),
    RecordedRun("hds4/log-ii-zoned-RU256OP9", 256, 0.09, False, (4308.81, 317.59, 295.82), 3514.03),
    RecordedRun("hds4/log-pi-zoned-RU256OP9", 256, 0.09, False, (2770.69, 200.79, 176.64), 2000.06),
    RecordedRun(
        "hds4/log-ii-zoned-RU256OP10", 256, 0.10, False, (5575.94, 425.65, 394.87), 3892.79
    ),
    RecordedRun(
        "hds4/log-pi-zoned-RU256OP10", 256, 0.10, False, (2610.53, 196.57, 170.59), 1520.36
    ),
    RecordedRun("hds4/log-pi-zoned-RU256OP10-2", 256, 0.10, False, (1107.19, 87.24, 63.89), 337.32),
    RecordedRun(
        "hds4/log-pi-zoned-RU256OP11-2", 256, 0.11, False, (1297.35, 107.79, 78.04), 419.74
    ),
    RecordedRun(
        "hds4/log-ii-zoned-RU256OP14", 256, 0.14, False, (6705.34, 488.45, 466.51), 1315.26
    ),
    RecordedRun("hds4/log-pi-zoned-RU256OP3", 256, 0.03, True, (1516.12, 126.79, 100.23), 8112.62),
    RecordedRun(
        "hds4/log-pi-zoned-RU256OP5-1", 256, 0.05, True, (1937.32, 166.56, 139.85), 3282.27
    ),
    RecordedRun("hds4/log-pi-zoned-RU256OP7-2", 256, 0.07, True, (1336.00, 98.30, 75.42), 669.76),
    RecordedRun("hds4/log-pi-zoned-RU256OP11", 256, 0.11, True, (1176.38, 94.62, 79.85), 253.99),
    RecordedRun("hds4/log-pi-zoned-RU256OP14", 256, 0.14, True, (1439.98, 119.03, 86.37), 115.76),
    RecordedRun("log-gc-zoned-fdpOP20", 256, 0.20, True, (2248.78, 201.80, 176.92), 148.11),
    RecordedRun(
        "hds4/log-ii-zoned-RU128OP3_hds04", 128, 0.03, False, (1726.31, 131.11, 105.90), 4794.79
    ),
    RecordedRun(
        "hds3/log-ii-zoned-RU128OP3_hds03_2", 128, 0.03, False, (1024.23, 134.41, 110.19), 6566.60
    ),
    RecordedRun("hds3/log-ii-zoned-RU128OP7", 128, 0.07, False, (4543.24, 349.57, 327.46), 3119.48),
    RecordedRun("hds3/log-ii-zoned-RU128OP9", 128, 0.09, False, (1064.98, 173.96, 147.40), 969.69),
    RecordedRun("hds4/log-pi-zoned-RU128OP3", 128, 0.03, True, (1307.15, 106.52, 78.66), 2928.88),
    RecordedRun("hds3/log-pi-zoned-RU128OP7", 128, 0.07, True, (4093.20, 390.13, 365.63), 3333.64),
    RecordedRun("hds3/log-pi-zoned-RU128OP10", 128, 0.10, True, (5722.61, 529.79, 502.97), 2130.20),
)

# The same, at a line within the log.
WITHIN_RUNS = (
    RecordedRun("hds4/log-ii-zoned-RU256OP3", 256, 0.03, False, (890.40, 68.24, 46.26), 1636.64),
    RecordedRun("hds4/log-ii-zoned-RU256OP5-2", 256, 0.05, False, (776.05, 68.88, 47.40), 897.11),
    RecordedRun("hds4/log-pi-zoned-RU256OP3", 256, 0.03, True, (1078.84, 92.08, 66.44), 3542.79),
    RecordedRun("hds4/log-pi-zoned-RU256OP5-1", 256, 0.05, True, (1055.22, 93.43, 67.76), 1260.42),
)
