"""Comparison of initially and persistently isolated handles (Song et al., FAST 2026, figure 17).

The paper is "Characterizing and Emulating FDP SSDs with WARP". The simulated drive has the
over-provisioning, thresholds and handles of the paper's emulator, and its three writers
(`crates/validate/src/handles.rs` gives the sources). The validation answers two questions:

* Do the write amplifications match those of the emulator? Recorded runs (`emulator_runs.csv`) are
  repeated at their writers' rates, from the empty drive to the same volume, with a tolerance.
* At which over-provisioning does persistent isolation start to pay off? The points of the figure
  are measured as in the paper, after five capacities from the empty drive, and long afterwards
  (`waf_settled`).

No parameter sets the rates of the three writers. The rates result from the speed of machine, guest
and emulator, and differ between recorded runs: the sequential writer accounts for 74 to 88 % of the
bytes. The paper does not state the writers' rates for its figure. Both kinds of isolation are
measured at the mean rates of the recorded runs with units of 256 MiB. Persistent isolation is also
measured with slower sequential writers.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from writecliff import _native
from writecliff.lab.validate.stream_rows import Crossover, StreamsCase

INITIALLY, PERSISTENTLY = "initially isolated", "persistently isolated"
FIGURE = "three writers, 80/20"
SEED = 1

# Initially and persistently isolated results, by unit size in MiB and over-provisioning.
PUBLISHED = {
    (256, 0.03): (2.92, 3.80),
    (256, 0.05): (2.18, 2.37),
    (256, 0.10): (1.34, 1.18),
    (128, 0.03): (2.52, 2.78),
    (128, 0.05): (1.74, 1.91),
    (128, 0.10): (1.13, 1.09),
}
PUBLISHED_CROSSOVER = {256: (0.07, 0.09), 128: (0.05, 0.07)}
OVERPROVISIONS = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10)
# Write fractions of the sequential writer in runs with persistent isolation.
SLOWER_SHARES = (0.86, 0.85, 0.84, 0.83)

# Tolerances for over-provisioning of at least 5 %, and for less. Below 5 % over-provisioning, more
# than half of the spare units remain free or open. Write amplification then follows every change in
# the rates, and a log contains only their sum.
TOLERANCE_PCT, TOLERANCE_SCARCE_PCT = 6.0, 15.0
_SCARCE_BELOW = 0.05

_USER_MIB = 224 * 1024
# Slots in a 256 MiB unit, per page in the other loads' units. The plot has many points, so it uses
# fewer slots, which changes the results by at most 1 %.
_SLOTS_RECORDED, _SLOTS_FIGURE = 4, 2
_FIGURE_CAPACITIES = 5.0
_SETTLED = (15.0, 20.0)

Rates = tuple[float, float, float]


def mean_rates() -> Rates:
    """Return the mean rates of the recorded runs with units of 256 MiB."""
    rates = [run.rates for run in RUNS if run.unit_mib == 256]
    first, second, third = (fmean(of) for of in zip(*rates, strict=True))
    return first, second, third


def _with_share(sequential: float) -> Rates:
    """Rates for this sequential fraction, where the other two writers are equally fast."""
    return sequential, (1 - sequential) / 2, (1 - sequential) / 2


def calls(pages_per_block: int) -> list[Callable[[], StreamsCase]]:
    """Return all cases in order; `pages_per_block` has the same meaning as in `streams.run`."""
    mean = mean_rates()
    kinds = (
        (False, mean, _SETTLED),
        (True, mean, _SETTLED),
        *((True, _with_share(share), (0.0, 0.0)) for share in SLOWER_SHARES),
    )
    return [
        *(partial(recorded, run, pages_per_block) for run in (*RUNS, *WITHIN_RUNS)),
        *(
            partial(figure, unit, op, persistent, rates, settled, pages_per_block)
            for unit in PUBLISHED_CROSSOVER
            for op in OVERPROVISIONS
            for persistent, rates, settled in kinds
        ),
    ]


def largest_pages(pages_per_block: int) -> int:
    """Return the page count of the largest drive, which determines the memory of a case."""
    overprovision = max(run.overprovision for run in RUNS)
    return round(_SLOTS_RECORDED * pages_per_block * _USER_MIB / 256 * (1 + overprovision))


def _slots(pages: int, unit_mib: int) -> int:
    return pages * unit_mib // 256


def _units(unit_mib: int, overprovision: float) -> tuple[int, int]:
    """Number of all reclaim units, rounded down as in the artifact's scripts, and of user units."""
    user = _USER_MIB // unit_mib
    return math.floor(user * (1 + overprovision) + 1e-9), user


def recorded(run: RecordedRun, pages_per_block: int) -> StreamsCase:
    """Repeat a recorded run up to the volume at the end of its log."""
    measured, _ = _native.validate_handles(
        *_units(run.unit_mib, run.overprovision),
        _slots(_SLOTS_RECORDED * pages_per_block, run.unit_mib),
        persistent=run.persistent,
        rates=run.rates,
        capacities=run.capacities,
        seed=SEED,
    )
    scarce = run.overprovision < _SCARCE_BELOW
    return StreamsCase(
        load=f"three writers, {run.capacities:.1f} capacities",
        treatment=PERSISTENTLY if run.persistent else INITIALLY,
        overprovision=run.overprovision,
        unit_mib=run.unit_mib,
        waf_measured=measured,
        reference=run.waf,
        source=f"recorded: {run.log}",
        tolerance_pct=TOLERANCE_SCARCE_PCT if scarce else TOLERANCE_PCT,
        sequential_share=run.rates[0],
    )


