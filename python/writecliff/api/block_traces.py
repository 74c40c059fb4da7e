"""Block traces of other programs: converted, characterised, and workloads that are like them."""

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
    """Write a trace of any format to `output`: as "parquet" (which `replay_trace` reads),
    "fio-iolog", "msr" or "blkparse" (default: by the suffix).

    `format` insists on how the trace is read; `columns` gives the columns of a table their meaning;
    `member` is one of an archive. `progress` gets how far it is. Raises ConfigError, StoreError.
    """
    from writecliff.traces.convert import convert, written_format
    from writecliff.traces.source import open_trace

    path = Path(output)
    written = written_format(path, to)
    if path.exists() and path.samefile(trace_path(trace)):
        raise ConfigError(f"{path} is the trace itself", hint="give another name")
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
    """What a trace of any format says of its workload.

    `on`: a simulated drive on which its writes are replayed, for their write amplification. The
    rest is as in `convert_trace`. Raises ConfigError, StoreError.
    """
    from writecliff.traces.characterise import characterise
    from writecliff.traces.source import open_trace

    path = trace_path(trace)
    if on is not None:
        from writecliff.replay.model import simulated_name

        simulated_name(on)  # before a large file is read

    def source() -> Source:
        return open_trace(path, format=format, columns=columns, member=member)

    found = characterise(source(), Path(trace), progress=progress)
    if on is None or not found.measures["write_bytes"]:
        return found
    return replace(found, replayed=_replayed(source(), on, progress))


def _replayed(source: Source, on: str, progress: WorkProgress) -> dict[str, Any]:
    """What the writes of a trace do to a drive of their size."""
    import tempfile

    from writecliff.api.traces import replay_trace
    from writecliff.traces.convert import convert
    from writecliff.traces.source import PARQUET

    with tempfile.TemporaryDirectory(prefix="writecliff-trace-") as folder:
        trace = Path(folder) / "trace.parquet"
        progress.part("converting it for the replay")
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
    """A workload that behaves like a trace of any format.

    The result has `rows`, the measures of both side by side; `write(folder)` writes the workload
    file and a fio job file. `on`: a simulated drive on which both are played. `seed`: of the
    workload's I/Os. `on_part` gets what is being done. The rest is as in `convert_trace`. Raises
    ConfigError.
    """
    from writecliff.synthesis.result import synthesise
    from writecliff.traces.source import open_trace

    path = trace_path(trace)
    if on is not None:
        from writecliff.replay.model import simulated_name

        simulated_name(on)  # before a large file is read
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
    """Issue the I/Os of a trace of any format to a real drive or file, each at its own time.

    `on`: "/dev/NAME" or "file:PATH". `output`: a trace of what was issued. `speed`: how many times
    as fast as it was recorded. `wrap`: addresses beyond the end begin again. `volume`: the only one
    that is replayed. `destroy_serial`, `allow_signatures`, `size_bytes`: as in `open_target`.
    `seed`: of the data that are written. `on_tick` gets what is known so far, and when the last I/O
    is due, in ns. Raises TargetError (a trace that writes needs `destroy_serial`; one that does
    not fit), ConfigError, EngineError, StoreError.
    """
    from writecliff.replay.timed_trace import TimedTrace
    from writecliff.replay.timed_trace import replay_timed as run
    from writecliff.traces.source import open_trace

    if not (math.isfinite(speed) and speed > 0):
        raise ConfigError(f"the speed is {speed:g}; it must be above 0")
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
