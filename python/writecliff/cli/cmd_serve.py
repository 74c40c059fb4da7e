"""Serve a simulated drive to other programs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from writecliff import units
from writecliff.cli.options import OutputPath, Whole
from writecliff.cli.output import JsonFlag, emit_json, factor_text, latency_text, log, pairs
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError, EngineError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.serve import DriveServer, Figures, PowerCut, Snapshot

GROUP = "drives", 3
app = App(name="serve", usage="writecliff serve DEVICE [OPTIONS]")
_LOOK_S = 1.0
_STREAMS_SHOWN = 4


@app.default
def serve(
    device: Annotated[str, Parameter(name=("--device", "--on"))],
    *,
    listen: tuple[str, ...] = (),
    allow_host: tuple[str, ...] = (),
    nbd: tuple[str, ...] = (),
    fast: bool = False,
    slow_down: float | None = None,
    state: OutputPath = None,
    contents: OutputPath = None,
    compress: bool = False,
    memory: str | None = None,
    precondition: str = "none",
    seed: int = 1,
    output: OutputPath = None,
    trace: Literal["full", "none"] = "full",
    metrics: str | None = None,
    cut_at_write: Whole = None,
    cut_after: str | None = None,
    cuts: Whole = None,
    cut_seed: int = 1,
    json: JsonFlag = False,
    quiet: bool = False,
) -> int:
    """Serve a simulated drive in real time until Ctrl-C or SIGTERM.

    Programs can use the drive as a block device that has the simulated drive's timing. The drive's
    address is printed on stderr when the drive is ready.

    Parameters
    ----------
    device
        Simulated drive: sim:NAME or sim:PATH.toml.
    listen
        Accept NVMe/TCP hosts at HOST:PORT, such as 127.0.0.1:4420; may be repeated. Use this option
        only on a trusted network, because connections have neither TLS nor a password.
    allow_host
        Accept only the NVMe/TCP host with this NVMe qualified name; may be repeated.
    nbd
        Accept NBD clients (such as QEMU, nbd-client, libnbd or fio) at unix:PATH or HOST:PORT; may
        be repeated. NBD has no access control, so every client that connects can read and write.
    fast
        Complete each request as soon as its data are available. The drive's state changes, but the
        drive's clock does not advance.
    slow_down
        Slow the drive down by this factor, for example if the drive is too fast for this machine.
    state
        Restore the drive and its data from this file if the file exists, and save the drive to the
        file on exit. While the server runs, two more files next to this file store acknowledged
        data, which therefore survive if the server is killed.
    contents
        Store the drive's data in this sparse file instead of in memory.
    compress
        Compress the drive's data in memory (LZ4).
    memory
        Memory limit for the drive's data, such as 8GB. Writes that exceed the limit are rejected.
    precondition
        Initial state of a new drive: none, fill, sustained or used:40%.
    seed
        Seed for the drive's random choices.
    output
        Run directory, which must be empty or not exist. The server writes a report and a trace of
        all requests to this directory, for `writecliff replay` and `writecliff advise-streams`.
    trace
        Trace to write into the run directory: full or none.
    metrics
        Serve Prometheus metrics at http://HOST:PORT/metrics; a port without a host binds to
        127.0.0.1.
    cut_at_write
        Cut the power when the drive receives write N, counted from 1. SIGUSR1 and `writecliff serve
        power-cut` cut the power at any time.
    cut_after
        Cut the power after this device time, such as "30 s", or after a random time in a range,
        such as "10 s..60 s". With --fast, the wall-clock time is used.
    cuts
        Number of power cuts; the count of writes or time restarts when the drive is ready again
        (default: 1).
    cut_seed
        Seed for random cut times, and for random data loss if the drive does not determine which
        data are lost. Each further cut uses the next seed.
    quiet
        Print only addresses and warnings on stderr.
    """
    from writecliff.serve import DriveServer, ServeOptions
    from writecliff.serve.addresses import check_nvme_addresses

    if not nbd and not listen:
        raise ConfigError(
            "no listen address was given",
            hint="add --listen 127.0.0.1:4420, or --nbd unix:/tmp/drive.sock or 127.0.0.1:10809",
        )
    if allow_host and not listen:
        raise ConfigError("--allow-host requires --listen", hint="add --listen")
    check_nvme_addresses(listen)
    if fast and slow_down is not None:
        raise ConfigError(
            "--slow-down cannot be combined with --fast, which has no timing",
            hint="omit either option",
        )
    options = ServeOptions(
        slow_down=None if fast else 1.0 if slow_down is None else slow_down,
        state=state,
        contents=contents,
        compress=compress,
        memory_limit_bytes=None if memory is None else units.parse_size(memory),
        precondition=precondition,
        seed=seed,
    )
    if trace == "none" and output is None:
        raise ConfigError("--trace requires --output", hint="add --output")
    if output is not None:
        from writecliff.store.files import check_unused

        check_unused(output)
    plan = _plan(cut_at_write, cut_after, cuts)
    ended = threading.Event()
    from writecliff.signals import TERMINATIONS, handling

    # Starting the server may take long, but no data can be lost yet.
    server = DriveServer(device, options)
    server.seed_cuts(cut_seed)
    with (
        handling((signal.SIGINT, *TERMINATIONS), lambda *_: ended.set()),
        handling((signal.SIGUSR1,), lambda *_: server.power_cut()),
    ):
        try:
            if listen:
                server.listen_nvme(listen, hosts=allow_host)
            for address in nbd:
                server.listen_nbd(address)
            if plan is not None:
                server.plan_cuts(**plan)
            summary = _session(server, ended, Screen(quiet=quiet), output, trace, metrics)
        finally:
            server.end()
    summary = {**summary, "state": state, "run": output, "report": None}
    if output is not None:
        from writecliff.report import write_report

        summary["report"] = write_report(output)
    if json:
        from writecliff.api.answers.served import Served

        emit_json(Served.of(summary))
    else:
        print(_text(summary))
    return 0


def _plan(
    cut_at_write: int | None, cut_after: str | None, cuts: int | None
) -> dict[str, Any] | None:
    """Return the planned power cuts, as arguments for `DriveServer.plan_cuts`.

    Raises:
        ConfigError: If the options contradict each other, or a time or count is invalid.
    """
    if cut_at_write is None and cut_after is None:
        if cuts is not None:
            raise ConfigError(
                "--cuts requires --cut-at-write or --cut-after",
                hint="add --cut-at-write or --cut-after",
            )
        return None
    if cut_at_write is not None and cut_after is not None:
        raise ConfigError(
            "--cut-at-write and --cut-after are mutually exclusive",
            hint="omit one of the two options",
        )
    if cut_at_write is not None and cut_at_write < 1:
        raise ConfigError(f"--cut-at-write must be at least 1, not {cut_at_write}")
    if cuts is not None and cuts < 1:
        raise ConfigError(f"--cuts must be at least 1, not {cuts}")
    often = {"cuts": 1 if cuts is None else cuts}
    if cut_after is None:
        return {"write": cut_at_write, **often}
    first, _, last = cut_after.partition("..")
    times = units.parse_time(first), units.parse_time(last or first)
    if not 0 < times[0] <= times[1]:
        raise ConfigError(
            f"--cut-after must be a time greater than 0 or an ascending range, not '{cut_after}'",
            hint='use a time such as "30 s", or a range such as "10 s..60 s" for a random time',
        )
    return {"after_ns": times, **often}


def _session(
    server: DriveServer,
    ended: threading.Event,
    screen: Screen,
    output: Path | None,
    trace: str,
    metrics: str | None,
) -> dict[str, Any]:
    """Serve until `ended` is set, stop the drive, and return the session in `output`."""
    from contextlib import ExitStack

    from writecliff.serve.control import ControlServer
    from writecliff.serve.metrics import MetricsServer
    from writecliff.serve.record import SessionRecorder
    from writecliff.serve.session import session_mapping

    with ExitStack() as stack:
        looks: list[Callable[[Snapshot], None]] = []
        recorder = None
        try:
            stack.enter_context(ControlServer(server))
        except EngineError as error:
            log(f"warning: `writecliff serve power-cut` cannot reach this drive: {error}")
        if metrics is not None:
            exposed = stack.enter_context(MetricsServer(server, metrics))
            log(f"metrics at {exposed.url}")
            looks.append(exposed.look)
        if output is not None:
            recorder = SessionRecorder(output, server, trace=trace == "full")
            looks.append(recorder.look)
        try:
            last = _serve(server, ended, screen, looks)
            if recorder is not None:
                recorder.finish(last, "stopped by the user")
        except BaseException as error:
            if recorder is not None:
                recorder.fail(str(error) or type(error).__name__)
            raise
    return session_mapping(server, last)


def _serve(
    server: DriveServer,
    ended: threading.Event,
    screen: Screen,
    looks: Sequence[Callable[[Snapshot], None]],
) -> Snapshot:
    """Serve the drive until `ended` is set, stop the drive, and return its final snapshot.

    The callbacks `looks` receive a snapshot every second, and the final snapshot.
    """
    from writecliff.serve.session import lateness_warning

    if server.recovered:
        log(
            "the previous server was killed: the drive has recovered all the data that it had "
            "received"
        )
    for address in server.addresses:
        log(f"serving {server.identity.target} at {address}")
    for warning in server.warnings:
        log(f"warning: {warning}")
    view = ServeView(server)
    warned, cuts = False, 0
    with screen.showing(view.render):
        while True:
            is_over = ended.wait(_LOOK_S)
            if is_over:
                server.stop()
            last = view.look()
            for look in looks:
                look(last)
            for cut in server.power_cuts[cuts:]:
                cuts += 1
                log(f"power cut {cuts}: {cut_text(cut)}")
            if last.is_late and not warned:
                log(f"warning: {lateness_warning(last)}")
                warned = True
            if is_over:
                return last


def _text(summary: Mapping[str, Any]) -> str:
    from writecliff.serve.session import answer_text

    lines = [("served", f"{summary['target']} for {units.duration(summary['wall_s'] * 1e9)}")]
    for name, totals in summary["operations"].items():
        if totals["requests"]:
            text = f"{totals['requests']:,} ({units.number(totals['iops'])} IOPS), "
            text += units.size(totals["bytes"])
            if totals["latency"]["mean_ns"] is not None:
                latency = totals["latency"]
                text += f", mean {latency_text(latency['mean_ns'])}"
                text += f", 99 % {latency_text(latency['p99_ns'])}"
            lines.append((name, text))
    lines.append(("WAF", factor_text(summary["waf"])))
    lateness = summary["lateness"]
    late = f"mean {latency_text(lateness['mean_ns'])}, 99 % {latency_text(lateness['p99_ns'])}"
    lines.append(("time in the server" if summary["slow_down"] is None else "lateness", late))
    lines += [(name, str(summary[name])) for name in ("state", "run", "report")
              if summary.get(name) is not None]  # fmt: skip
    return f"{pairs(lines)}\n\n{answer_text(summary)}"


def streams_text(now: Snapshot) -> tuple[str, str] | None:
    """Return the streams or placement handles in use, and each one's portion of written data.

    Returns:
        The result is a name and a text, or `None` if the drive has no streams or handles, or if no
        client uses any.
    """
    placement, used = now.data_placement, now.streams
    if placement is None and len(used) < 2:
        return None
    total = sum(stream.bytes for stream in used)
    most = sorted(used, key=lambda stream: -stream.bytes)[:_STREAMS_SHOWN]
    shares = [
        f"{stream.number}: {units.percent(stream.bytes / total, 0)}" for stream in most if total
    ]
    shares += [f"{len(used) - len(most)} more"] if len(used) > len(most) else []
    if placement is None:
        name, count = "streams", f"{len(used)} used"
    elif placement.interface == "nvme-fdp":
        name, count = "handles", f"{len(used)} used, drive has {placement.limit}"
    else:
        name, count = "streams", f"{len(placement.open_streams)} of {placement.limit} open"
    return name, "; ".join([count, *([", ".join(shares)] if shares else [])])


def undone_text(pages: int, undone_as: str) -> str:
    """Describe the pages that a power cut rolled back, and the reason why NVMe allows the loss."""
    reasons = {"unacknowledged": "unacknowledged writes", "unflushed": "writes without a flush"}
    noun = "page" if pages == 1 else "pages"
    return f"{pages:,} {noun} of {reasons[undone_as]} undone (allowed)"


def cut_text(cut: PowerCut) -> str:
    """Describe the effects of a power cut in one line."""
    text = f"after {cut.writes:,} writes, {cut.outstanding:,} requests without a reply, "
    text += undone_text(cut.pages_undone, cut.undone_as)
    text += f" of {cut.pages_open:,} that were not durable"
    if cut.rebuild_ns is not None:
        text += f"; ready again after {units.latency(cut.rebuild_ns)}"
    else:
        text += "; the mapping is as if all data had been written, because its loss is not modelled"
    return text


def rebuild_text(cut: PowerCut) -> str:
    """Describe the drive's recovery in one line, or return "" if it is unknown."""
    if cut.rebuild_parts_ns is None:
        return ""
    done = [f"{name} {units.latency(time)}" for name, time in cut.rebuild_parts_ns.items() if time]
    if cut.hold_up_ns:
        done.insert(0, f"capacitors {units.latency(cut.hold_up_ns)}")
    return f"mapping rebuilt: {', '.join(done)}" if done else ""


