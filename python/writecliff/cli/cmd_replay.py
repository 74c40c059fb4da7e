"""Replay a trace on a drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from writecliff import units
from writecliff.api.outcome import Outcome, check_limits, read_baseline
from writecliff.cli.options import (
    NEW_OUTCOME,
    NO_TRACE_OPTIONS,
    OutcomeOptions,
    OutputPath,
    TraceOptions,
    Whole,
    new_path,
)
from writecliff.cli.output import JsonFlag, emit_json, latency_text, log, pairs, table
from writecliff.errors import ConfigError
from writecliff.operation_names import plural_of

if TYPE_CHECKING:
    from writecliff.api.answers.tests import ReplayTimed
    from writecliff.engines.timed.issuing import TraceIssued
    from writecliff.replay.model import Replayed, ReplaySetup

GROUP = "workloads and traces", 4


@Parameter(name="*", group=Group("Real drives and files", sort_key=1.6))
@dataclass(frozen=True, kw_only=True)
class RealOptions:
    """Options for replays on a real drive or a file."""

    destroy: str | None = None
    """Serial number of a /dev/ target, which confirms that the drive's data may be destroyed."""

    wipe_signatures: bool = False
    """Allow the test to overwrite partition tables and file systems on a /dev/ target."""

    size: str | None = None
    """Size of the test file to create for a file: target, such as 10GB or 8GiB."""

    speed: float = 1.0
    """Speed of the replay relative to the recording."""

    wrap: bool = False
    """Wrap addresses beyond the end of the drive around to the start of the drive. By default, a
    trace with such addresses is rejected."""

    volume: str | None = None
    """Replay only this volume of the trace."""

    format: str | None = None
    """Trace format (default: detected from the content)."""

    columns: str | None = None
    """Column mapping for a trace in a custom CSV or Parquet format."""


ON_SIMULATED = RealOptions()


def replay(
    trace: Path,
    *,
    options: TraceOptions = NO_TRACE_OPTIONS,
    assign: str | None = None,
    count: Whole = None,
    mistag: float = 0.0,
    real: RealOptions = ON_SIMULATED,
    output: OutputPath = None,
    outcome: OutcomeOptions = NEW_OUTCOME,
    json: JsonFlag = False,
) -> int:
    """Replay a trace on a drive.

    A simulated drive is scaled to fit the trace, and the report shows the effect of streams on the
    drive. On a real drive or a file, each I/O is issued at its recorded time, regardless of
    completions. The command measures how late each I/O is issued, and stores the issued I/Os as a
    trace that `writecliff characterise --against` can compare with the original.

    Parameters
    ----------
    trace
        Trace recorded by `writecliff capture`. For a real drive, the trace can have any format
        listed by `writecliff trace formats`.
    assign
        Assignment of writes to streams: none, rules, sfr, multi-queue, sepbit or oracle (default:
        rules if --streams is given, else none).
    count
        Number of streams to use (default: all streams of the drive).
    mistag
        Percentage of writes to assign to a wrong stream.
    output
        Directory for the run and its report, which must be empty or not exist. On a real drive, the
        file for the trace of the issued I/Os (default: runs/replay-TRACE-TARGET-TIME, or
        traces/replay-TRACE-TARGET-TIME.parquet).
    """
    from writecliff.engines.target import is_simulated

    if not is_simulated(options.target):
        check_real(options, assign=assign, count=count, mistag=mistag or None, **vars(outcome))
        return replay_timed(trace, options, real, output, as_json=json)
    check_simulated(real)
    from writecliff.api import new_path, replay_trace
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen
    from writecliff.replay.summary import overflow_text, verdict_text
    from writecliff.store.files import check_unused

    store, junit = outcome.store, outcome.junit
    directory = output or new_path("runs", f"replay-{trace.stem}", options.target, store=store)
    check_unused(directory)
    earlier = read_baseline(outcome.baseline)
    limits = check_limits(outcome.expect, junit)
    with WorkView(Screen()).showing("reading the trace") as view:
        replayed = replay_trace(
            trace, options.target, assign=assign, count=count, mistag_pct=mistag, progress=view,
            **options.given(),
        )  # fmt: skip
    setup, done = replayed.setup, replayed.done
    if (overflow := overflow_text(done)) is not None:
        log(f"warning: {overflow}")
    run = replayed.store(directory, expect=limits)
    end = Outcome.of_run(run, earlier)
    if json:
        from writecliff.api.answers.tests import Replay

        files = {"run": directory, "report": run.page}
        emit_json(Replay.of(replayed.mapping(), **files, **end.answer()))
        return end.end(junit)
    print(pairs(_lines(setup, done)))
    print()
    print(_streams(setup, done))
    print(f"\n{pairs((('run', str(directory)), ('report', str(run.page))))}")
    print(f"\n{verdict_text(setup, done)}")
    if lines := [*end.lines()]:
        print(f"\n{pairs(lines)}")
    return end.end(junit)


