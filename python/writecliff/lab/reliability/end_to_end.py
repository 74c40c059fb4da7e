"""End-to-end protection against bit flips in the buffer and on a bus, and misplaced writes.

Drives with different protection receive the same faults (equal seeds) at increased rates. Only the
fate of the data is simulated: the reads that silently returned wrong data, and the reads that
reported errors.
"""

from __future__ import annotations

from collections.abc import Callable

from writecliff.devices import describe_device
from writecliff.engines.counters import Counters
from writecliff.lab.reliability.drive import opened, scale_for, variant, with_section
from writecliff.lab.reliability.model import Check, Curve, Finding, Plot, Result
from writecliff.parallel import map_side_by_side
from writecliff.workload.model import Job, Workload

RATE = 1e-4
RAISED = "assumed: increased by orders of magnitude, so that faults can be counted"
SECTION = {
    **dict.fromkeys(("buffer_flips", "bus_flips", "misplaced_writes"), (f"{RATE:g}", RAISED)),
    **dict.fromkeys(("buffer_ecc", "guard", "reference_tag"), ("false", "variant")),
}
LAYERS = {
    "no protection": (False, False, False),
    "ECC of the buffer": (True, False, False),
    "guard": (False, True, False),
    "guard and reference tag": (False, True, True),
    "all three": (True, True, True),
}
ROUNDS = 20
SLOTS_MAX = 400_000
READ_PCT = 70.0


def _rounds(text: str, file_name: str, scale: float) -> list[Counters]:
    engine = opened(text, file_name, scale, io_bytes=128 * 1024)
    capacity = engine.identify().capacity_bytes
    fill = Job(name="fill", pattern="sequential", block_size=128 * 1024, volume_bytes=capacity)
    engine.precondition(Workload("fill", (fill,)))
    rows = [engine.counters()]
    for seed in range(ROUNDS):
        job = Job(name="mix", read_pct=READ_PCT, block_size=4096, queue_depth=32,
                  volume_bytes=capacity // 4096 // 5 * 4096)  # fmt: skip
        engine.run(Workload("mix", (job,), seed=seed))
        rows.append(engine.counters())
    return rows


def run(text: str, file_name: str, log: Callable[[str], None]) -> Result:
    """Run a drive per kind of protection with the same faults.

    Raises:
        ConfigError: If the device file is invalid.
    """
    text, settings = with_section(text, "integrity", SECTION)
    device = describe_device(text, file_name)
    scale = scale_for(text, file_name, SLOTS_MAX)
    names = ("buffer_ecc", "guard", "reference_tag")
    texts = [
        variant(text, {f"integrity.{name}": str(flag).lower()
                       for name, flag in zip(names, flags, strict=True)})
        for flags in LAYERS.values()
    ]  # fmt: skip
    log(f"{len(texts)} drives, 1/{scale:g} of the capacity, with the same faults")
    memory = 8 * device.flash_bytes("end-to-end-protection") // 4096
    counters = map_side_by_side(
        _rounds, [(drive_text, file_name, scale) for drive_text in texts], memory
    )
    ends = [rows[-1] for rows in counters]
    silent = [int(row.silent_reads or 0) for row in ends]
    return Result(
        name="end-to-end-protection",
        title="End-to-end protection: wrong reads and detected errors",
        drive=device.name,
        scale=scale,
        intro=f"A full drive under {READ_PCT:g} % random reads and {100 - READ_PCT:g} % writes of "
        f"4 KiB, four capacities in total, with a fault of each kind in one of {1 / RATE:,.0f} "
        "slots.",
        verdict=f"{silent[0]:,} reads silently returned wrong data without protection, "
        f"{silent[-1]:,} with full protection: they returned old data instead of misplaced data. "
        "Old data are intact and have the right address.",
        variants=tuple(LAYERS),
        findings=tuple(
            Finding(what, [float(row[name] or 0) for row in ends])
            for what, name in (
                ("bit flips in the buffer", "buffer_flips"),
                ("bit flips on a bus", "bus_flips"),
                ("misplaced writes", "misplaced_writes"),
                ("faults undone in time", "corrected_faults"),
                ("reads reported as errors", "reported_reads"),
                ("reads of wrong data in silence", "silent_reads"),
                ("wrong slots at the end", "wrong_slots"),
            )
        ),
        plots=tuple(
            Plot(name, title, "Read by the host (capacities)", "Reads", [
                Curve(label, _reads(rows, device.capacity_bytes / scale),
                      [float(row[counter] or 0) for row in rows])
                for label, rows in zip(LAYERS, counters, strict=True)
            ])
            for name, title, counter in (
                ("silent", "Reads that silently returned wrong data", "silent_reads"),
                ("reported", "Reads that failed because of detected errors", "reported_reads"),
            )
        ),
        settings=settings,
        checks=_checks(ends[0]),
        notes=(
            "Garbage collection adds no faults to the data that it relocates.",
            "Retransmissions and checks take no time.",
        ),
    )  # fmt: skip


def _reads(rows: list[Counters], capacity: float) -> list[float]:
    return [(row.host_read_bytes or 0) / capacity for row in rows]


def _checks(end: Counters) -> tuple[Check, ...]:
    written = (end.host_write_bytes or 0) / 4096
    read = (end.host_read_bytes or 0) / 4096
    return (
        Check("bit flips in the buffer", float(end.buffer_flips or 0), RATE * written),
        Check("bit flips on a bus", float(end.bus_flips or 0), RATE * (written + read)),
        Check("misplaced writes", float(end.misplaced_writes or 0), RATE * written),
    )