class ServeView:
    """Figures over the last second: collected by `look`, and displayed by `render`."""

    def __init__(self, server: DriveServer) -> None:
        """Start with the server's first snapshot."""
        from writecliff.serve.figures import difference

        self._server, self._between = server, difference
        self._now = server.first
        self._figures: Figures = difference(server.first, server.first, recent=True)

    def look(self) -> Snapshot:
        """Collect the figures since the previous call, and return the snapshot."""
        before, self._now = self._now, self._server.snapshot()
        self._figures = self._between(before, self._now, recent=True)
        return self._now

    def render(self) -> RenderableType:
        """Return one row per operation, followed by rows for the drive and server state."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        heads = ("", "IOPS", "MB/s", "mean", "50 %", "99 %", "99.9 %")
        table.add_row(*(Text(head, style="dim") for head in heads))
        for name, figures in self._figures.operations.items():
            latency = figures.latency
            names = ("mean_ns", "p50_ns", "p99_ns", "p99_9_ns")
            table.add_row(
                name,
                units.number(figures.iops),
                units.number(figures.bytes_per_s / units.MB_S.size, 1),
                *(latency_text(latency[key]) for key in names),
            )
        state = Table.grid(padding=(0, 2))
        for name, value in self._state():
            state.add_row(Text(name, style="dim"), value)
        return Group(table, state)

    def _state(self) -> list[tuple[str, str]]:
        now, lateness = self._now, self._figures.lateness
        shown = [
            (
                "WAF",
                f"{factor_text(self._figures.waf)} now, {factor_text(self._total_waf())} in all",
            ),
            (
                "late",
                f"{latency_text(lateness['p50_ns'])}, 99 % {latency_text(lateness['p99_ns'])}",
            ),
            ("outstanding", f"{now.outstanding:,} of {now.connections:,} connections"),
            ("data", units.size(now.contents_bytes)),
        ]
        if now.free_units is not None:
            shown.append(("free units", f"{now.free_units:,}"))
        if (streams := streams_text(now)) is not None:
            shown.append(streams)
        if now.temperature_c is not None:
            shown.append(("temperature", f"{now.temperature_c:.0f} °C"))
        return shown

    def _total_waf(self) -> float | None:
        return self._between(self._server.first, self._now).waf


@app.command
def power_cut(drive: str | None = None, *, json: JsonFlag = False) -> int:
    """Cut and restore the power of a drive that you serve on this machine.

    Connections to the drive are closed without replies, data that are not durable are lost, and the
    drive rebuilds its mapping. The command returns when the drive accepts commands again, and
    prints the effects of the power cut.

    Parameters
    ----------
    drive
        The address that `writecliff serve` printed, such as nvme-tcp://127.0.0.1:4420 or
        nbd+unix:/tmp/drive.sock, or the process ID of the server; optional if only one drive is
        served.
    """
    from writecliff.serve import PowerCut
    from writecliff.serve.control import find_served, served_drives

    served = find_served(served_drives(), drive)
    answer = served.power_cut()
    if json:
        from writecliff.api.answers.served import PowerCutDone

        emit_json(PowerCutDone(served.target, served.addresses, served.pid, **answer))
        return 0
    number, cut = answer["number"], PowerCut(**answer["cut"])
    print(f"{served.target}: power cut {number}: {cut_text(cut)}")
    if rebuild := rebuild_text(cut):
        print(rebuild)
    return 0
