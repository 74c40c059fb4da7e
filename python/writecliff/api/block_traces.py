"""Conversion, characterisation, synthesis and timed replay of other programs' block traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import PathLike
from writecliff.errors import ConfigError
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.traces.examples import trace_path

if TYPE_CHECKING:
    from writecliff.engines.timed.issuing import TraceIssued
    from writecliff.synthesis.result import Synthesised
    from writecliff.traces.characterise import Characterised
    from writecliff.traces.convert import Converted
    from writecliff.traces.source import Source


def convert_trace(
    trace: PathLike,
    output: PathLike,
    *,
    to: str | None = None,
    format: str | None = None,
    columns: str | None = None,
    member: str | None = None,
    progress: WorkProgress = UNSEEN,
) -> Converted:
    """Convert a trace of any supported format, and write it to `output`.

    Args:
        trace: The trace.
        output: The file to write.
        to: "parquet" (which `replay_trace` reads), "fio-iolog", "msr" or "blkparse" (default: by
            the suffix of `output`).
        format: Format of the trace (default: recognised by content).
        columns: Meaning of each column of a tabular trace.
        member: Archive member to read.
        progress: Callback that receives the progress.

    Raises:
        ConfigError: If the trace or an option is invalid.
        StoreError: If the file cannot be written.
    """
    from writecliff.traces.convert import convert, written_format
    from writecliff.traces.source import open_trace

    path = Path(output)
    written = written_format(path, to)
    if path.exists() and path.samefile(trace_path(trace)):
        raise ConfigError(
            f"the output {path} would overwrite the trace", hint="write the output to another file"
        )
    source = open_trace(trace_path(trace), format=format, columns=columns, member=member)
    return convert(source, path, written, progress=progress)


def characterise_trace(
    trace: PathLike,
    *,
    format: str | None = None,
    columns: str | None = None,
    member: str | None = None,
    on: str | None = None,
    progress: WorkProgress = UNSEEN,
) -> Characterised:
    """Characterise the workload in a trace of any supported format.

    If `on` names a simulated drive, the trace's writes are replayed on that drive to find their
    write amplification. Other arguments are as in `convert_trace`.

    Raises:
        ConfigError: The trace or an option is invalid.
        StoreError: If a temporary file cannot be written.
    """
    from writecliff.traces.characterise import characterise
    from writecliff.traces.source import open_trace

    path = trace_path(trace)
    if on is not None:
        from writecliff.replay.model import simulated_name

        simulated_name(on)  # Check the target first, because reading a large file takes long.

    def source() -> Source:
        return open_trace(path, format=format, columns=columns, member=member)

    traits = characterise(source(), Path(trace), progress=progress)
    if on is None or not traits.measures["write_bytes"]:
        return traits
    return replace(traits, replayed=_replayed(source(), on, progress))


def _replayed(source: Source, on: str, progress: WorkProgress) -> dict[str, Any]:
    """Replay a trace's writes on a drive scaled to fit them, and return the figures."""
    import tempfile

    from writecliff.api.traces import replay_trace
    from writecliff.traces.convert import convert
    from writecliff.traces.source import PARQUET

    with tempfile.TemporaryDirectory(prefix="writecliff-trace-") as folder:
        trace = Path(folder) / "trace.parquet"
        progress.part("converting the trace for the replay")
        convert(source, trace, PARQUET, progress=progress)
        done = replay_trace(trace, on, timed=False, progress=progress)
    return {
        "on": on,
        "waf": done.waf,
        "endurance_bytes": done.endurance_bytes,
        "years": done.years,
        "simulated_bytes": done.setup.simulated.capacity_bytes,
        "overprovision_pct": done.setup.simulated.overprovision_pct,
        "written_bytes": done.setup.blocks.written_bytes,
        "rounds": done.setup.blocks.rounds,
    }


def synthesise_trace(
    trace: PathLike,
    *,
    format: str | None = None,
    columns: str | None = None,
    member: str | None = None,
    on: str | None = None,
    seed: int = 1,
    progress: WorkProgress = UNSEEN,
    on_part: Callable[[str], None] = lambda text: None,
) -> Synthesised:
    """Synthesise a workload that resembles a trace of any supported format.

    The result's `rows` compare the metrics of the trace with those of the workload; `write(folder)`
    writes the workload file and a fio job file. If `on` names a simulated drive, the trace and the
    workload run on that drive for comparison. `seed` is the random seed for the workload's I/Os.
    `on_part` receives the name of the current step. Other arguments are as in `convert_trace`.

    Raises:
        ConfigError: The trace or an option is invalid.
    """
    from writecliff.synthesis.result import synthesise
    from writecliff.traces.source import open_trace

    path = trace_path(trace)
    if on is not None:
        from writecliff.replay.model import simulated_name

        simulated_name(on)  # Check the target first, because reading a large file takes long.
    source = open_trace(path, format=format, columns=columns, member=member)
    return synthesise(source, Path(trace), on=on, seed=seed, progress=progress, on_part=on_part)


def replay_timed(
    trace: PathLike,
    on: str,
    *,
    output: PathLike | None = None,
    speed: float = 1.0,
    wrap: bool = False,
    volume: str | None = None,
    format: str | None = None,
    columns: str | None = None,
    destroy_serial: str | None = None,
    allow_signatures: bool = False,
    size_bytes: int | None = None,
    seed: int = 1,
    on_tick: Callable[[Mapping[str, int], int], None] = lambda live, due_ns: None,
) -> TraceIssued:
    """Issue the I/Os of a trace to a real drive or file, each at its recorded time.

    Args:
        trace: The trace.
        on: "/dev/NAME" or "file:PATH".
        output: Trace file to write the issued I/Os to.
        speed: Replay speed relative to the recorded speed.
        wrap: True to wrap addresses beyond the end of the drive around to its start.
        volume: Volume of the trace to replay (default: all).
        format: As in `convert_trace`.
        columns: As in `convert_trace`.
        destroy_serial: As in `open_target`.
        allow_signatures: As in `open_target`.
        size_bytes: As in `open_target`.
        seed: Random seed for the written data.
        on_tick: Callback that receives the counts so far, and the due time of the last I/O in ns.

    Raises:
        TargetError: If the trace writes but `destroy_serial` is missing, or if the trace exceeds
            the drive.
        ConfigError: The trace or an option is invalid.
        EngineError: If the drive fails.
        StoreError: If `output` cannot be written.
    """
    from writecliff.replay.timed_trace import TimedTrace
    from writecliff.replay.timed_trace import replay_timed as run
    from writecliff.traces.source import open_trace

    if not (math.isfinite(speed) and speed > 0):
        raise ConfigError(f"the speed must be a finite number above 0, not {speed:g}")
    path = trace_path(trace)
    asked = TimedTrace(
        lambda: open_trace(path, format=format, columns=columns),
        None if output is None else Path(output),
        speed=speed,
        wrap=wrap,
        volume=volume,
        seed=seed,
    )
    return run(
        asked,
        on,
        on_tick,
        destroy_serial=destroy_serial,
        allow_signatures=allow_signatures,
        size_bytes=size_bytes,
    )
