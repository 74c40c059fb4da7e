"""What the catalogue keeps of a run, read from its directory. No run makes this fail: what cannot
be read is a damaged run, with the reason."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from writecliff.errors import WritecliffError
from writecliff.procedures.registry import OWN, PROCEDURES
from writecliff.report.kept_figures import (
    KEPT_NAME,
    figures_mapping,
    manifest_digest,
    parse_kept_figures,
)
from writecliff.runs.columns import DIGEST, FIGURES, HAS_FIGURES, RUNS, TOKEN, UNENDED
from writecliff.runs.place import Found, Place
from writecliff.runs.tags import TagsError, read_tags
from writecliff.store.manifest import MANIFEST_NAME, Manifest, parse_manifest

Entry = dict[str, Any]
_KINDS = {"trace_replay": "replay"}  # of what is no test; others have the name of the procedure
_LONG_OPTION = 400  # characters of JSON
_SUMMED = ("verdict", "stamp", "steps", "device_time_ns", "host_write_bytes")


def read_entry(place: Place, found: Found, before: Mapping[str, Any] | None = None) -> Entry | None:
    """The row of a run; None if it has gone. `before` is the row that the catalogue had, whose
    figures stay while the manifest does."""
    entry = _nothing(found)
    if not found.has_manifest:
        return {**entry, "status": "damaged", "damage": f"it has no {MANIFEST_NAME}"}
    try:
        data = place.read(found.run, MANIFEST_NAME)
        entry |= _of_manifest(place, found, data)
        entry["tags"] = read_tags(place, found.run)
        entry |= _kept(place, found.run, entry[DIGEST], before)
    except FileNotFoundError:
        return None
    except TagsError as error:
        entry |= {"damage": _reason(error, place, found.run)}
    except WritecliffError as error:
        entry |= {"status": "damaged", "damage": _reason(error, place, found.run)}
    return _checked(entry, found)


def with_figures(place: Place, entry: Mapping[str, Any]) -> Entry:
    """The row with its figures, made from the run as its report would."""
    if entry[HAS_FIGURES] or entry["status"] == "damaged":
        return dict(entry)
    from writecliff.report import report_of
    from writecliff.store.rundir import RunDirectory

    run = entry["run"]
    try:
        with place.as_folder(run) as folder:
            report = report_of(RunDirectory.open(folder))
            made = figures_mapping(report)
    except WritecliffError as error:
        reason = _reason(error, place, run)
        if str(error).startswith("damaged: "):
            return {**entry, "status": "damaged", "damage": reason}
        ended = entry["status"] == "complete"  # others may have measured nothing
        without = f"no figures: {reason}" if ended else None
        return {**entry, HAS_FIGURES: not entry[UNENDED], "damage": without}
    except Exception as error:  # a run that another version wrote may hold anything
        return {**entry, HAS_FIGURES: True, "damage": f"no figures: {error!r}"}
    return {**entry, **_of_figures(made), HAS_FIGURES: not entry[UNENDED]}


def _nothing(found: Found) -> Entry:
    entry: Entry = {column.name: None for column in RUNS}
    return entry | {
        "run": found.run,
        "name": found.run.rpartition("/")[2],
        "member_of": found.member_of,
        "tags": [],
        "figures": [],
        TOKEN: found.token,
        DIGEST: "",
        HAS_FIGURES: False,
        UNENDED: False,
    }


def _checked(entry: Entry, found: Found) -> Entry:
    """The row, if all of it is what its columns hold: a manifest may say anything."""
    for column in RUNS:
        value = entry[column.name]
        if value is None or column.name == "tags":
            continue
        if column.kind == "varchar" and isinstance(value, str):
            entry[column.name] = value.encode("utf-8", "backslashreplace").decode()
        elif not _fits(value, column.kind):
            why = f"{column.name} is {value!r} in its {MANIFEST_NAME}"
            return _nothing(found) | {"status": "damaged", "damage": why[:_LONG_OPTION]}
    return entry


def _fits(value: Any, kind: str) -> bool:
    if kind == "bigint":
        return type(value) is int and -(2**63) <= value < 2**63
    kinds: dict[str, Any] = {"double": (int, float), "boolean": bool, "timestamp": datetime}
    return kind in kinds and isinstance(value, kinds[kind])


def _of_manifest(place: Place, found: Found, data: bytes) -> Entry:
    manifest = parse_manifest(data, place.path_of(found.run) / MANIFEST_NAME)
    status: str = manifest.status
    unended = status == "running"
    if unended and not place.is_running(found.run):
        status = "interrupted"
    device, versions = manifest.device, manifest.versions
    names = ("serial", "firmware", "capacity_bytes", "interface", "simulated", "scale",
             "device_hash", "target")  # fmt: skip
    return {
        **{name: getattr(device, name) for name in names},
        **{name: getattr(manifest, name) for name in ("title", "edition", "ended_by", "reason")},
        "kind": _kind(manifest.procedure),
        "test": manifest.procedure,
        "status": status,
        "drive": " ".join(filter(None, (device.vendor, device.model))),
        "seed": manifest.seed,
        "options_json": json.dumps(_short(manifest)),
        "command": shlex.join(map(str, manifest.command)),
        "created_utc": _utc(manifest.created),
        "updated_utc": _utc(manifest.updated),
        "limits_met": _limits_met(manifest),
        "warnings": len(manifest.warnings),
        "writecliff_version": versions.get("writecliff"),
        "fio_version": None if device.simulated else versions.get("fio"),
        "kernel": versions.get("kernel"),
        "cpu": manifest.host.get("cpu"),
        UNENDED: unended,
        DIGEST: manifest_digest(data),
    }


def _kind(procedure: str) -> str:
    if procedure in OWN:
        return _KINDS.get(procedure, procedure)
    entry = PROCEDURES.get(procedure)
    return "campaign" if entry is not None and entry.campaign else "test"


def _short(manifest: Manifest) -> Mapping[str, Any]:
    """The options; of loads of one's own, which hold whole files and answers, those that are
    short."""
    if manifest.procedure not in OWN:
        return manifest.options
    return {k: v for k, v in manifest.options.items() if len(json.dumps(v)) <= _LONG_OPTION}


def _limits_met(manifest: Manifest) -> bool | None:
    if not manifest.expectations:
        return None
    return all(item.get("result") == "met" for item in manifest.expectations)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)


def _kept(place: Place, run: str, digest: str, before: Mapping[str, Any] | None) -> Entry:
    """The figures that the run directory keeps, or that the catalogue has of the same state."""
    try:
        data = place.read(run, KEPT_NAME)
    except FileNotFoundError:
        kept = None
    else:
        kept = parse_kept_figures(data, place.path_of(run) / KEPT_NAME, digest)
    if kept is not None:
        try:
            return {**_of_figures(kept), HAS_FIGURES: True}
        except (KeyError, TypeError, AttributeError):
            return {}
    if before is not None and before[HAS_FIGURES] and before[DIGEST] == digest:
        return {name: before[name] for name in (*_SUMMED, "figures", HAS_FIGURES)}
    return {}


def _of_figures(made: Mapping[str, Any]) -> Entry:
    own = [column.name for column in FIGURES[1:]]
    rows = []
    for item in made["figures"]:
        interval = item["interval"] or {}
        row = {**item, "low": interval.get("low"), "high": interval.get("high"),
               "interval_of": interval.get("of")}  # fmt: skip
        rows.append({name: row[name] for name in own})
    return {**{name: made[name] for name in _SUMMED}, "figures": rows}


def _reason(error: WritecliffError, place: Place, run: str) -> str:
    """The error without the path of the run, which stands beside it."""
    text = str(error).replace(f"{place.path_of(run)}/", "")
    return text.removeprefix("damaged: ")
