"""What a comparison reads of a run: its set-up, its headline figures, its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.options import value_text
from writecliff.procedures.registry import entry_of, procedure_class
from writecliff.report import report_of
from writecliff.report.compared import Curve, Grid
from writecliff.report.damage import damage_reported
from writecliff.report.header import OWN_PARAMETER
from writecliff.report.headline import Headline
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.report.base import TestReport
    from writecliff.store.manifest import Manifest

DRIVE = "drive"
_OURS = "writecliff simulated "  # before the names of all drives of the catalogue
_HASH = 12  # digits of a hash that are shown: as many as tell descriptions apart
# In words: what tells two runs of one drive apart is looked for in this order, options between.
_FIRST = ("firmware", "capacity")
_LAST = (
    "seed",
    "write cache",
    "edition",
    "target",
    "description",
    "serial number",
    "writecliff",
    "definition",
)


@dataclass(frozen=True)
class Run:
    """One run of a test."""

    path: Path
    test: str
    created: str  # ISO 8601
    setup: Mapping[str, str | None]  # by what it is: "drive", "seed", "queue depth"
    headlines: Sequence[Headline]
    curves: Sequence[Curve] = ()
    grids: Sequence[Grid] = ()
    status: str = "complete"
    stamp: str = ""  # "NOT PTS-CONFORMANT"
    simulated: bool = True

    @property
    def drive(self) -> str:
        """The name of the drive."""
        return self.setup[DRIVE] or units.UNKNOWN


@dataclass(frozen=True)
class Difference:
    """A part of the set-up that is not the same for all."""

    what: str
    values: Sequence[str | None]  # by contender; None: not known, or it did not run these tests
    tests: Sequence[str] = ()  # of several; empty: all that are in common


def read_run(path: Path, known: dict[Path, Run] | None = None) -> Run:
    """Read a run directory, or take the run from `known`, to which it is added otherwise.

    Raises:
        StoreError: damaged, without a report, or nothing measured yet.
    """
    key = path.resolve()
    if known is not None and key in known:
        return known[key]
    with damage_reported(path), RunDirectory.open(path) as directory:
        run = run_of(report_of(directory))
    if known is not None:
        known[key] = run
    return run


def run_of(report: TestReport) -> Run:
    """The run of a report. Raises StoreError as `read_run` does."""
    data, manifest = report.data, report.data.manifest
    with damage_reported(data.run.path):
        return Run(
            path=data.run.path,
            test=manifest.procedure,
            created=manifest.created,
            setup=setup_of(manifest),
            headlines=report.quoted,
            curves=report.curves(),
            grids=report.grids(),
            status=data.run.status,
            stamp=data.stamp,
            simulated=manifest.device.simulated,
        )


def setup_of(manifest: Manifest) -> Mapping[str, str | None]:
    """The set-up of a run, by what it is in words: drive, options, seed, versions."""
    device, cache, versions = manifest.device, manifest.write_cache, manifest.versions
    name = " ".join(filter(None, (device.vendor, device.model))).removeprefix(_OURS)
    found: dict[str, Any] = {
        DRIVE: name or device.target,
        "target": device.target,
        "firmware": device.firmware,
        "serial number": None if device.simulated else device.serial,  # follows from the next
        "description": None if device.device_hash is None else device.device_hash[:_HASH],
        "capacity": units.size(device.capacity_bytes),
        "class": {True: "HDD", False: "SSD", None: None}[device.rotational],
        "interface": device.interface,
        "flash": device.nand_type,
        "sector": f"{device.sector_bytes} B",
        "scale": device.scale_text or None,
        "PCIe": device.pcie,
        "adapter": device.adapter,
        "edition": manifest.edition,
        **{name.replace("_", " "): _option(value) for name, value in _options(manifest).items()},
        "seed": str(manifest.seed),
        "purge": None if manifest.purge is None else manifest.purge.method,
        "write cache": None if cache is None else _option(cache.enabled),
        "power state": None if manifest.power is None else str(manifest.power.state),
        "writecliff": versions.get("writecliff"),
    }
    if not device.simulated:  # what a simulated drive does depends on none of it
        host = manifest.host
        found |= {"fio": versions.get("fio"), "kernel": versions.get("kernel")}
        found |= {name.replace("_", " "): text for name, text in host.items()}
    return found


def _options(manifest: Manifest) -> Mapping[str, Any]:
    """The options of a test; of other runs the parameters that their reports show."""
    if not entry_of(manifest.procedure).is_user_load:
        kind = procedure_class(manifest.procedure).options_type
        measured = {item.name for item in fields(kind) if item.metadata["measured"]}
        return {name: v for name, v in manifest.options.items() if name not in measured}
    shown = {name: text for name, text in manifest.setup.items() if name.startswith(OWN_PARAMETER)}
    known = {name.removeprefix(OWN_PARAMETER).lower(): text for name, text in shown.items()}
    return {**known, "precondition": manifest.options.get("precondition")}


def _option(value: Any) -> str | None:
    if isinstance(value, list):
        value = tuple(value)
    return None if value is None else value_text(value)


def telling(what: str) -> tuple[int, int]:
    """A key that sorts parts of the set-up by how well they tell two runs apart."""
    if what in _FIRST:
        return 0, _FIRST.index(what)
    if what in _LAST:
        return 2, _LAST.index(what)
    return 1, 0
