"""The registry of tests, with an entry per test, which imports no test.

`writecliff test --list`, `--resume`, suites and reports use the registry to list, find and order
tests. To add a test, write its procedure and its report, then add an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from writecliff.errors import StoreError

if TYPE_CHECKING:
    from writecliff.procedures.model import Procedure
    from writecliff.procedures.optioned import OptionedProcedure

_PROCEDURES, _REPORTS = "writecliff.procedures", "writecliff.report"
PTS = ("pts-e", "pts-c")
REAL_WORLD = "SNIA RWSW PTS 1.0.7 (2018)"
ENTERPRISE = ("pts-e",)  # Editions of tests that no source describes for the client edition.


@dataclass(frozen=True)
class Entry:
    """A test, with title and summary, and the code that runs it and writes its report."""

    title: str
    summary: str  # Text that completes "TITLE: ...".
    question: str  # Question that the test answers.
    # "iops:Iops" for `procedures.iops.Iops` and its report `report.iops.IopsReport`.
    procedure: str
    editions: tuple[str, ...] = PTS
    required: bool = True  # Editions that require the test; other editions make it optional.
    campaign: str = ""  # Published campaign that the test reproduces; "" if none.
    called: str = ""  # Test name, if a module cannot have that name.

    @property
    def is_user_load(self) -> bool:
        """`True` for user-defined loads, which neither a standard nor a campaign defines."""
        return not (self.editions or self.campaign)

    @property
    def name(self) -> str:
        """The test's name, by default its module name."""
        return self.called or self.procedure.partition(":")[0].rpartition(".")[2]

    @property
    def help(self) -> str:
        """Title and summary, as a single sentence."""
        return f"{self.title}: {self.summary}."

    def load_procedure(self) -> type[Procedure]:
        """Import and return the class that runs the test."""
        return cast("type[Procedure]", _load(_PROCEDURES, self.procedure))

    def load_report(self) -> Any:
        """Import and return the class that reports the test, a `report.base.TestReport`."""
        return _load(_REPORTS, f"{self.procedure}Report")


def _load(package: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(f"{package}.{module}"), attribute)


# The tests are in the standard's order (clauses of PTS-E 1.1), which is also the order within a
# suite.
PROCEDURES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "IOPS Test",
            "random I/O at 8 block sizes and 7 read/write mixes until steady state",
            "How many random I/Os per second does the drive sustain, by block size and mix?",
            "iops:Iops",
        ),
        Entry(
            "Throughput Test",
            "sequential 1024 and 128 KiB reads and writes until steady state",
            "How much sequential throughput does the drive sustain?",
            "tp:Tp",
        ),
        Entry(
            "Latency Test",
            "response times of random 8, 4 and 0.5 KiB I/Os with one outstanding I/O, until steady "
            "state",
            "How long does a single random I/O take in steady state?",
            "lat:Lat",
        ),
        Entry(
            "Write Saturation Test",
            "random 4 KiB writes to a purged drive until its performance levels off",
            "How fast are sustained writes once the drive is no longer new?",
            "wsat:Wsat",
        ),
        Entry(
            "Host Idle Recovery Test",
            "bursts of random 4 KiB writes with increasingly long pauses between bursts, starting "
            "in steady state",
            "How much does the drive recover while the host is idle?",
            "hir:Hir",
            ENTERPRISE,
            required=False,
        ),
        Entry(
            "Cross Stimulus Recovery Test",
            "22 hours of sequential, random and again sequential writes",
            "How does the drive recover when the load switches between sequential and random?",
            "xsr:Xsr",
            ENTERPRISE,
            required=False,
        ),
        Entry(
            "Enterprise Composite Workload Test",
            "a mix of block sizes over address zones (CBW), at each thread count and queue depth",
            "How do IOPS and response times of a composite load grow with its intensity?",
            "ecw:Ecw",
            ENTERPRISE,
            required=False,
        ),
        Entry(
            "Demand Intensity / Response Time Histogram Test",
            "response times and IOPS of a workload at each thread count and queue depth",
            "How do IOPS and response times grow with the intensity of the load?",
            "dirth:Dirth",
            ENTERPRISE,
            required=False,
        ),
        Entry(
            "Data-centre White Paper Tests",
            "basic performance, read/write mixes, consistency, messenger and server loads, in a "
            "sustained state",
            "How does the drive perform under data-centre loads in sustained state?",
            "campaigns.datacentre:Datacentre",
            (),
            campaign="PM863 white paper (2015)",
        ),
        Entry(
            "Performance Consistency Test",
            "random 4 KiB writes to the whole drive, then to part of the drive, sampled every "
            "second",
            "How consistent are sustained random writes from second to second?",
            "campaigns.consistency:Consistency",
            (),
            campaign="AnandTech (2012-2014)",
        ),
        Entry(
            "Aerospike Certification Test",
            "fixed-rate reads during large-block reads and writes, with a pass or fail result "
            "for each hour",
            "Are small reads fast enough beside large-block reads and writes?",
            "campaigns.act:Act",
            (),
            campaign="Aerospike ACT",
        ),
        Entry(
            "Block Size Comparison",
            "steady-state IOPS, latency and power by block size and read/write mix",
            "How do IOPS, latency and power depend on block size and mix?",
            "campaigns.blocksizes:BlockSizes",
            campaign="Samsung 840 v 850 (2014)",
        ),
        Entry(
            "Endurance Test",
            "steady-state write amplification of a workload, and the resulting TBW, DWPD and"
            " lifetime",
            "How much can be written to the drive, and how long will it last?",
            "campaigns.endurance:Endurance",
            (),
            campaign="JESD218 and JESD219",
        ),
        Entry(
            "Skew and Open-Loop Test",
            "Zipfian, static and zoned writes compared with uniform writes, and tail latency"
            " under open-loop load",
            "How do skewed and static data, and open-loop loads, change rates and tails?",
            "campaigns.ssd_iq:SsdIq",
            (),
            campaign="SSD-iq (2025)",
            called="ssd-iq",
        ),
        Entry(
            "Replay-Native Test",
            "replay of an I/O capture in time steps that each have their own streams and queue "
            "depth",
            "How does the drive perform under the captured load, step by step?",
            "rwsw.replay_native:ReplayNative",
            (),
            campaign=REAL_WORLD,
            called="replay-native",
        ),
        Entry(
            "Multi-WSAT Test",
            "all streams of an I/O capture's applied workload together, on a purged drive",
            "How fast is the captured load once the drive is no longer new?",
            "rwsw.multi_wsat:MultiWsat",
            (),
            campaign=REAL_WORLD,
            called="multi-wsat",
        ),
        Entry(
            "Individual Streams-WSAT Test",
            "each stream of the applied workload alone, on a preconditioned drive",
            "How fast is each stream of the captured load alone?",
            "rwsw.is_wsat:IsWsat",
            (),
            campaign=REAL_WORLD,
            called="is-wsat",
        ),
        Entry(
            "Thread Count / Queue Depth Sweep Test",
            "the applied workload of an I/O capture at each thread count and queue depth",
            "How do IOPS and response times of the captured load grow with its intensity?",
            "rwsw.tcqd:Tcqd",
            (),
            campaign=REAL_WORLD,
        ),
    )
}

