"""Trace the file I/O of a command."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from writecliff import units
from writecliff.cli.output import emit_json, log, pairs
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.capture.run import Captured

GROUP = "workloads and traces", 3
app = App(
    name="capture",
    help=__doc__,
    usage="writecliff capture [OPTIONS] -- COMMAND [ARGUMENTS]",
)


@app.default
def capture(
    *command: str,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    root: Path | None = None,
    reads: bool = False,
    repair_hints: bool = False,
    app: str | None = None,
    records: int | None = None,
    operations: int | None = None,
    folder: Path | None = None,
    recover: Path | None = None,
    via: Literal["preload", "strace"] = "preload",
    json: bool = False,
) -> int:
    """Run a command and write a trace of its file I/O: file, thread, process, hint of each write.

    The command and all that it starts are seen through a library that is loaded before the C
    library. Its exit code is passed on. Not seen: statically linked programs, io_uring and writing
    through mapped memory; where that happens it is said.

    Parameters
    ----------
    command
        The command and its arguments, after "--".
    output
        The trace (default: traces/NAME-TIME.parquet).
    root
        Keep only files below this folder, with paths relative to it.
    reads
        Capture reads as well.
    repair_hints
        Give the kernel a write hint again, as 64 bits, where it refused one that was too short.
    app
        Capture a ready load instead of a command: rocksdb, postgres or cassandra.
    records
        Size of the load of --app: records that are loaded first (postgres: accounts).
    operations
        Size of the load of --app: operations on them (postgres: transactions).
    folder
        Where --app keeps its data meanwhile (default: a temporary folder).
    recover
        Make the trace of the events that a killed capture left.
    via
        How to see: "preload" by a library, "strace" by strace: several times slower, but static
        programs too, and mapped files where they are synced.
    json
        Print {"trace", "exit_code", "command", "duration_ns", "bytes_written", "hints", "notes",
        ...}; what the command prints goes to stderr then.
    """
    from writecliff.capture.run import Options
    from writecliff.capture.run import capture as run

    _check_choice(command, app, recover, records=records, operations=operations, folder=folder)
    _check_strace(via, command, repair_hints=repair_hints)
    name = app or (Path(command[0]).name if command else "recovered")
    options = Options(output or _new_trace(name), root, reads, repair_hints)
    stdout = sys.stderr.fileno() if json else None
    if recover is not None:
        from writecliff.capture.run import recover as run_recover

        done = run_recover(recover, options)
    elif app is not None:
        from writecliff.capture.apps import Size, run_app

        try:
            done = run_app(app, options, Size(records, operations), folder=folder, log=log)
        except BaseException:
            if options.output.is_file():
                log(f"what was captured until then is in {options.output}")
            raise
    elif via == "strace":
        from writecliff.capture.strace import capture as run_strace

        done = run_strace(command, options, stdout=stdout)
    else:
        done = run(command, options, stdout=stdout)
    _show(done, as_json=json)
    return done.exit_code


def _check_choice(
    command: tuple[str, ...], app: str | None, recover: Path | None, **of_app: object
) -> None:
    """One of three things to capture, and options of the ready loads only with them."""
    given = [bool(command), app is not None, recover is not None]
    if sum(given) == 0:
        raise ConfigError(
            "nothing to capture",
            hint="writecliff capture -- COMMAND, or --app rocksdb, postgres or cassandra",
        )
    if sum(given) > 1:
        raise ConfigError("a command, --app and --recover exclude one another", hint="give one")
    if app is None:
        for name, value in of_app.items():
            if value is not None:
                raise ConfigError(f"--{name} is of the ready loads", hint="give --app with it")


def _check_strace(via: str, command: tuple[str, ...], *, repair_hints: bool) -> None:
    if via != "strace":
        return
    if not command:
        raise ConfigError("--via strace is for a command", hint="give it after --")
    if repair_hints:
        raise ConfigError(
            "--repair-hints is done by the library", hint="leave out --via strace, or it"
        )


def _new_trace(name: str) -> Path:
    return Path("traces") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}.parquet"


def _show(done: Captured, *, as_json: bool) -> None:
    metadata = done.metadata
    if as_json:
        emit_json({"trace": done.output, **metadata})
        return
    hints = metadata["hints"]
    errors = ", ".join(f"{name} {count}" for name, count in hints["errors"].items())
    given = hints["delivered"] + hints["refused"]
    audit = f"{hints['delivered']} of {given} taken by the kernel" if given else "none given"
    lines = [
        ("trace", f"{done.output}, {units.size(done.output.stat().st_size)}"),
        ("written", f"{units.size(metadata['bytes_written'])} to {metadata['files']} files"),
        *([("read", units.size(metadata["bytes_read"]))] if metadata["reads"] else []),
        ("time", units.duration(metadata["duration_ns"])),
        ("hints", audit + (f"; refused: {errors}" if errors else "")),
        *(("note", note) for note in metadata["notes"]),
    ]
    # The command owns stdout.
    log(pairs(lines))
