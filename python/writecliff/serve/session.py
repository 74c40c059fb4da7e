"""A session of a served drive as plain data: for `--json`, and for its run directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.serve.figures import LATENESS_SHARE_MAX, difference

if TYPE_CHECKING:
    from writecliff.devices import DeviceDescription
    from writecliff.serve.figures import Snapshot, StreamWrites
    from writecliff.serve.server import DriveServer

_YEAR_S = 365.25 * 86_400
PURPOSE = "a lifetime"  # in the message for hard disks
NUMBERS_SHOWN = 64  # stream numbers; clients may use 65,535


def lateness_warning(now: Snapshot) -> str:
    """What it means that the server is late, and what to do."""
    share = 100 * (now.lateness_share or 0.0)
    return (
        f"replies are late by {share:.0f} % of the drive's own latency (more than "
        f"{100 * LATENESS_SHARE_MAX:.0f} %): clients measure this machine too; "
        "stretch the drive's time with --slow-down"
    )


def session_mapping(server: DriveServer, last: Snapshot) -> dict[str, object]:
    """What was done from the begin of serving to `last`: times in ns by the drive's clock, sizes in
    bytes, unknown values None.
    """
    figures, slow_down = difference(server.first, last), server.options.slow_down
    return {
        "target": server.identity.target,
        "addresses": list(server.addresses),
        "transports": sorted({uri.partition(":")[0] for uri in server.addresses}),
        "slow_down": slow_down,
        "restored": server.restored,
        "wall_s": figures.seconds,
        "device_time_ns": last.drive_time_ns - server.first.drive_time_ns,
        "operations": {name: asdict(one) for name, one in figures.operations.items()},
        "waf": figures.waf,
        "lifetime": lifetime_mapping(server.description, figures.waf, last, slow_down),
        "streams": stream_rows(server.description, last, slow_down),
        "mixed_moved_bytes": last.mixed_moved_bytes,
        "lateness": figures.lateness,
        "lateness_share": last.lateness_share,
        "counters": dict(last.counters),
        "contents_bytes": last.contents_bytes,
        "power_cycles": last.power_cycles,
        "power_cuts": [asdict(cut) for cut in server.power_cuts],
        "warnings": [*server.warnings, *([lateness_warning(last)] if last.is_late else [])],
    }


def _seconds(last: Snapshot, slow_down: float | None) -> float | None:
    """The drive's time since serving began; None without timing."""
    return None if slow_down is None else last.wall_ns / slow_down / 1e9


def lifetime_mapping(
    device: DeviceDescription, waf: float | None, last: Snapshot, slow_down: float | None
) -> dict[str, object] | None:
    """What the flash lasts at `waf`, if it is written all the time at the rate of the session; None
    without rated cycles or writes.
    """
    endurance_bytes = _endurance_bytes(device, waf)
    if endurance_bytes is None:
        return None
    seconds = _seconds(last, slow_down)
    rate = last.operations["write"].bytes / seconds if seconds else None
    return {
        "endurance_bytes": endurance_bytes,
        "write_bytes_per_s": rate,
        "years": endurance_bytes / rate / _YEAR_S if rate else None,
        "rated_cycles": device.rated_cycles,
    }


def _endurance_bytes(device: DeviceDescription, waf: float | None) -> float | None:
    """Bytes that can be written to the whole drive until its flash has its rated cycles."""
    if not waf or device.rated_cycles is None or device.raw_bytes is None:
        return None
    return device.rated_cycles * device.flash_bytes(PURPOSE) / waf


def stream_rows(
    device: DeviceDescription, last: Snapshot, slow_down: float | None
) -> list[dict[str, Any]]:
    """Each stream of the drive that clients wrote: with which identifiers, how much, what was moved
    of it, and what the drive lasts if all that was written in the session were written like it.
    """
    by_stream: dict[tuple[str, int], list[StreamWrites]] = {}
    for one in last.streams[:NUMBERS_SHOWN]:
        known = one.drive_stream is not None
        key = ("drive", one.drive_stream or 0) if known else ("number", one.number)
        by_stream.setdefault(key, []).append(one)
    rows = []
    for ones in by_stream.values():
        size, moved = sum(one.bytes for one in ones), ones[0].moved_bytes
        waf = (size + moved) / size if moved is not None and size else None
        lifetime = lifetime_mapping(device, waf, last, slow_down) or {}
        rows.append(
            {
                "numbers": [one.number for one in ones],
                "requests": sum(one.requests for one in ones),
                "written_bytes": size,
                "moved_bytes": moved,
                "waf": waf,
                "endurance_bytes": lifetime.get("endurance_bytes"),
                "years": lifetime.get("years"),
            }
        )
    return rows


def answer_text(session: Mapping[str, Any]) -> str:
    """The outcome in one line."""
    operations = session["operations"]
    done = [
        f"{one['requests']:,} {name}{'e' if name.endswith('sh') else ''}s"
        + (f" ({units.size(one['bytes'])})" if one["bytes"] else "")
        for name, one in operations.items()
        if one["requests"]
    ]
    if not done:
        return "no request was made"
    said = " and ".join(filter(None, (", ".join(done[:-1]), done[-1])))
    if session["waf"] is not None:
        said += f"; write amplification {session['waf']:.2f}"
    lifetime = session["lifetime"]
    if lifetime is not None and lifetime["years"] is not None:
        said += f", so the flash lasts {units.significant(lifetime['years'])} years at this rate"
    return said
