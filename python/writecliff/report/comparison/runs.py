"""The compared data of a run: set-up, headline figures and curves."""

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
_OURS = "writecliff simulated "  # Prefix of all catalogue drives.
_HASH = 12  # Number of displayed hash digits, which suffices to distinguish device files.
# Order of the settings that may distinguish runs on the same drive. Options come in between.
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
    """A single run of a test, as used in comparisons."""

    path: Path
    test: str
    created: str  # Start time (ISO 8601).
    setup: Mapping[str, str | None]  # Values by setting: "drive", "seed", "queue depth".
    headlines: Sequence[Headline]
    curves: Sequence[Curve] = ()
    grids: Sequence[Grid] = ()
    status: str = "complete"
    stamp: str = ""  # Badge text, such as "NOT PTS-CONFORMANT".
    simulated: bool = True

    @property
    def drive(self) -> str:
        """Drive name."""
        return self.setup[DRIVE] or units.UNKNOWN


@dataclass(frozen=True)
class Difference:
    """A setting that differs between contenders."""

    what: str
    # Setting by contender; `None` if unknown, or if the contender did not run these tests.
    values: Sequence[str | None]
    tests: Sequence[str] = ()  # Tests that the setting affects; empty for all shared tests.


def read_run(path: Path, cache: dict[Path, Run] | None = None) -> Run:
    """Read a run directory.

    Runs in `cache`, keyed by resolved path, are not read again; newly read runs are added.

    Raises:
        StoreError: If the run is damaged, or if it has no report or no measurements.
    """
    key = path.resolve()
    if cache is not None and key in cache:
        return cache[key]
    with damage_reported(path), RunDirectory.open(path) as directory:
        run = run_of(report_of(directory))
    if cache is not None:
        cache[key] = run
    return run


def run_of(report: TestReport) -> Run:
    """Return a report's run.

    Raises:
        StoreError: see `read_run`.
    """
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
    """Return a run's set-up (drive, options, seed, versions) by setting name."""
    device, cache, versions = manifest.device, manifest.write_cache, manifest.versions
    name = " ".join(filter(None, (device.vendor, device.model))).removeprefix(_OURS)
    setup: dict[str, Any] = {
        DRIVE: name or device.target,
        "target": device.target,
        "firmware": device.firmware,
        # The hash determines a simulated drive's serial number.
        "serial number": None if device.simulated else device.serial,
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
    if not device.simulated:  # Simulated drives do not depend on the host.
        host = manifest.host
        setup |= {"fio": versions.get("fio"), "kernel": versions.get("kernel")}
        setup |= {name.replace("_", " "): text for name, text in host.items()}
    return setup


def _options(manifest: Manifest) -> Mapping[str, Any]:
    """Return a test's options or, for other runs, the parameters that their reports show."""
    if not entry_of(manifest.procedure).is_user_load:
        kind = procedure_class(manifest.procedure).options_type
        measured = {item.name for item in fields(kind) if item.metadata["measured"]}
        return {name: v for name, v in manifest.options.items() if name not in measured}
    shown = {name: text for name, text in manifest.setup.items() if name.startswith(OWN_PARAMETER)}
    available = {name.removeprefix(OWN_PARAMETER).lower(): text for name, text in shown.items()}
    return {**available, "precondition": manifest.options.get("precondition")}


def _option(value: Any) -> str | None:
    if isinstance(value, list):
        value = tuple(value)
    return None if value is None else value_text(value)


def telling(what: str) -> tuple[int, int]:
    """Return a key that sorts settings by how well they distinguish two runs."""
    if what in _FIRST:
        return 0, _FIRST.index(what)
    if what in _LAST:
        return 2, _LAST.index(what)
    return 1, 0