def figure(
    unit_mib: int,
    op: float,
    persistent: bool,
    rates: Rates,
    settled: tuple[float, float],
    pages_per_block: int,
) -> StreamsCase:
    """Measure a point of the published figure; `settled` is that of `validate_handles`."""
    measured, later = _native.validate_handles(
        *_units(unit_mib, op),
        _slots(_SLOTS_FIGURE * pages_per_block, unit_mib),
        persistent=persistent,
        rates=rates,
        capacities=_FIGURE_CAPACITIES,
        settled=settled,
        seed=SEED,
    )
    published = PUBLISHED.get((unit_mib, op))
    return StreamsCase(
        load=FIGURE,
        treatment=PERSISTENTLY if persistent else INITIALLY,
        overprovision=op,
        unit_mib=unit_mib,
        waf_measured=measured,
        reference=published[persistent] if published else None,
        source="published: Song et al., FAST 2026",
        tolerance_pct=None,
        sequential_share=rates[0],
        waf_settled=None if math.isnan(later) else later,
    )


def crossovers(rows: Sequence[StreamsCase]) -> tuple[Crossover, ...]:
    """Return the crossovers by reclaim unit: at equal rates, settled, and with slower writers."""
    mean = mean_rates()[0]
    cases = (
        ((mean, mean), False),
        ((mean, mean), True),
        *(((mean, slower), False) for slower in SLOWER_SHARES),
    )
    return tuple(
        crossover(unit, shares, settled, rows)
        for unit in PUBLISHED_CROSSOVER
        for shares, settled in cases
    )


def crossover(
    unit_mib: int, shares: tuple[float, float], settled: bool, rows: Sequence[StreamsCase]
) -> Crossover:
    """Find the sign change of the difference, searching from the top of the range."""
    waf = {
        (row.overprovision, row.treatment, row.sequential_share): (
            row.waf_settled if settled else row.waf_measured
        )
        for row in rows
        if row.load == FIGURE and row.unit_mib == unit_mib
    }
    interval: tuple[float | None, float | None] = (None, OVERPROVISIONS[0])
    for op, above in zip(OVERPROVISIONS, (*OVERPROVISIONS[1:], None), strict=True):
        initially, persistently = (
            waf[op, INITIALLY, shares[0]],
            waf[op, PERSISTENTLY, shares[1]],
        )
        if initially is not None and persistently is not None and persistently > initially:
            interval = (op, above)
    return Crossover(unit_mib, shares, settled, interval, PUBLISHED_CROSSOVER[unit_mib])


# -- emulator runs ---------------------------------------------------------------------------------

# Recorded runs of WARP, the emulator by Song et al., "Characterizing and Emulating FDP SSDs with
# WARP" (FAST 2026). The values are the last values of the logs in the paper's artifact
# (`archive/ops-log/`), and those of four logs at about the volume in the paper's figures
# (`emulator_runs.csv`, column `within`).
#
# The drive has 224 GiB, eight handles for the paper's three writers, reclaim units of 256 or 128
# MiB, and the garbage collection described in `crates/validate/src/handles.rs`. The contents of a
# log show if the handles were initially or persistently isolated: the last handle receives the
# valid data of all other handles, or none. The names of several logs state the opposite. Runs with
# a different garbage collection policy (`custom`, and those before the published version) are
# omitted.

CAPACITY_GB = 224 * 1.024**3
# Fraction of the capacity that the first writer fills. The second writer fills the rest.
_SEQUENTIAL_SHARE = 0.9


@dataclass(frozen=True)
class RecordedRun:
    """Host bytes of each of the three writers at the end of a log, and copied bytes, in GB.

    Some runs use a line within the log instead of its end.
    """

    log: str
    unit_mib: int
    overprovision: float
    persistent: bool
    host_gb: tuple[float, float, float]
    copied_gb: float

    @property
    def capacities(self) -> float:
        """Capacities written, including the initial fill."""
        return sum(self.host_gb) / CAPACITY_GB

    @property
    def waf(self) -> float:
        """Write amplification since the drive was empty."""
        return 1 + self.copied_gb / sum(self.host_gb)

    @property
    def rates(self) -> tuple[float, float, float]:
        """The three writers' fractions of the bytes written after the fill."""
        filled = (_SEQUENTIAL_SHARE, 1 - _SEQUENTIAL_SHARE, 0.0)
        after = [
            written - share * CAPACITY_GB
            for written, share in zip(self.host_gb, filled, strict=True)
        ]
        first, second, third = (written / sum(after) for written in after)
        return first, second, third


def _read() -> Iterator[tuple[RecordedRun, bool]]:
    """Read the table, whose flag is `True` for a line within a log and `False` for its end."""
    with Path(__file__).with_name("emulator_runs.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            first, second, third, copied = (
                float(row[f"{name}_gb"]) for name in ("first", "second", "third", "copied")
            )
            unit_mib, op = int(row["unit_mib"]), float(row["overprovision"])
            persistent, writers = row["persistent"] == "yes", (first, second, third)
            run = RecordedRun(row["log"], unit_mib, op, persistent, writers, copied)
            yield run, row["within"] == "yes"


_ALL = tuple(_read())
RUNS = tuple(run for run, within in _ALL if not within)
WITHIN_RUNS = tuple(run for run, within in _ALL if within)
