"""Trace the I/O of a command or of a block device."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from writecliff import units
from writecliff.cli.options import OutputPath, new_path
from writecliff.cli.output import JsonFlag, emit_json, log, pairs, table
from writecliff.errors import ConfigError, TargetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from writecliff.capture.block.run import BlockCapture
    from writecliff.capture.run import Captured
    from writecliff.capture.stack.result import Stack

GROUP = "workloads and traces", 3
app = App(
    name="capture",
    usage="writecliff capture [OPTIONS] [-- COMMAND [ARGUMENTS]]",
)


@app.default
def capture(
    *command: str,
    output: Annotated[OutputPath, Parameter(name=("--output", "-o"))] = None,
    root: Path | None = None,
    reads: bool = False,
    repair_hints: bool = False,
    app: str | None = None,
    records: int | None = None,
    operations: int | None = None,
    folder: Path | None = None,
    recover: Path | None = None,
    via: Literal["preload", "strace"] = "preload",
    device: Path | None = None,
    for_: Annotated[str | None, Parameter(name="--for")] = None,
    stack: bool = False,
    json: JsonFlag = False,
) -> int:
    """Trace a command's file I/O, including the file, thread, process and write hint of each write.

    A preloaded library traces the command and every process that it starts. The exit code is the
    traced command's exit code. Statically linked programs, io_uring and writes to mapped memory are
    not traced; `capture` warns about them. With --device, the trace contains the requests that a
    block device's driver receives from all programs. With --stack, file I/O and block requests are
    captured and shown side by side. --device and --stack require root.

    Parameters
    ----------
    command
        Command to run with its arguments, after "--".
    output
        Trace file to write (default: traces/NAME-TIME.parquet); with --stack, a new folder.
    root
        Trace only files below this folder, with paths relative to the folder (with --stack, the
        default is the current folder).
    reads
        Trace reads as well as writes.
    repair_hints
        Retry a write hint that the kernel rejected because the hint was not 64 bits wide.
    app
        Trace a built-in application load instead of a command: rocksdb, postgres or cassandra.
    records
        Number of records that --app loads before the operations start (postgres: accounts).
    operations
        Number of operations that --app runs on the loaded records (postgres: transactions).
    folder
        Folder for the data of the --app application (default: a temporary folder).
    recover
        Build the trace from the events file that a killed capture left behind.
    via
        Tracing method: preload, or strace, which is several times slower but also traces static
        programs, and mapped files at each sync.
    device
        Trace the requests to this block device, such as /dev/nvme0n1 or a partition, while the
        command runs; without a command, trace for the duration of --for or until Ctrl-C.
    for_
        Duration of a --device capture that has no command, such as 90s or 1h.
    stack
        Show the command's I/O at each level (page cache, file system, block layer, drive) on the
        page stack.html, as CSV, and in both traces.
    """
    if stack:
        _check_alone(
            "--stack", app=app, recover=recover, device=device, reads=reads,
            repair_hints=repair_hints, via=via, **{"for": for_},
        )  # fmt: skip
        return capture_stack(command, output, root, as_json=json)
    if device is not None:
        _check_alone(
            "--device", app=app, recover=recover, root=root, reads=reads,
            repair_hints=repair_hints, via=via,
        )  # fmt: skip
        return capture_block(device, command, for_, output, as_json=json)
    if for_ is not None:
        raise ConfigError(
            "--for requires --device", hint="add the device, for example --device /dev/nvme0n1"
        )
    from writecliff.api import capture_program

    _check_choice(command, app, recover, records=records, operations=operations, folder=folder)
    _check_strace(via, command, repair_hints=repair_hints)
    name = app or (Path(command[0]).name if command else "recovered")
    path = output or new_path("traces", name, suffix=".parquet")
    if recover is not None:
        from writecliff.capture.run import Options
        from writecliff.capture.run import recover as run_recover

        done = run_recover(recover, Options(path, root, reads, repair_hints))
    else:
        try:
            done = capture_program(
                command,
                output=path,
                app=app,
                records=records,
                operations=operations,
                folder=folder,
                root=root,
                reads=reads,
                repair_hints=repair_hints,
                via=via,
                stdout=sys.stderr.fileno() if json else None,
                log=log,
            )
        except BaseException:
            if app is not None and path.is_file() and path.stat().st_size:
                log(f"the trace up to that point is in {path}")
            raise
    _show(done, as_json=json)
    return done.exit_code


def _check_choice(
    command: tuple[str, ...], app: str | None, recover: Path | None, **of_app: object
) -> None:
    """Check that exactly one source is to be captured, and that load options have a load."""
    given = [bool(command), app is not None, recover is not None]
    if sum(given) == 0:
        raise ConfigError(
            "neither a command nor a load was specified",
            hint="specify a command after --, or --app rocksdb, postgres or cassandra",
        )
    if sum(given) > 1:
        raise ConfigError(
            "a command, --app and --recover are mutually exclusive",
            hint="specify one, and leave the other two out",
        )
    if app is None:
        for name, value in of_app.items():
            if value is not None:
                raise ConfigError(
                    f"--{name} requires --app", hint="add a load, for example --app rocksdb"
                )


def _check_alone(option: str, **others: object) -> None:
    """Check that no given option is without effect when `option` is used."""
    for name, value in others.items():
        if value not in (None, False, "preload"):
            raise ConfigError(
                f"--{name.replace('_', '-')} does not apply to {option}",
                hint="omit either option",
            )


def _check_strace(via: str, command: tuple[str, ...], *, repair_hints: bool) -> None:
    if via != "strace":
        return
    if not command:
        raise ConfigError("--via strace requires a command", hint="specify the command after --")
    if repair_hints:
        raise ConfigError("--repair-hints requires --via preload", hint="omit --via strace")


def _show(done: Captured, *, as_json: bool) -> None:
    metadata = done.metadata
    if as_json:
        from writecliff.api.answers.captures import Capture

        emit_json(Capture(trace=done.output, **metadata))
        return
    hints = metadata["hints"]
    errors = ", ".join(f"{name} {count}" for name, count in hints["errors"].items())
    given = hints["delivered"] + hints["refused"]
    audit = f"kernel accepted {hints['delivered']} of {given}" if given else "none given"
    lines = [
        ("trace", f"{done.output}, {units.size(done.output.stat().st_size)}"),
        ("written", f"{units.size(metadata['bytes_written'])} to {metadata['files']} files"),
        *([("read", units.size(metadata["bytes_read"]))] if metadata["reads"] else []),
        ("time", units.duration(metadata["duration_ns"])),
        ("hints", audit + (f"; refused: {errors}" if errors else "")),
        *(("note", note) for note in metadata["notes"]),
    ]
    # The captured command's own output goes to stdout.
    log(pairs(lines))


NS_PER_S = 1e9
_WORDS = {"read": "reads", "write": "writes", "punch": "discards", "fsync": "flushes"}


def capture_block(
    device: Path,
    command: Sequence[str],
    for_: str | None,
    output: Path | None,
    *,
    as_json: bool,
) -> int:
    """Run `writecliff capture --device`, and return the exit code.

    Raises:
        TargetError: If the device received no requests. Other errors are as for `capture_device`.
    """
    from writecliff.api import capture_device
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen

    if for_ is not None and command:
        raise ConfigError(
            "a command and --for are mutually exclusive", hint="specify either a command or --for"
        )
    seconds = None if for_ is None else _seconds(for_)
    path = output or new_path("traces", device.name, suffix=".parquet")
    with WorkView(Screen(quiet=bool(command))).showing("capturing") as work:

        def look(capture: BlockCapture) -> None:
            share = 0.0 if seconds is None else min(1.0, work.seconds / seconds)
            work.done(share, figures=f"{capture.counts.total:,} requests")

        done = capture_device(
            device,
            output=path,
            command=command,
            seconds=seconds,
            stdout=sys.stderr.fileno() if as_json else None,
            on_tick=None if command else look,
        )
    metadata = done.metadata
    if as_json:
        from writecliff.api.answers.captures import DeviceCapture

        emit_json(DeviceCapture(trace=done.output, **metadata))
    else:
        log(
            pairs(
                [("trace", f"{path}, {units.size(path.stat().st_size)}"), *_device_lines(metadata)]
            )
        )
    if not sum(metadata["requests"].values()) and not done.exit_code:
        raise TargetError(
            f"{device} received no I/O requests during the capture",
            hint="specify the block device of the file system, as shown by findmnt",
        )
    return done.exit_code


def _seconds(text: str) -> float:
    seconds = units.parse_time(text) / NS_PER_S
    if seconds <= 0:
        raise ConfigError(
            f"--for must be greater than 0, not {text}", hint="use a duration, for example --for 1h"
        )
    return seconds


def _device_lines(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the counts of a device capture, as pairs of name and value."""
    seconds = metadata["duration_ns"] / NS_PER_S
    counts = [
        (word, f"{count:,}, {units.size(size)}" if size else f"{count:,}")
        for op, word in _WORDS.items()
        if (count := metadata["requests"][op])
        for size in (metadata["bytes"][op],)
    ]
    total = sum(metadata["requests"].values())
    overhead, lost = metadata["overhead"], metadata["lost_events"]
    return [
        *counts,
        (
            "time",
            f"{units.duration(metadata['duration_ns'])}, {units.number(total / seconds)} IOPS",
        ),
        ("lost", f"{lost:,} of {metadata['events'] + lost:,} events"),
        (
            "overhead",
            f"{overhead['cpu_s']:.2f} s of CPU time, {overhead['cpu_pct']:.1f} % of one of"
            f" {overhead['processors']} processors",
        ),
        *(("note", note) for note in metadata["notes"]),
    ]


