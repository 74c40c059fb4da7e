"""A test's active range, which is the accessible addresses, and the accessed segments.

Revision 1.x of the client edition limits accesses: the active range is 100 % or 75 % of the
addresses, of which 8 GiB or 16 GiB are accessed, in 2048 segments. Every combination starts with a
purge (`COMBINATIONS`), and a suite has a run for each combination. Sources differ: the SNIA primer
(2013) shows the client tests at an active range of 100 % without segments, which is the default of
a single test, and also with 1024 segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.options import Deviation, Within, option
from writecliff.procedures.sources import Choice

CLAUSE = "PTS active range"
CLIENT = ("pts-c", "1.x")  # Edition and revision that define the combinations.
CLIENT_2 = ("pts-c", "2.0")
GIB = 1 << 30
SEGMENTS = 2048
COMBINATIONS = tuple((pct, gib) for pct in (100.0, 75.0) for gib in (8.0, 16.0))
START_ALIGN_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """Options of tests that can restrict their loads to segments of the active range."""

    ar_amount_gib: float | None = option(
        None,
        "volume of data that the test accesses in the active range, in GiB, spread over segments",
        within=Within(0, 1e9, open_low=True),
        unset="the whole active range",
    )
    ar_segments: int = option(
        SEGMENTS,
        "number of active-range segments if --ar-amount-gib is given",
        within=Within(1, 1 << 20),
    )


def range_start(identity: DeviceIdentity, range_bytes: int, *, segmented: bool) -> int:
    """Return the offset of the first byte in the active range.

    A range with segments ends at the end of the drive, because fio accesses segments up to the end
    of a device.
    """
    if not segmented:
        return 0
    return (identity.capacity_bytes - range_bytes) // START_ALIGN_BYTES * START_ALIGN_BYTES


def check_amount(
    options: SegmentOptions, identity: DeviceIdentity, active_range_pct: float
) -> None:
    """Check that the segments fit in the drive's active range.

    Raises:
        ConfigError: If the active range is not larger than the segments in it.
    """
    amount_bytes = (options.ar_amount_gib or 0) * GIB
    range_bytes = identity.capacity_bytes * active_range_pct / 100
    if amount_bytes >= range_bytes:
        raise ConfigError(
            f"{options.ar_amount_gib:g} GiB of segments do not fit into the active range: "
            f"{active_range_pct:g} % of the drive is {units.size(range_bytes)}",
            hint="test a larger drive, reduce --ar-amount-gib, or omit it to access the whole "
            "range",
        )


def segment_deviations(options: SegmentOptions, edition: tuple[str, str]) -> list[Deviation]:
    """Return the segments' deviation from `edition`, a pair of edition and revision."""
    amount, count = options.ar_amount_gib, options.ar_segments
    if amount is None:
        return []
    if edition != CLIENT:
        return [Deviation("ar_amount_gib", "all of it", amount, "required", CLAUSE)]
    amounts = sorted({gib for _, gib in COMBINATIONS})
    deviations = []
    if amount not in amounts:
        deviations.append(Deviation("ar_amount_gib", tuple(amounts), amount, "required", CLAUSE))
    if count != SEGMENTS:
        deviations.append(Deviation("ar_segments", SEGMENTS, count, "required", CLAUSE))
    return deviations


def range_choice(options: SegmentOptions, active_range_pct: float) -> Choice:
    """Return the sources on the client edition's active range, and the choice made in `options`."""
    segments = (
        f"{options.ar_amount_gib:g} GiB of it in {options.ar_segments} segments"
        if options.ar_amount_gib is not None
        else "all of it, without segments"
    )
    return Choice(
        "active range",
        "100 %, without segments (primer: IOPS, TP) or in 1024 (primer: WSAT); 80 % with 8 GiB of "
        "it (primer, figure 20); each of 100 and 75 % by 8 and 16 GiB in 2048 segments (the count "
        "by SNIA's terminology, no public text has the combinations), which the suite runs",
        f"{active_range_pct:g} %, {segments}",
        "--active-range-pct, --ar-amount-gib, --ar-segments",
    )


def share_choice(active_range_pct: float) -> Choice:
    """Return the sources on the active range in revision 2.0 of the client edition."""
    return Choice(
        "active range",
        "75 % (published programs of 2.0); 80 % or 100 % (primer, of 1.x)",
        f"{active_range_pct:g} %",
        "--active-range-pct",
    )


def segments_setup(options: SegmentOptions, active_range_pct: float) -> Mapping[str, str]:
    """Return the report header entries that describe the segments."""
    return {
        "ar_segments": f"{options.ar_segments}",
        "ar_amount": f"{active_range_pct:g}%, {options.ar_amount_gib:g} GiB",
    }
