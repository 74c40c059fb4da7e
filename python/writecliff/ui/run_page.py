"""Page of a run without its plots."""

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

_LONGEST = 600  # Maximum length of a value, in characters.
_MOST = 200  # Maximum number of entries in a list.
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figure:
    """A headline figure."""

    label: str
    text: str  # Figures with their intervals and units.
    interval_of: str
    at: str


@dataclass(frozen=True)
class RunPage:
    """Texts on the page."""

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
    groups: Sequence[tuple[str, Pairs]]  # Set-up, drive, options and machine.
    warnings: Sequence[str]
    tags: Sequence[str]
    unsteady: bool  # `True` if a figure was not measured in steady state.


def run_page(library: Library, run: str) -> RunPage:
    """Return the texts for a run's page.

    Raises:
        NoSuchRun: If the store does not contain the run.
        OutsideError: If the run contains a link to outside the store.
        StoreError: If the run is damaged.
    """
    details = library.details(run)
    columns = {name: "" if value is None else value for name, value in details.run.items()}
    return RunPage(
        run=run,
        title=shown(columns["title"] or columns["test"] or "Run"),
        status=columns["status"],
        begun=begun(details.run["created_utc"]),
        member_of=details.run["member_of"],
        test=columns["test"],
        drive=shown(columns["drive"]),
        target=shown(columns["target"]),
        verdict=shown(columns["verdict"]),
        stamp=shown(columns["stamp"]),
        damage=shown(columns["damage"]),
        figures=[
            Figure(
                shown(each["label"]),
                figure_text(each["value"], each["unit"], each["low"], each["high"], each["steady"]),
                shown(each["interval_of"] or ""),
                shown(each["at"] or ""),
            )
            for each in details.figures[:_MOST]
        ],
        limits=[*_limits(details.manifest)],
        groups=[*_groups(details)],
        warnings=[*_warnings(details.manifest)][:_MOST],
        tags=details.run["tags"] or [],
        unsteady=not all(each["steady"] for each in details.figures),
    )


def shown(value: Any) -> str:
    """Return a manifest value of any type as text of limited length."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _limits(manifest: Manifest | None) -> Iterator[str]:
    for item in () if manifest is None else manifest.expectations[:_MOST]:
        with suppress(TypeError):
            yield shown(Judged(**item).summary)


def _warnings(manifest: Manifest | None) -> Iterator[str]:
    if manifest is None:
        return
    for item in manifest.deviations:
        yield shown(item.get("text") or item.get("option") or item)
    yield from map(shown, manifest.warnings)
    for item in manifest.interruptions:
        steps = item.get("after_steps")
        text = units.plural(steps, "step") if isinstance(steps, int) else f"{steps} steps"
        yield shown(f"interrupted after {text}, resumed")


def _groups(details: Details) -> Iterator[tuple[str, Pairs]]:
    manifest = details.manifest
    if manifest is None:
        return
    device = manifest.device
    setup = [(_words(name), shown(text)) for name, text in manifest.setup.items()]
    options = [(_words(name), shown(value)) for name, value in manifest.options.items()]
    purge = "" if manifest.purge is None else manifest.purge.method
    drive = (
        ("Target", device.target), ("Drive", details.run["drive"]), ("Serial", device.serial),
        ("Firmware", device.firmware), ("Capacity", units.size(device.capacity_bytes)),
        ("Interface", device.interface), ("Flash", device.nand_type), ("Purge", purge),
        ("Scale", f"1/{device.scale:g}" if device.scale != 1 else ""),
        ("Device hash", device.device_hash),
    )  # fmt: skip
    run = (
        ("Edition", manifest.edition), ("Started", begun(details.run["created_utc"])),
        ("Changed", begun(details.run["updated_utc"])), ("Ended by", manifest.reason),
        ("Steps", details.run["steps"]), ("Seed", manifest.seed),
        ("Device time", units.duration(details.run["device_time_ns"])),
        ("Written", units.size(details.run["host_write_bytes"])),
        ("Command", details.run["command"]),
    )  # fmt: skip
    machine = {**manifest.versions, **({} if device.simulated else manifest.host)}
    yield "Run", _known_pairs(run)
    yield "Drive", _known_pairs(drive)
    yield "Set-up", _known_pairs(setup)
    yield "Options", _known_pairs(options)
    yield "Machine and versions", _known_pairs((_words(k), v) for k, v in machine.items())


def _known_pairs(pairs: Any) -> Pairs:
    measured = [
        (name, shown(value)) for name, value in pairs if value not in (None, "", units.UNKNOWN)
    ]
    return measured[:_MOST]


def _words(name: str) -> str:
    text = shown(name).replace("_", " ")
    return text[:1].upper() + text[1:]


def doing(library: Library, run: str) -> dict[str, object]:
    """Return the progress of a run, read from its directory: `status`, `steps`, and `says`, a line.

    Raises:
        NoSuchRun: If the store does not contain the run.
        OutsideError: If the run contains a link to outside the store.
        StoreError: If the run is damaged.
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
    """Return the last complete step as text."""
    with suppress(WritecliffError):
        rows = opened.rows_after("rounds", steps - 1, ("seq", "label", "round", "iops")).to_pylist()
        if rows:
            row = rows[-1]
            part = f"round {row['round']}, " if row["round"] else ""
            rate = "" if row["iops"] is None else f" with {units.significant(row['iops'])} IOPS"
            return f"the last step {part}{shown(row['label'])}{rate}"
    return ""
