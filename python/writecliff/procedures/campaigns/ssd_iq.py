"""Skewed, static and open-loop loads of SSD-iq (Haas et al., PVLDB 18(11), 2025).

    closed loops   purge, sequential fill, then several capacities of random 4 KiB writes: uniform,
                   zipf, partly static pages, two zones. Pages are scattered over the whole range.
                   The figure is the rate from 60 to 99 % of the bytes of the run.
    zones          zones of the host, written sequentially, one at a time in random order
    open loops     an aged drive with Poisson arrivals of writes at each rate. A fixed-rate probe
    load of reads and writes measures the latency.

fio cannot scatter zones, and its zipf distribution deviates from Zipf's law. On a real drive,
closed loops therefore have a rate that no drive can reach, so that writecliff issues the I/Os
itself, as fast as the queue depth allows.

Known deviations: zones are written only on simulated drives, and are overwritten without a TRIM.
The paper averages from 60 to 99 % of a run's duration, which is a later interval on a drive that
slows down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity, StepResult
from writecliff.errors import ConfigError
from writecliff.procedures.campaigns.base import CampaignOptions, CampaignProcedure
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import (
    QUEUE_DEPTH,
    SECONDS,
    THREADS,
    Within,
    campaign_option,
    option,
)
from writecliff.workload.model import KIB, Addresses, BlockSize, HostZones, Job, Workload, Zone

PAGE, FILL_BYTES, GIB = 4 * KIB, 128 * KIB, 1 << 30
ZONE_BLOCK_BYTES = 512 * KIB
UNIFORM = "uniform"
OPEN = "open"
MEASURED = "measured"  # Role of steps whose rates are reported.
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "p99.999": 0.99999}
_UNREACHABLE_IOPS = 1e8  # Rate for closed loops whose I/Os writecliff issues itself.
_SHARES = Within(0, 99.9, open_low=True)


@dataclass(frozen=True, kw_only=True)
class SsdIqOptions(CampaignOptions):
    """Options of the SSD-iq test. An omitted option has the campaign's value."""

    thetas: tuple[float, ...] = option(
        (0.2, 0.4, 0.6, 0.8, 1.0),
        "Zipf exponents (theta) of the skewed writes",
        within=Within(0, 10, open_low=True),
    )
    static_pcts: tuple[float, ...] = option(
        (20.0, 40.0, 60.0, 80.0, 90.0),
        "percentages of pages that are never written",
        within=_SHARES,
    )
    cold_pcts: tuple[float, ...] = option(
        (80.0, 90.0, 95.0),
        "percentages of cold pages: with 80, the coldest 80 % of the pages receive 20 % of the "
        "writes",
        within=_SHARES,
    )
    zone_gib: tuple[float, ...] = option(
        (1.0, 8.0), "sizes of the sequentially written zones, in GiB", within=Within(0.001, 1024)
    )
    rates_iops: tuple[float, ...] = option(
        (10_000.0, 20_000.0, 50_000.0, 100_000.0, 200_000.0),
        "arrival rates of the open loops, in I/Os per second",
        within=Within(1, 1e8),
    )
    threads: int = campaign_option(4, "number of threads in closed loops", within=THREADS)
    queue_depth: int = campaign_option(
        128, "number of outstanding I/Os per thread in closed loops", within=QUEUE_DEPTH
    )
    capacities: float = campaign_option(
        6.0,
        "write volume per closed loop, in multiples of the user capacity",
        within=Within(0, 1000, open_low=True),
        quick=1.0,
    )
    from_pct: float = campaign_option(
        60.0,
        "percentage of a closed loop to complete before measurement starts",
        within=Within(0, 99),
    )
    aged_capacities: float = campaign_option(
        3.0,
        "volume of random writes before the open loops, in multiples of the user capacity",
        within=Within(0, 1000),
        quick=0.5,
    )
    open_seconds: float = campaign_option(
        960.0, "duration of each open loop, in seconds", within=SECONDS, quick=5.0
    )
    probe_iops: float = campaign_option(
        10_000.0,
        "I/O rate of the probe load, of which half are reads, in I/Os per second",
        within=Within(1, 1e7),
    )