def _lines(setup: ReplaySetup, done: Replayed) -> list[tuple[str, str]]:
    from writecliff.replay.summary import WRITEBACK_TEXT, rate_text

    simulated = setup.simulated
    reason = setup.not_quoted
    years = setup.years(done.waf) if reason is None else None
    chosen = f" ({done.oracle})" if done.oracle else ""
    lines = [
        (
            "drive",
            f"{setup.device.name}, {units.size(simulated.capacity_bytes)} simulated, "
            f"over-provisioning {simulated.overprovision_pct:.1f} %",
        ),
        (
            "trace",
            f"{units.size(setup.written_bytes)} in {units.duration(setup.io.duration_ns)}, "
            f"{units.size(setup.peak_bytes)} of files at the peak, {setup.blocks.rounds} rounds",
        ),
        ("file system", _file_system(setup)),
        ("write-back", WRITEBACK_TEXT[setup.sizing.writeback]),
        (
            "streams",
            "one" if done.scheme == "none" else f"{done.streams}, by {done.scheme}{chosen}",
        ),
    ]
    if reason is None:
        endurance = units.size(setup.endurance_bytes(done.waf))
        lines += [
            ("write amplification", f"{done.waf:.3f}"),
            ("endurance", f"{endurance} on the whole drive"),
        ]
    else:
        lines.append(("write amplification", reason))
    if done.data_placement is not None and done.data_placement.interface == "nvme-fdp":
        figures = done.statistics
        lines.append(
            (
                "FDP statistics",
                f"HBMW {units.size(figures.hbmw)}, MBMW {units.size(figures.mbmw)}, "
                f"MBE {units.size(figures.mbe)} in the measured half",
            )
        )
    if years is not None:
        lines.append(("lifetime", f"{years:.3g} years at {rate_text(setup)}"))
    if done.reads.count:
        lines += [
            (
                "concurrent reads",
                f"mean {latency_text(done.reads.mean_ns)}, "
                f"p99.99 {latency_text(done.read_p9999_ns)} of {units.number(done.reads.count)}",
            ),
            ("writes", f"{units.size(done.timed_written_bytes / done.timed_ns * 1e9)}/s"),
        ]
    return lines


def _file_system(setup: ReplaySetup) -> str:
    sizing = setup.sizing
    copies = f", {sizing.copies} copies of the trace" if sizing.copies > 1 else ""
    trim = "with TRIM" if sizing.trim else "without TRIM"
    return f"{sizing.allocator}, {trim}{copies}; files take {setup.mean_fill_pct:.0f} % on average"


def _streams(setup: ReplaySetup, done: Replayed) -> str:
    from writecliff.replay.summary import stream_rows

    rows = [
        (
            str(row["stream"]),
            units.size(row["written_bytes"]),
            units.size(row["median_lifetime_bytes"]),
            ", ".join(row["origins"]),
        )
        for row in stream_rows(setup, done)
    ]
    return table(("stream", "written", "median lifetime", "mostly from"), rows, "rrrl")


_OF_BOTH = ("on", "seed")  # Options of `TraceOptions` that also apply to real drives.
_SECOND_NS = 1_000_000_000
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}


def check_real(options: TraceOptions, **others: object) -> None:
    """Check that every given option has an effect on a real drive. Raises ConfigError."""
    changed = [
        field.name
        for field in fields(options)
        if field.name not in _OF_BOTH
        and getattr(options, field.name) != getattr(NO_TRACE_OPTIONS, field.name)
    ]
    changed += [name for name, value in others.items() if value not in (None, False, ())]
    if changed:
        name = "streams" if changed[0] == "rules" else changed[0].replace("_", "-")
        raise ConfigError(
            f"--{name} applies only to simulated drives",
            hint="omit the option: a real drive replays the trace's I/Os unchanged, at their "
            "recorded times",
        )