# Runs of other commands, which a file or trace defines and which have no test options.
USER_LOADS: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "Workload",
            "the steps of a workload or job file",
            "How fast is this load on the drive, and how slow are its slowest I/Os?",
            "workload:WorkloadRun",
            (),
        ),
        Entry(
            "Twin",
            "the measurements for a drive model",
            "How does the drive behave under the loads that a model of it is fitted to?",
            "twin:Twin",
            (),
        ),
        Entry(
            "Replay",
            "a trace on a simulated drive",
            "How do the writes of this trace wear the drive, and how fast is it?",
            "trace_replay:TraceReplay",
            (),
        ),
        Entry(
            "Served drive",
            "the accesses of other programs",
            "How did the drive perform for the programs that used it?",
            "served:Served",
            (),
        ),
    )
}


def entry_of(name: str) -> Entry:
    """Return the entry for a stored run. Raises StoreError if the test does not exist."""
    entry = PROCEDURES.get(name) or USER_LOADS.get(name)
    if entry is None:
        raise StoreError(
            f"unknown test '{name}': this version cannot read the run",
            hint=f"this version supports the tests {', '.join(PROCEDURES)}",
        )
    return entry


def suite_tests(edition: str) -> tuple[str, ...]:
    """Return the tests of an edition, in the standard's order."""
    return tuple(name for name, e in PROCEDURES.items() if edition in e.editions and not e.campaign)


def standard_tests() -> tuple[str, ...]:
    """Return the tests in any edition of the standard, each of which runs in all editions."""
    return tuple(name for name, e in PROCEDURES.items() if e.editions and not e.campaign)


def procedure_from_mapping(
    name: str, options: Mapping[str, Any], *, simulated: bool = False
) -> Procedure:
    """Return the procedure of a stored run, or of a new test on a drive that is `simulated`.

    Raises:
        StoreError: If this version does not have the test.
        ConfigError: If an option is invalid.
    """
    if simulated and name in PROCEDURES:
        return procedure_class(name).from_mapping(options, simulated=True)
    return entry_of(name).load_procedure().from_mapping(options)


def procedure_class(name: str) -> type[OptionedProcedure[Any]]:
    """Return the class of a test. Raises StoreError if the test does not exist."""
    return cast("type[OptionedProcedure[Any]]", entry_of(name).load_procedure())
