"""Program traces: captures, replays and stream advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from writecliff.api.runs import PathLike, Run, judged_run
from writecliff.errors import ConfigError
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.shown import Grid, Shown, Shows

if TYPE_CHECKING:
    from writecliff.capture.block.run import BlockCapture
    from writecliff.capture.run import Captured
    from writecliff.capture.stack.result import Stack
    from writecliff.replay.advice import StreamAdvice
    from writecliff.replay.columns import FileIO
    from writecliff.replay.model import Replayed, ReplaySetup, Sizing
    from writecliff.report.expectations import Expectation


def capture_program(
    command: Sequence[str] = (),
    *,
    output: PathLike,
    app: str | None = None,
    records: int | None = None,
    operations: int | None = None,
    folder: PathLike | None = None,
    root: PathLike | None = None,
    reads: bool = False,
    repair_hints: bool = False,
    via: Literal["preload", "strace"] = "preload",
    stdout: int | None = None,
    log: Callable[[str], None] = lambda text: None,
) -> Captured:
    """Run a command or the ready-made load `app`, and write a trace of its file I/O to `output`.

    Args:
        command: The command and its arguments.
        output: The trace to write.
        app: "rocksdb", "postgres" or "cassandra", instead of a command.
        records: Number of records that `app` loads initially.
        operations: Number of operations that `app` performs on the records.
        folder: Folder for the data that `app` writes.
        root: Folder that the trace is limited to.
        reads: True to include reads in the trace.
        repair_hints: True to repeat write hints that the kernel refused because they were not 64
            bits wide.
        via: Capture method.
        stdout: File descriptor for the command's output.
        log: Callback that receives the progress of `app`.

    Raises:
        ConfigError: If the arguments contradict each other.
        TargetError: If a program is missing.
        StoreError: If the trace cannot be written.
    """
    from writecliff.capture.run import Options

    root, folder = (None if path is None else Path(path) for path in (root, folder))
    options = Options(Path(output), root, reads, repair_hints)
    if app is not None:
        from writecliff.capture.apps import Size, run_app

        if command:
            raise ConfigError(
                "a command and a ready-made load are mutually exclusive",
                hint="specify either a command or a ready-made load",
            )
        return run_app(app, options, Size(records, operations), folder=folder, log=log)
    if not command:
        raise ConfigError(
            "neither a command nor a ready-made load was specified",
            hint="specify a command or a ready-made load",
        )
    if via == "strace":
        from writecliff.capture.strace import capture as run_strace

        return run_strace(command, options, stdout=stdout)
    from writecliff.capture.run import capture as run_preload

    return run_preload(command, options, stdout=stdout)


def capture_device(
    device: PathLike,
    *,
    output: PathLike,
    command: Sequence[str] = (),
    seconds: float | None = None,
    stdout: int | None = None,
    on_tick: Callable[[BlockCapture], None] | None = None,
) -> Captured:
    """Trace the requests that the driver of block device `device` receives from all programs.

    The capture runs until `command` exits; without a command, it runs for `seconds` or until Ctrl-C
    or SIGTERM. `stdout` is a file descriptor for the command's output. If no command is given,
    `on_tick` is called every second.

    Raises:
        TargetError: If the device does not exist, or root privileges or tracefs are missing.
        EngineError: If the capture fails.
        StoreError: If the trace cannot be written.
    """
    from writecliff.capture.block.run import capture_device as run

    return run(
        Path(device),
        Path(output),
        command=command,
        seconds=seconds,
        stdout=stdout,
        on_tick=on_tick,
    )


def capture_stack(
    command: Sequence[str], *, output: PathLike, root: PathLike = ".", stdout: int | None = None
) -> Stack:
    """Run a command, and capture its system calls, page cache writes, bios and requests.

    `root` limits the capture to the files below a folder. `output` is a new folder for the traces.
    `stdout` is a file descriptor for the command's output. `writecliff.report.io_stack.write_stack`
    writes a page on the captured I/O.

    Raises:
        TargetError: If root privileges, tracefs or a block device behind the folder are missing.
        ConfigError: If the folder is already in use.
        EngineError: If the capture fails.
        StoreError: If the traces cannot be written.
    """
    from writecliff.capture.stack.run import capture_stack as run

    return run(command, Path(output), root=Path(root), stdout=stdout)


@dataclass(frozen=True)
class Replay(Shows):
    """A trace replay on a simulated drive."""

    trace: Path
    """The trace file."""

    setup: ReplaySetup
    """The simulated drive, and the assumptions of the replay."""

    done: Replayed
    """The measurements: `waf`, latencies, counters."""

    on: str
    """The target, as given."""

    seed: int = 1
    """The seed of all random choices."""

    @property
    def waf(self) -> float:
        """Write amplification over the second half of the writes."""
        return self.done.waf

    @property
    def endurance_bytes(self) -> float:
        """Bytes that a host can write to the whole drive within its rated erase cycles."""
        return self.setup.endurance_bytes(self.done.waf)

    @property
    def years(self) -> float | None:
        """Lifetime of the whole drive, or None if the write rate is unknown."""
        return self.setup.years(self.done.waf)

    def _shown(self) -> Shown:
        from writecliff import units

        years = units.UNKNOWN if self.years is None else f"{self.years:.3g}"
        rows = [
            ("write amplification", units.number(self.waf, 3), ""),
            ("endurance", units.size(self.endurance_bytes), "written by the host"),
            ("lifetime", years, "years"),
        ]
        return Shown(f"{self.trace} on {self.on}", (), [Grid(("", "", ""), rows, "lrl")])

    def mapping(self) -> dict[str, Any]:
        """Return the replay in the format of `writecliff replay --json`."""
        from writecliff.replay.summary import replay_mapping

        return replay_mapping(self.trace, self.setup, self.done)

    def store(self, output: PathLike, *, expect: Sequence[Expectation] = ()) -> Run:
        """Store the replay in a run directory, check limits, and write a report.

        The directory `output` must be empty or not exist. `expect` contains limits on figures.

        Raises:
            ConfigError: If the directory is already in use.
            StoreError: If the directory cannot be written.
        """
        from writecliff.replay.record import store

        folder = Path(output)
        store(folder, self.setup, self.done, self.mapping(), target=self.on, seed=self.seed)
        return judged_run(folder, expect)


def replay_trace(
    trace: PathLike,
    on: str,
    *,
    assign: str | None = None,
    rules: str | None = None,
    count: int | None = None,
    mistag_pct: float = 0.0,
    sizing: Sizing | None = None,
    writes_per_day_bytes: float | None = None,
    timed: bool = True,
    queue_depth: int = 32,
    readers: int = 4,
    seed: int = 1,
    progress: WorkProgress = UNSEEN,
) -> Replay:
    """Replay a trace on a simulated drive.

    Args:
        trace: The trace.
        on: "sim:NAME" or "sim:PATH.toml".
        assign: Assignment of writes to streams: none, rules, sfr, multi-queue, sepbit or oracle
            (default: rules if `rules` is given, else none).
        rules: A file or preset of rules.
        count: Number of streams to use (default: all of the drive's streams).
        mistag_pct: Percentage of writes to assign to a wrong stream.
        sizing: Settings of the drive size, replay length, page cache and file system.
        writes_per_day_bytes: Bytes written per day, to calculate `years` (default: the trace's
            write rate).
        timed: `True` to measure latencies, with `queue_depth` writes and `readers` reads
            outstanding.
        queue_depth: Number of outstanding writes in the timed replay.
        readers: Number of outstanding reads in the timed replay.
        seed: Random seed for all random choices.
        progress: Callback that receives the progress.

    Raises:
        TraceError: If the trace is invalid.
        ConfigError: If an option is invalid.
    """
    from writecliff.replay.model import Sizing, checked_scheme, lay_out
    from writecliff.replay.model import replay as run

    scheme = checked_scheme(assign, rules is not None)
    progress.part("reading the trace")
    io = _read(trace, on, rules)
    sized = sizing or Sizing()
    setup = lay_out(io, on, sized, writes_per_day_bytes=writes_per_day_bytes, progress=progress)
    done = run(
        setup,
        scheme,
        setup.simulated.streams if count is None else count,
        mistag_pct=mistag_pct,
        timed=timed,
        queue_depth=queue_depth,
        readers=readers,
        seed=seed,
        progress=progress,
    )
    return Replay(Path(trace), setup, done, on, seed)


def advise_streams(
    trace: PathLike,
    on: str,
    *,
    rules: str | None = None,
    counts: Sequence[int] = (2, 4, 8),
    sizing: Sizing | None = None,
    writes_per_day_bytes: float | None = None,
    timed: bool = True,
    queue_depth: int = 32,
    readers: int = 4,
    seed: int = 1,
    on_cell: Callable[[Replayed], None] | None = None,
) -> StreamAdvice:
    """Compare methods for assigning a trace's writes to streams, at several stream counts.

    `rules` is a file or a preset (default: the program's write hints, or else the preset for the
    program). `on_cell` is called with each completed comparison. Other arguments are as in
    `replay_trace`. The returned advice contains `best` and `cells`;
    `writecliff.replay.advice.verdict` formats the advice as sentences.

    Raises:
        TraceError: If the trace is invalid.
        ConfigError: If an option is invalid, or write amplification cannot be measured.
    """
    from writecliff.replay.advice import compare as compare_assignments
    from writecliff.replay.model import Sizing, lay_out

    io = _read(trace, on, rules, own_rules=True)
    setup = lay_out(
        io,
        on,
        sizing or Sizing(),
        streams=max(counts),
        writes_per_day_bytes=writes_per_day_bytes,
    )
    if setup.not_quoted is not None:
        raise ConfigError(
            f"cannot compare stream assignments, because write amplification is {setup.not_quoted}",
            hint="use a trace with more writes, or a smaller drive",
        )
    return compare_assignments(
        Path(trace),
        setup,
        counts,
        timed=timed,
        queue_depth=queue_depth,
        readers=readers,
        seed=seed,
        on_cell=on_cell,
    )


def _read(trace: PathLike, on: str, rules: str | None, *, own_rules: bool = False) -> FileIO:
    """Read a trace, and assign its writes to streams by `rules`.

    If `own_rules` is set and no rules are given, the rules are derived from the trace's write hints
    or its program.

    Raises:
        TraceError: If the trace is invalid.
        ConfigError: If the rules or the drive are invalid.
    """
    from writecliff.capture.rules import load_rules, rules_of
    from writecliff.capture.trace import read_trace
    from writecliff.replay.columns import file_io
    from writecliff.replay.model import simulated_name
    from writecliff.traces.examples import trace_path

    simulated_name(on)  # Check the target first, because reading a large file takes long.
    chosen = None if rules is None else load_rules(rules)
    recorded = read_trace(trace_path(trace))
    if chosen is None and own_rules:
        chosen = rules_of(recorded)
    return file_io(recorded.table, chosen, is_block=recorded.is_block)