def check_simulated(real: RealOptions) -> None:
    """Check that every given option has an effect on a simulated drive. Raises ConfigError."""
    given = [name for name, value in vars(real).items() if value != getattr(ON_SIMULATED, name)]
    if given:
        raise ConfigError(
            f"--{given[0].replace('_', '-')} applies only to real drives and files",
            hint="traces are scaled to fit simulated drives; use `writecliff trace convert` to "
            "read other formats",
        )


def replay_timed(
    trace: Path, options: TraceOptions, real: RealOptions, output: Path | None, *, as_json: bool
) -> int:
    """Replay a trace, store the issued I/Os, and show the timing accuracy."""
    from writecliff.api import replay_timed as run
    from writecliff.cli.progress import WorkView
    from writecliff.cli.screen import Screen

    target = options.target
    output = output or new_path("traces", f"replay-{trace.stem}", target, suffix=".parquet")
    with WorkView(Screen(quiet=as_json)).showing("replaying") as work:

        def look(live: Mapping[str, int], due_ns: int) -> None:
            share = live["due_ns"] / max(due_ns, 1)
            work.done(share, figures=f"{live['ios']:,} I/Os")

        done = run(
            trace,
            target,
            output=output,
            speed=real.speed,
            wrap=real.wrap,
            volume=real.volume,
            format=real.format,
            columns=real.columns,
            destroy_serial=real.destroy,
            allow_signatures=real.wipe_signatures,
            size_bytes=None if real.size is None else units.parse_size(real.size),
            seed=options.seed,
            on_tick=look,
        )
    if as_json:
        emit_json(_answer(trace, target, real.speed, done, output))
        return 0
    print(pairs(_timed_lines(trace, target, done, output)))
    print()
    head = ("", "I/Os", "data", "mean", "p50", "p99", "p99.9", "max")
    print(table(head, list(_responses(done)), "lrrrrrrr"))
    return 0


def _answer(trace: Path, target: str, speed: float, done: TraceIssued, output: Path) -> ReplayTimed:
    from writecliff.api.answers.tests import ReplayTimed

    return ReplayTimed(
        trace=trace,
        target=target,
        speed=speed,
        ios=dict(done.ios),
        elapsed_s=done.elapsed_ns / _SECOND_NS,
        timing=dict(done.timing),
        response_ms={name: _times(of["response"]) for name, of in done.operations.items()},
        service_ms={name: _times(service) for name, service in done.service.items()},
        notes=done.notes,
        issued_trace=output,
    )


def _times(of: Any) -> dict[str, float | None]:
    times: dict[str, float | None] = {"mean": of.mean_ns}
    times |= {name: of.quantile(q).value_ns for name, q in _QUANTILES.items()}
    times["max"] = of.max_ns
    return {name: None if value is None else value / 1e6 for name, value in times.items()}


def _timed_lines(
    trace: Path, target: str, done: TraceIssued, output: Path
) -> list[tuple[str, str]]:
    late, timing = done.timing["lateness_ns"], done.timing
    counts = ", ".join(f"{count:,} {plural_of(name)}" for name, count in done.ios.items())
    return [
        ("trace", f"{trace} on {target}"),
        ("issued", counts),
        ("length", f"{units.duration(timing['length_ns'])}, {timing['length_error_pct']:+.3f} %"),
        ("lateness", f"p50 {units.latency(late['p50'])}, p99 {units.latency(late['p99'])}, "
         f"at most {units.latency(late['max'])}"),
        ("issued trace", str(output)),
        *(("note", note) for note in done.notes if not note.startswith("timed I/O: issued")),
    ]  # fmt: skip


def _responses(done: TraceIssued) -> list[tuple[str, ...]]:
    """Return the response times by operation, measured from the scheduled I/O times."""
    rows = []
    for name, totals in done.operations.items():
        of = totals["response"]
        at = (of.quantile(q).value_ns for q in _QUANTILES.values())
        rows.append((
            name, f"{totals['ios']:,}", units.size(totals["bytes"]), units.latency(of.mean_ns),
            *(units.latency(value) for value in at), units.latency(of.max_ns),
        ))  # fmt: skip
    return rows