@dataclass(frozen=True)
class Closed:
    """A closed loop of random writes."""

    phase: str  # Phase name in the run directory.
    curve: str  # Report curve that the point belongs to.
    x: float  # Position on the curve.
    addresses: Addresses

    @property
    def text(self) -> str:
        """Description of the load."""
        return {
            UNIFORM: "uniform writes",
            "zipf": f"zipf writes, theta {self.x:g}",
            "static": f"{self.x:g} % of pages static",
            "cold": f"{self.x:g} % of pages get {100 - self.x:g} % of writes",
        }[self.curve]


class SsdIq(CampaignProcedure[SsdIqOptions]):
    """The SSD-iq test. Raises ConfigError if an option is invalid."""

    name = "ssd-iq"
    options_type = SsdIqOptions
    scales = True

    def check(self) -> None:
        """Raise ConfigError if the measurement window is empty."""
        if self.options.capacities * (0.99 - self.options.from_pct / 100) <= 0:
            raise ConfigError(
                f"nothing to measure between {self.options.from_pct:g} and 99 % of a run",
                hint="lower --from-pct",
            )

    @property
    def closed(self) -> Sequence[Closed]:
        """Closed loops in execution order, uniform writes first."""
        o = self.options
        loops = [Closed(UNIFORM, UNIFORM, 0.0, Addresses())]
        loops += [
            Closed(f"zipf-{theta:g}", "zipf", theta, Addresses("zipf", theta=theta))
            for theta in o.thetas
        ]
        loops += [
            Closed(f"static-{share:g}", "static", share, _zones(share, 0.0))
            for share in o.static_pcts
        ]
        return loops + [
            Closed(f"cold-{share:g}", "cold", share, _zones(share, 100 - share))
            for share in o.cold_pcts
        ]

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (closed loops, addresses and open loops)."""
        o = self.options
        return {
            **super().setup(identity),
            "precondition": "SEQ 128KiB W",
            "precondition_duration": "Once",
            "test: Closed loops": f"RND 4KiB W, TC {o.threads}/QD {o.queue_depth}, "
            f"{o.capacities:g} x user capacity, measured from {o.from_pct:g} to 99 % of it",
            "test: Addresses": "hot 4 KiB pages scattered over the whole range",
            "test: Open loops": f"Poisson arrivals of 99 % writes, probe of {o.probe_iops:g} IOPS",
        }

    # -- stages -----------------------------------------------------------------------------

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the closed loops, the zones and the open loops; each stage starts with a purge."""
        filled = self.state(identity, "fill")
        stages = [
            Stage.once(
                loop.phase, loop.text, self._writes(identity, loop), purge=True, state=filled
            )
            for loop in self.closed
        ]
        for size in self._zones_of(identity):
            steps = self._zone_writes(identity, size)
            title = f"sequential writes in zones of {size:g} GiB"
            stages.append(Stage.once(zone_phase(size), title, steps, purge=True, state=filled))
        if self.options.rates_iops:
            steps = [self._open_loop(identity, rate) for rate in self.options.rates_iops]
            aged = [*filled, *self._aged(identity)]
            stages.append(
                Stage.once(OPEN, "latency under open loops", steps, purge=True, state=aged)
            )
        return stages

    def _zones_of(self, identity: DeviceIdentity) -> Sequence[float]:
        """Return the zone sizes, in GiB, that fit in the drive at least twice."""
        if not identity.simulated:
            return ()
        return [size for size in self.options.zone_gib if size * GIB <= identity.capacity_bytes / 2]

    def _closed_steps(self, identity: DeviceIdentity, phase: str, job: Job) -> Sequence[Step]:
        """Return the untimed step before the measurement window, and the measured step."""
        o, largest = self.options, job.block_sizes[0].bytes
        whole = o.capacities * identity.capacity_bytes
        shares = ("before", o.from_pct / 100), (MEASURED, 0.99 - o.from_pct / 100)
        steps = []
        for part, share in shares:
            volume = max(largest * job.threads, round(whole * share / largest) * largest)
            if share <= 0:
                continue
            load = Workload(phase, (replace(job, volume_bytes=volume),))
            step = self.step(f"{phase}, {part}", load, phase, part)
            steps.append(replace(step, untimed=part == "before", role=part))
        return steps

    def _writes(self, identity: DeviceIdentity, loop: Closed) -> Sequence[Step]:
        o = self.options
        job = Job(
            name=self.name,
            addresses=loop.addresses,
            threads=o.threads,
            queue_depth=o.queue_depth,
            rate_iops=None if identity.simulated else _UNREACHABLE_IOPS,
        )
        return self._closed_steps(identity, loop.phase, job)

    def _zone_writes(self, identity: DeviceIdentity, size_gib: float) -> Sequence[Step]:
        zone = round(size_gib * GIB / ZONE_BLOCK_BYTES) * ZONE_BLOCK_BYTES
        job = Job(
            name=self.name,
            block_sizes=(BlockSize(ZONE_BLOCK_BYTES),),
            range_bytes=identity.capacity_bytes // zone * zone,
            host_zones=HostZones(size_bytes=zone, max_open=1),
        )
        return self._closed_steps(identity, zone_phase(size_gib), job)

    def _aged(self, identity: DeviceIdentity) -> Sequence[Workload]:
        volume = round(self.options.aged_capacities * identity.capacity_bytes / PAGE) * PAGE
        if not volume:
            return ()
        job = Job(name=self.name, queue_depth=self.options.queue_depth, volume_bytes=volume)
        return (self.step("aged", Workload("aged", (job,)), "aged").workload,)

    def _open_loop(self, identity: DeviceIdentity, rate: float) -> Step:
        o = self.options
        load = Job(
            name="load", read_pct=1.0, threads=6, queue_depth=64, rate_iops=rate, arrival="poisson"
        )
        probe = Job(name="probe", read_pct=50.0, queue_depth=64, rate_iops=o.probe_iops)
        jobs = tuple(job.with_duration_s(o.open_seconds) for job in (load, probe))
        step = self.step(open_name(rate), Workload(OPEN, jobs), OPEN, rate)
        return replace(step, figures=open_figures)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        loops = (
            f"purge, sequential fill, {o.capacities:g} user capacities of {loop.text}, measured "
            f"from {o.from_pct:g} to 99 %"
            for loop in self.closed
        )
        zones = (
            f"purge, sequential fill, {o.capacities:g} user capacities in zones of {size:g} GiB"
            for size in self._zones_of(identity)
        )
        rates = ", ".join(f"{rate:,.0f}" for rate in o.rates_iops)
        open_loops = (
            f"purge, sequential fill, {o.aged_capacities:g} user capacities of random writes, then "
            f"open loops of {rates} I/Os per second for {o.open_seconds:g} s each"
        )
        return (*loops, *zones, *([open_loops] if o.rates_iops else []))


