"""A served drive's session as plain data, for `--json` and its run directory."""

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
PURPOSE = "a lifetime"  # Purpose named in the error for hard disks.
NUMBERS_SHOWN = 64  # Maximum stream number displayed; clients may use 65,535.


def lateness_warning(now: Snapshot) -> str:
    """Return a warning about late replies, with a remedy."""
    share = 100 * (now.lateness_share or 0.0)
    return (
        f"replies are late by {share:.0f} % of the drive's own latency (more than "
        f"{100 * LATENESS_SHARE_MAX:.0f} %), so clients also measure this machine; stretch the "
        f"drive's time with --slow-down"
    )


def session_mapping(server: DriveServer, last: Snapshot) -> dict[str, object]:
    """Return the session from the server's start to `last`.

    Times are in ns by the drive clock, sizes are in bytes, and unknown values are None.
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
        "operations": {name: asdict(operation) for name, operation in figures.operations.items()},
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
    """Return the drive time since the server's start, or None without timing."""
    return None if slow_down is None else last.wall_ns / slow_down / 1e9


def lifetime_mapping(
    device: DeviceDescription, waf: float | None, last: Snapshot, slow_down: float | None
) -> dict[str, object] | None:
    """Return the flash lifetime at `waf` and the session's average write rate.

    The result is `None` if the drive has no rated cycles or if nothing was written.
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
    """Return the number of bytes that can be written until the flash reaches its rated cycles."""
    if not waf or device.rated_cycles is None or device.raw_bytes is None:
        return None
    return device.rated_cycles * device.flash_bytes(PURPOSE) / waf


def stream_rows(
    device: DeviceDescription, last: Snapshot, slow_down: float | None
) -> list[dict[str, Any]]:
    """Return the writes, relocated bytes and lifetime for each stream written by clients.

    The lifetime assumes that all writes in the session behave like the stream's writes.
    """
    by_stream: dict[tuple[str, int], list[StreamWrites]] = {}
    for writes in last.streams[:NUMBERS_SHOWN]:
        has_stream = writes.drive_stream is not None
        key = ("drive", writes.drive_stream or 0) if has_stream else ("number", writes.number)
        by_stream.setdefault(key, []).append(writes)
    rows = []
    for group in by_stream.values():
        size, moved = sum(writes.bytes for writes in group), group[0].moved_bytes
        waf = (size + moved) / size if moved is not None and size else None
        lifetime = lifetime_mapping(device, waf, last, slow_down) or {}
        rows.append(
            {
                "numbers": [writes.number for writes in group],
                "requests": sum(writes.requests for writes in group),
                "written_bytes": size,
                "moved_bytes": moved,
                "waf": waf,
                "endurance_bytes": lifetime.get("endurance_bytes"),
                "years": lifetime.get("years"),
            }
        )
    return rows


def answer_text(session: Mapping[str, Any]) -> str:
    """Return the outcome as a single line."""
    operations = session["operations"]
    done = [
        f"{operation['requests']:,} {name}{'e' if name.endswith('sh') else ''}s"
        + (f" ({units.size(operation['bytes'])})" if operation["bytes"] else "")
        for name, operation in operations.items()
        if operation["requests"]
    ]
    if not done:
        return "no request was made"
    sentence = " and ".join(filter(None, (", ".join(done[:-1]), done[-1])))
    if session["waf"] is not None:
        sentence += f"; write amplification {session['waf']:.2f}"
    lifetime = session["lifetime"]
    if lifetime is not None and lifetime["years"] is not None:
        sentence += (
            f", so the flash lasts {units.significant(lifetime['years'])} years at this rate"
        )
    return sentence
