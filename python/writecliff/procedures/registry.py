"""The tests by name, without importing them: what `test --list` shows and `--resume` looks up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from writecliff.errors import StoreError

if TYPE_CHECKING:
    from writecliff.procedures.optioned import OptionedProcedure


@dataclass(frozen=True)
class Entry:
    """A test that exists."""

    name: str
    title: str
    summary: str
    editions: tuple[str, ...]
    target: str  # "module:class"
    required: bool = True  # by the standard; else optional
    campaign: str = ""  # no test of the standard: the published campaign that it repeats


PROCEDURES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "iops",
            "IOPS Test",
            "Random I/O in 8 block sizes and 7 read/write mixes, until steady.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.iops:Iops",
        ),
        Entry(
            "tp",
            "Throughput Test",
            "Sequential reads and writes of 1024 and 128 KiB, until steady.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.throughput:Throughput",
        ),
        Entry(
            "lat",
            "Latency Test",
            "Response times of single random I/Os of 8, 4 and 0.5 KiB, until steady.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.latency:Latency",
        ),
        Entry(
            "wsat",
            "Write Saturation Test",
            "Random 4 KiB writes from purge until saturation.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.wsat:Wsat",
        ),
        Entry(
            "hir",
            "Host Idle Recovery Test",
            "Random 4 KiB writes in bursts with ever longer pauses, from a steady drive.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.hir:Hir",
            required=False,
        ),
        Entry(
            "xsr",
            "Cross Stimulus Recovery Test",
            "Sequential, random and again sequential writes, for 22 hours.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.xsr:Xsr",
            required=False,
        ),
        Entry(
            "ecw",
            "Enterprise Composite Workload Test",
            "A mix of block sizes over zones of addresses (CBW), by threads and queue depth.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.composite:Composite",
            required=False,
        ),
        Entry(
            "dirth",
            "Demand Intensity / Response Time Histogram Test",
            "Response times and IOPS of one load, by threads and queue depth.",
            ("pts-e", "pts-c"),
            "writecliff.procedures.dirth:Dirth",
            required=False,
        ),
        Entry(
            "datacentre",
            "Data-centre White Paper Tests",
            "Basic figures, mixes, consistency, messenger and servers, from the sustained state.",
            (),
            "writecliff.procedures.campaigns.datacentre:Datacentre",
            campaign="PM863 white paper (2015)",
        ),
        Entry(
            "consistency",
            "Performance Consistency Test",
            "Random 4 KiB writes second by second, whole and with the range limited.",
            (),
            "writecliff.procedures.campaigns.consistency:Consistency",
            campaign="AnandTech (2012-2014)",
        ),
        Entry(
            "act",
            "Aerospike Certification Test",
            "Reads at a fixed rate beside large-block reads and writes, judged hour by hour.",
            (),
            "writecliff.procedures.campaigns.act:Act",
            campaign="Aerospike ACT",
        ),
        Entry(
            "blocksizes",
            "Block Size Comparison",
            "IOPS, latency and power by block size and mix, from steady state.",
            ("pts-c", "pts-e"),
            "writecliff.procedures.campaigns.blocksizes:BlockSizes",
            campaign="Samsung 840 v 850 (2014)",
        ),
        Entry(
            "endurance",
            "Endurance Test",
            "Write amplification of a workload once steady; TBW, DWPD and lifetime from it.",
            (),
            "writecliff.procedures.campaigns.endurance:Endurance",
            campaign="JESD218 and JESD219",
        ),
    )
}


def procedure_from_mapping(name: str, options: Mapping[str, Any]) -> OptionedProcedure:
    """The procedure of a stored run. Raises StoreError if this version does not have it."""
    return procedure_class(name).from_mapping(options)


def procedure_class(name: str) -> type[OptionedProcedure]:
    """Raises StoreError if this version does not have the test."""
    entry = PROCEDURES.get(name)
    if entry is None:
        raise StoreError(
            f"the run is of a test '{name}' that this version does not have",
            hint=f"known tests: {', '.join(PROCEDURES)}",
        )
    module, _, attribute = entry.target.partition(":")
    return cast("type[OptionedProcedure]", getattr(import_module(module), attribute))
