"""Serve a simulated drive to other programs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.output import emit_json, factor_text, latency_text, pairs
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.serve import DriveServer, Figures, Snapshot

GROUP = "drives", 3
_LOOK_S = 1.0


def serve(
    device: str,
    *,
    listen: tuple[str, ...] = (),
    allow_host: tuple[str, ...] = (),
    nbd: tuple[str, ...] = (),
    fast: bool = False,
    slow_down: float | None = None,
    state: Path | None = None,
    contents: Path | None = None,
    compress: bool = False,
    memory: str | None = None,
    precondition: str = "none",
    seed: int = 1,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Serve a simulated drive in real time, until Ctrl-C or SIGTERM.

    Programs use it as a block device that takes the time that the simulated drive takes. The
    address is printed on stderr when the drive is ready.

    Parameters
    ----------
    device
        The drive: sim:NAME or sim:PATH.toml.
    listen
        Accept NVMe/TCP hosts at HOST:PORT, such as 127.0.0.1:4420; may be given more than once. The
        host's network is trusted: there is neither TLS nor a password.
    allow_host
        Of NVMe/TCP hosts, admit only this one, by its NVMe qualified name; may be given more than
        once.
    nbd
        Accept NBD clients (QEMU, nbd-client, libnbd, fio) at unix:PATH or HOST:PORT; may be given
        more than once. There is no access control: who can connect can read and write.
    fast
        Answer as soon as the data are there: the drive's state changes, its time stands still.
    slow_down
        Stretch the drive's time by this factor, for drives that are faster than this machine.
    state
        Restore drive and data from this file if it exists; write it at the end.
    contents
        Keep the data in this sparse file instead of in memory.
    compress
        Compress the data in memory (LZ4).
    memory
        Refuse writes when the data take more memory than this, such as 8GB.
    precondition
        State of a new drive: none, fill, sustained or used:40%.
    seed
        Of the drive's random choices.
    json
        At the end, print {"schema", "target", "addresses", "operations", "waf", "lateness", ...}.
    quiet
        Show nothing on stderr but the addresses and warnings.
    """
    from writecliff.serve import DriveServer, ServeOptions
    from writecliff.serve.addresses import check_nvme_addresses

    if not nbd and not listen:
        raise ConfigError(
            "no address to serve at",
            hint="give --listen 127.0.0.1:4420, or --nbd unix:/tmp/drive.sock or 127.0.0.1:10809",
        )
    if allow_host and not listen:
        raise ConfigError("--allow-host is about hosts of NVMe/TCP", hint="give --listen, too")
    check_nvme_addresses(listen)
    if fast and slow_down is not None:
        raise ConfigError("--fast has no time that --slow-down could stretch")
    options = ServeOptions(
        slow_down=None if fast else 1.0 if slow_down is None else slow_down,
        state=state,
        contents=contents,
        compress=compress,
        memory_limit_bytes=None if memory is None else units.parse_size(memory),
        precondition=precondition,
        seed=seed,
    )
    ended = threading.Event()
    from writecliff.signals import TERMINATIONS, handling

    server = DriveServer(device, options)  # may take long, and has nothing to lose
    with handling((signal.SIGINT, *TERMINATIONS), lambda *_: ended.set()):
        try:
            if listen:
                server.listen_nvme(listen, hosts=allow_host)
            for address in nbd:
                server.listen_nbd(address)
            last = _serve(server, ended, Screen(quiet=quiet))
        finally:
            server.end()
    summary = _summary(server, last, options.slow_down, state)
    if json:
        emit_json(summary, "serve")
    else:
        print(_text(summary))
    return 0


def _serve(server: DriveServer, ended: threading.Event, screen: Screen) -> Snapshot:
    """Serve until `ended`; returns the drive as it was then."""
    from writecliff.cli.output import log
    from writecliff.cli.serve_view import ServeView, lateness_warning

    for address in server.addresses:
        log(f"serving {server.identity.target} at {address}")
    for warning in server.warnings:
        log(f"warning: {warning}")
    view = ServeView(server)
    warned = False
    with screen.showing(view.render):
        while True:
            is_over = ended.wait(_LOOK_S)
            last = view.look()
            if last.is_late and not warned:
                log(f"warning: {lateness_warning(last)}")
                warned = True
            if is_over:
                return last


def _summary(
    server: DriveServer, last: Snapshot, slow_down: float | None, state: Path | None
) -> dict[str, Any]:
    from writecliff.cli.serve_view import lateness_warning
    from writecliff.serve import difference

    figures: Figures = difference(server.first, last)
    return {
        "target": server.identity.target,
        "addresses": server.addresses,
        "slow_down": slow_down,
        "wall_s": figures.seconds,
        "device_time_ns": last.drive_time_ns - server.first.drive_time_ns,
        "operations": {name: asdict(one) for name, one in figures.operations.items()},
        "waf": figures.waf,
        "lateness": figures.lateness,
        "lateness_share": last.lateness_share,
        "counters": dict(last.counters),
        "contents_bytes": last.contents_bytes,
        "state": state,
        "warnings": [*server.warnings, *([lateness_warning(last)] if last.is_late else [])],
    }


def _text(summary: Mapping[str, Any]) -> str:
    lines = [("served", f"{summary['target']} for {units.duration(summary['wall_s'] * 1e9)}")]
    for name, one in summary["operations"].items():
        if one["requests"]:
            text = f"{one['requests']:,} ({units.number(one['iops'])} IOPS), "
            text += units.size(one["bytes"])
            if one["latency"]["mean_ns"] is not None:
                latency = one["latency"]
                text += f", mean {latency_text(latency['mean_ns'])}"
                text += f", 99 % {latency_text(latency['p99_ns'])}"
            lines.append((name, text))
    lines.append(("WAF", factor_text(summary["waf"])))
    lateness = summary["lateness"]
    late = f"mean {latency_text(lateness['mean_ns'])}, 99 % {latency_text(lateness['p99_ns'])}"
    lines.append(("time in the server" if summary["slow_down"] is None else "lateness", late))
    if summary["state"] is not None:
        lines.append(("state", str(summary["state"])))
    return pairs(lines)
