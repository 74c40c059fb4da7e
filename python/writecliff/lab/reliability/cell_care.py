"""Cell care, which is data retention on a worn drive over a year, and read disturb.

The drive's flash is at its rated wear. The drive is nearly idle, with a read every 1,000 s. Raw
error rates, retries and the uncorrectable bit error rate (UBER) are expected values for the data on
flash. With refresh, the firmware relocates data that have too many errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log1p

from writecliff.devices import describe_device
from writecliff.engines.base import StepResult
from writecliff.engines.counters import Counters
from writecliff.lab.reliability.drive import opened, scale_for, variant, with_section
from writecliff.lab.reliability.model import Check, Curve, Finding, Plot, Result, Setting
from writecliff.parallel import map_side_by_side
from writecliff.workload.model import Job, Workload

RBER, FACTOR, ENERGY, REFERENCE = 2e-3, 3.0, 1.1, 40.0
DISTURB = 2e-8
ECC = {
    "rber": (f"{RBER:g}", "assumed: the rate at the rated cycles, as the drive is worn"),
    "rber_at_rated": (f"{RBER:g}", "assumed: a quarter of what the code corrects"),
    "retention_factor": (f"{FACTOR:g}", "assumed: errors triple within the rated retention"),
    "retention_time": ('"90 days"', "JESD218: 3 months at 40 C, enterprise"),
    "rber_spread": ("0.1", "assumed: pages differ by 10 %"),
    "codeword": ('"1 KiB"', "usual for BCH of the time"),
    "correctable": ("72", "assumed: 72 bits of 1 KiB, as BCH controllers of 2015 gave"),
    "retry_time": ('"80 us"', "assumed: tR and decoding"),
    "retry_gain": ("0.75", "assumed: each retry with moved voltages leaves 3/4 of the errors"),
    "retries_max": ("3", "assumed"),
}
CARE = {
    "temperature": ('"55 C"', "JESD218: enterprise drives in use"),
    "reference_temperature": (f'"{REFERENCE:g} C"', "JESD218: retention of enterprise drives"),
    "activation_energy": (f"{ENERGY:g}", "JESD218 and JESD22-A117: 1.1 eV"),
    "read_disturb": (f"{DISTURB:g}", "assumed: per read at the rated cycles (Cai et al., DSN 2015, "
                                     "measured 1e-9 to 2e-8 by wear)"),
    "refresh_rber": ("0.0065", "assumed: three quarters of what the code corrects"),
    "refresh_interval": ('"30 min"', "assumed: a reclaim unit in half an hour"),
}  # fmt: skip
HOT, WARM, NONE = "55 C, refresh", "55 C, no refresh", "40 C, no refresh"
VARIANTS = (HOT, WARM, NONE)
MONTH_NS = 30 * 86_400 * 10**9
IDLE_READ_NS = 1000 * 10**9
MONTHS, STEPS_A_MONTH = 12, 2
SAMPLED_READS = 2000
SLOTS_MAX = 60_000
DISTURB_READS, DISTURB_STEPS = 60_000, 24  # Each step represents half a month.


@dataclass(frozen=True)
class Year:
    """Counters and sample reads, recorded after each step."""

    months: list[float]
    rows: list[Counters]
    samples: list[StepResult]


def _year(text: str, file_name: str, scale: float, hot_reads: int) -> Year:
    engine = opened(text, file_name, scale)
    capacity = engine.identify().capacity_bytes
    fill = Job(name="fill", pattern="sequential", block_size=128 * 1024, volume_bytes=capacity)
    engine.precondition(Workload("fill", (fill,)))
    year = Year([0.0], [engine.counters()], [engine.run(_sample(0))])
    step_ns = MONTH_NS // STEPS_A_MONTH
    for step in range(1, MONTHS * STEPS_A_MONTH + 1):
        reads = hot_reads or step_ns // IDLE_READ_NS
        job = Job(
            name="reads",
            read_pct=100,
            block_size=4096,
            duration_ns=step_ns,
            rate_iops=max(0.001, reads / (step_ns / 1e9)),
            range_bytes=max(4096, capacity // 1000 // 4096 * 4096) if hot_reads else None,
        )
        engine.run(Workload("month", (job,), seed=step, interval_ns=step_ns))
        year.months.append(step / STEPS_A_MONTH)
        year.rows.append(engine.counters())
        year.samples.append(engine.run(_sample(step)))
    return year  # fmt: skip


def _sample(seed: int) -> Workload:
    job = Job(name="sample", read_pct=100, block_size=4096, queue_depth=1, ios=SAMPLED_READS)
    return Workload("sample", (job,), seed=seed)


def run(text: str, file_name: str, log: Callable[[str], None]) -> Result:
    """Simulate the drives for a year.

    Raises:
        ConfigError: If the device file is invalid or lacks properties that the campaign needs.
    """
    text, settings = with_section(text, "ecc", ECC)
    text, more = with_section(text, "cell_care", CARE)
    device = describe_device(text, file_name)
    scale = scale_for(text, file_name, SLOTS_MAX)
    without = _without_refresh(text)
    texts = (text, without, variant(without, {"cell_care.temperature": '"40 C"'}))
    log(f"5 drives, 1/{scale:g} of the capacity, {MONTHS} months each")
    cases = [(drive_text, file_name, scale, 0) for drive_text in texts]
    cool = variant(text, {"cell_care.temperature": '"25 C"'})
    cases += [(drive_text, file_name, scale, DISTURB_READS)
              for drive_text in (cool, _without_refresh(cool))]  # fmt: skip
    memory = 8 * device.flash_bytes("cell-care") // 4096
    years = map_side_by_side(_year, cases, memory)
    retained, read = years[:3], years[3:]
    ends = [year.rows[-1] for year in retained]
    uber = [float(row.uber or 0.0) for row in ends]
    return Result(
        name="cell-care",
        title="Advanced ECC and cell care: retention, read disturb and refresh",
        drive=device.name,
        scale=scale,
        intro="A full drive at the rated wear of its flash, with a read every 1,000 s, for a year.",
        verdict=f"At 55 C the data are expected to be lost at a rate of {uber[1]:.1e} per bit read "
        f"after {MONTHS} months; with refresh {uber[0]:.1e} (JESD218 requires 1e-16), at the cost "
        f"of {ends[0].refreshed_units or 0:,} relocated reclaim units.",
        variants=VARIANTS,
        findings=(
            Finding("raw bit error rate, mean", [float(row.rber_mean or 0) for row in ends]),
            Finding("raw bit error rate, worst block", [float(row.rber_max or 0) for row in ends]),
            Finding("UBER to expect", uber),
            Finding("retries per read", [_retries(year)[-1] for year in retained]),
            Finding("mean read latency (us)", [_latency(year)[-1] for year in retained]),
            Finding("reclaim units refreshed", [float(row.refreshed_units or 0) for row in ends]),
            Finding("written to flash meanwhile (capacities)", [_moved(year) for year in retained]),
        ),
        plots=(*_kept_plots(retained), *_read_plots(read)),
        settings=(*settings, *more, *_load()),
        checks=tuple(map(_check, retained[1:], (55.0, 40.0))),
        notes=(
            "UBER is the expected value for the data on flash after the last retry, because rates "
            "this small cannot be counted.",
            "Drives with parity across dies rebuild data that the code cannot correct; see "
            "die-failure.",
        ),
    )  # fmt: skip


def _without_refresh(text: str) -> str:
    """The drive, with a refresh limit that the data never reach."""
    return variant(text, {"cell_care.refresh_rber": "0.5"})


def _load() -> tuple[Setting, ...]:
    return (Setting("reads under read disturb", f"{2 * DISTURB_READS:,} a month at 25 C, to 0.1 % "
                    "of the capacity", "assumed"),)  # fmt: skip


def _retries(year: Year) -> list[float]:
    return [(sample.counted.read_retries or 0) / SAMPLED_READS for sample in year.samples]


def _latency(year: Year) -> list[float]:
    means = []
    for sample in year.samples:
        service = sample.service()
        means.append((service.mean_ns or 0.0) / 1e3 if service else 0.0)
    return means


def _moved(year: Year) -> float:
    first, last = year.rows[0], year.rows[-1]
    moved = (last.nand_write_bytes or 0) - (first.nand_write_bytes or 0)
    return moved / (first.host_write_bytes or 1)


def _curves(years: list[Year], labels: tuple[str, ...], name: str) -> list[Curve]:
    return [
        Curve(label, year.months, [float(row[name] or 0) for row in year.rows])
        for label, year in zip(labels, years, strict=True)
    ]


def _kept_plots(years: list[Year]) -> tuple[Plot, ...]:
    def of(values: Callable[[Year], list[float]]) -> list[Curve]:
        return [Curve(label, year.months, values(year))
                for label, year in zip(VARIANTS, years, strict=True)]  # fmt: skip

    x = "Months"
    return (
        Plot("rber", "Expected raw bit error rate, worst block", x, "Errors per bit",
             _curves(years, VARIANTS, "rber_max"), limits=(("code corrects", 72 / 8192),)),
        Plot("uber", "Expected uncorrectable bit error rate", x, "Codewords lost per bit read",
             _curves(years, VARIANTS, "uber"), y_log=True,
             limits=(("JESD218 enterprise", 1e-16), ("JESD218 client", 1e-15))),
        Plot("retries", "Retries of random reads", x, "Retries per read", of(_retries)),
        Plot("latency", "Mean latency of random reads, queue depth 1", x, "Latency (us)",
             of(_latency)),
        Plot("refreshed", "Reclaim units refreshed", x, "Reclaim units",
             _curves(years, VARIANTS, "refreshed_units")),
    )  # fmt: skip


def _read_plots(years: list[Year]) -> tuple[Plot, ...]:
    labels = ("refresh", "no refresh")
    return (
        Plot("read-disturb", "Read disturb: raw bit error rate of the most-read block",
             "Months of reads", "Errors per bit", _curves(years, labels, "rber_max"),
             limits=(("code corrects", 72 / 8192),)),
    )  # fmt: skip


def _check(year: Year, celsius: float) -> Check:
    """Mean error rate at the end, and its closed form (the logarithm of Arrhenius time)."""
    kelvin: Mapping[float, float] = {c: c + 273.15 for c in (celsius, REFERENCE)}
    inverse = 1 / kelvin[REFERENCE] - 1 / kelvin[celsius]
    hours = MONTHS * 30 * 24 * exp(ENERGY / 8.617333262e-5 * inverse)
    factor = 1 + (FACTOR - 1) * log1p(hours) / log1p(90 * 24)
    return Check(
        f"raw bit error rate after {MONTHS} months at {celsius:g} C",
        float(year.rows[-1].rber_mean or 0),
        RBER * factor,
    )