def _zones(cold_pct: float, writes_pct: float) -> Addresses:
    """Return a hot zone and a cold zone, both scattered by page.

    Args:
        cold_pct: Percentage of the pages that are in the cold zone.
        writes_pct: Percentage of the writes that go to the cold zone.
    """
    hot = Zone(access_pct=100 - writes_pct, size_pct=100 - cold_pct)
    return Addresses("hot_cold", zones=(hot,), scatter_bytes=PAGE)


def zone_phase(size_gib: float) -> str:
    """Return the name of the phase that writes zones of this size."""
    return f"zones-{size_gib:g}"


def open_name(rate_iops: float) -> str:
    """Return the step name for an open loop at this rate."""
    return f"{rate_iops:,.0f} arrivals/s"


def open_figures(result: StepResult) -> Mapping[str, float]:
    """Return an open loop's writes per second, and the latency percentiles of its probe in ns."""
    main, probe = result.jobs
    written = main.operations.get("write")
    figures = {}
    if written is not None and main.elapsed_ns:
        figures["write_iops"] = written.ios / (main.elapsed_ns / 1e9)
    for operation, totals in probe.operations.items():
        for name, share in QUANTILES.items():
            value = totals.service.quantile(share).value_ns
            if value is not None:
                figures[f"{operation}_{name}_ns"] = float(value)
    return figures