_HEADER = ("step", "reads", "read", "writes", "written", "amplification", "syncs, flushes")


def capture_stack(
    command: Sequence[str], output: Path | None, root: Path | None, *, as_json: bool
) -> int:
    """Run `writecliff capture --stack`, and return the command's exit code.

    Raises:
        ConfigError: If there is no command. Other errors are as for `api.capture_stack`.
    """
    from writecliff.api import capture_stack as run
    from writecliff.report.io_stack import write_stack

    if not command:
        raise ConfigError("--stack requires a command", hint="specify the command after --")
    folder = output or new_path("traces", f"stack-{Path(command[0]).name}")
    stack = run(
        command,
        output=folder,
        root=root or Path(),
        stdout=sys.stderr.fileno() if as_json else None,
    )
    page = write_stack(stack, folder)
    if as_json:
        from writecliff.api.answers.captures import StackCapture

        emit_json(StackCapture(report=page, folder=folder, **stack.mapping()))
    else:
        log(_stack_text(stack, page))  # The captured command's own output goes to stdout.
    return stack.exit_code


def _stack_text(stack: Stack, page: Path) -> str:
    from writecliff.report.io_stack import NAMES, OPS, verdict

    steps = [
        (
            NAMES[step.name],
            f"{step.reads.count:,}",
            units.size(step.reads.bytes),
            f"{step.writes.count:,}",
            units.size(step.writes.bytes),
            _factor(stack.amplification(step)),
            f"{step.syncs:,}",
        )
        for step in stack.steps
    ]
    origins = [
        (row.name, OPS[row.op], f"{row.traffic.count:,}", units.size(row.traffic.bytes))
        for row in stack.origins
    ]
    answer, *more = verdict(stack)
    lines = [
        table(_HEADER, steps),
        "",
        table(("requests of", "", "count", "bytes"), origins, "llrr") if origins else "",
        "",
        *more,
        *(f"note: {note}" for note in stack.notes),
        str(page),
        answer,
    ]
    return "\n".join(lines)


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x"
