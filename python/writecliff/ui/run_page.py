"""What the page of one run shows besides its plots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from writecliff import units
from writecliff.errors import WritecliffError
from writecliff.report.expectations import Judged
from writecliff.runs.details import Details
from writecliff.store.manifest import Manifest
from writecliff.store.rundir import RunDirectory
from writecliff.ui.library import Library
from writecliff.ui.listing import begun
from writecliff.ui.overlay import figure_text

_LONGEST = 600  # characters of a value
_MOST = 200  # entries of a list
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figure:
    """A headline figure."""

    label: str
    text: str  # with its interval and unit
    interval_of: str
    at: str


@dataclass(frozen=True)
class RunPage:
    """The texts of the page."""

    run: str
    title: str
    status: str
    begun: str
    member_of: str | None
    test: str
    drive: str
    target: str
    verdict: str
    stamp: str
    damage: str
    figures: Sequence[Figure]
    limits: Sequence[str]
    groups: Sequence[tuple[str, Pairs]]  # set-up, drive, options, machine
    warnings: Sequence[str]
    tags: Sequence[str]
    unsteady: bool  # some figure is not of steady state


def run_page(library: Library, run: str) -> RunPage:
    """Raises NoSuchRun, OutsideError, StoreError."""
    found = library.details(run)
    one = {name: "" if value is None else value for name, value in found.run.items()}
    return RunPage(
        run=run,
        title=shown(one["title"] or one["test"] or "Run"),
        status=one["status"],
        begun=begun(found.run["created_utc"]),
        member_of=found.run["member_of"],
        test=one["test"],
        drive=shown(one["drive"]),
        target=shown(one["target"]),
        verdict=shown(one["verdict"]),
        stamp=shown(one["stamp"]),
        damage=shown(one["damage"]),
        figures=[
            Figure(
                shown(each["label"]),
                figure_text(each["value"], each["unit"], each["low"], each["high"], each["steady"]),
                shown(each["interval_of"] or ""),
                shown(each["at"] or ""),
            )
            for each in found.figures[:_MOST]
        ],
        limits=[*_limits(found.manifest)],
        groups=[*_groups(found)],
        warnings=[*_warnings(found.manifest)][:_MOST],
        tags=found.run["tags"] or [],
        unsteady=not all(each["steady"] for each in found.figures),
    )


def shown(value: Any) -> str:
    """A value of a manifest, which may hold anything, as a text of reasonable length."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _limits(manifest: Manifest | None) -> Iterator[str]:
    for item in () if manifest is None else manifest.expectations[:_MOST]:
        with suppress(TypeError):
            yield shown(Judged(**item).said)


def _warnings(manifest: Manifest | None) -> Iterator[str]:
    if manifest is None:
        return
    for item in manifest.deviations:
        yield shown(item.get("text") or item.get("option") or item)
    yield from map(shown, manifest.warnings)
    for item in manifest.interruptions:
        yield shown(f"interrupted after {item.get('after_steps')} steps, resumed")


def _groups(found: Details) -> Iterator[tuple[str, Pairs]]:
    manifest = found.manifest
    if manifest is None:
        return
    device = manifest.device
    setup = [(_words(name), shown(text)) for name, text in manifest.setup.items()]
    options = [(_words(name), shown(value)) for name, value in manifest.options.items()]
    purge = "" if manifest.purge is None else manifest.purge.method
    drive = (
        ("Target", device.target), ("Drive", found.run["drive"]), ("Serial", device.serial),
        ("Firmware", device.firmware), ("Capacity", units.size(device.capacity_bytes)),
        ("Interface", device.interface), ("Flash", device.nand_type), ("Purge", purge),
        ("Scale", f"1/{device.scale:g}" if device.scale != 1 else ""),
        ("Device hash", device.device_hash),
    )  # fmt: skip
    run = (
        ("Edition", manifest.edition), ("Begun", begun(found.run["created_utc"])),
        ("Changed", begun(found.run["updated_utc"])), ("Ended by", manifest.reason),
        ("Steps", found.run["steps"]), ("Seed", manifest.seed),
        ("Time of the drive", units.duration(found.run["device_time_ns"])),
        ("Written", units.size(found.run["host_write_bytes"])),
        ("Command", found.run["command"]),
    )  # fmt: skip
    machine = {**manifest.versions, **({} if device.simulated else manifest.host)}
    yield "Run", _known(run)
    yield "Drive", _known(drive)
    yield "Set-up", _known(setup)
    yield "Options", _known(options)
    yield "Machine and versions", _known((_words(k), v) for k, v in machine.items())


def _known(pairs: Any) -> Pairs:
    known = [
        (name, shown(value)) for name, value in pairs if value not in (None, "", units.UNKNOWN)
    ]
    return known[:_MOST]


def _words(name: str) -> str:
    text = shown(name).replace("_", " ")
    return text[:1].upper() + text[1:]


def doing(library: Library, run: str) -> dict[str, object]:
    """What a run is doing now, as its directory tells it: `status`, `steps`, and `says`, a line.
    Raises NoSuchRun, OutsideError, StoreError.
    """
    with library.folder(run) as folder:
        opened = RunDirectory.open(folder)
        status, steps, manifest = opened.status, opened.steps, opened.manifest
        count = units.plural(steps, "step")
        says = f"{status}, {count}"
        if status == "running":
            says = ", ".join(filter(None, ("running", _phase(manifest), f"{count} complete",
                                           _latest(opened, steps))))  # fmt: skip
    return {"status": status, "steps": steps, "says": says}


def _phase(manifest: Manifest) -> str:
    last: Mapping[str, Any] = manifest.phases[-1] if manifest.phases else {}
    name, detail = shown(last.get("name", "")), shown(last.get("detail", ""))
    return f"{name} ({detail})" if name and detail else name


def _latest(opened: RunDirectory, steps: int) -> str:
    """The last step that was made."""
    with suppress(WritecliffError):
        rows = opened.rows_after("rounds", steps - 1, ("seq", "label", "round", "iops")).to_pylist()
        if rows:
            row = rows[-1]
            part = f"round {row['round']}, " if row["round"] else ""
            rate = "" if row["iops"] is None else f" with {units.significant(row['iops'])} IOPS"
            return f"the last one {part}{shown(row['label'])}{rate}"
    return ""
