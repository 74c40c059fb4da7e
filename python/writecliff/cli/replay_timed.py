"""`replay` on a real drive or file: the I/Os of a trace at their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.options import NO_TRACE_OPTIONS, TraceOptions, new_path
from writecliff.cli.output import emit_json, log, pairs, table
from writecliff.errors import ConfigError
from writecliff.operation_names import plural_of

if TYPE_CHECKING:
    from writecliff.api.answers.tests import ReplayTimed
    from writecliff.engines.timed.issuing import TraceIssued

_OF_BOTH = ("on", "seed")  # options of `TraceOptions` that real drives have, too
_SECOND_NS = 1_000_000_000
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}


@dataclass(frozen=True)
class Asked:
    """What the user asks for."""

    trace: Path
    target: str
    speed: float = 1.0
    output: Path | None = None
    destroy: str | None = None
    wipe_signatures: bool = False
    size: str | None = None
    wrap: bool = False
    volume: str | None = None
    format: str | None = None
    columns: str | None = None


def check_real(options: TraceOptions, **others: object) -> None:
    """Refuse options that have no effect on a real drive. Raises ConfigError."""
    changed = [
        one.name
        for one in fields(options)
        if one.name not in _OF_BOTH
        and getattr(options, one.name) != getattr(NO_TRACE_OPTIONS, one.name)
    ]
    changed += [name for name, value in others.items() if value not in (None, False, ())]
    if changed:
        name = "streams" if changed[0] == "rules" else changed[0].replace("_", "-")
        raise ConfigError(
            f"--{name} is for simulated drives",
            hint="a real drive gets the I/Os of the trace as they are, at their times",
        )


def check_simulated(asked: Asked) -> None:
    """Refuse options that have no effect on a simulated drive. Raises ConfigError."""
    plain = Asked(asked.trace, asked.target, output=asked.output)
    given = [
        one.name for one in fields(asked) if getattr(asked, one.name) != getattr(plain, one.name)
    ]
    if given:
        raise ConfigError(
            f"--{given[0].replace('_', '-')} is for real drives and files",
            hint="a simulated drive is made to fit the trace; `writecliff trace convert` reads "
            "other formats",
        )


def replay_timed(asked: Asked, *, seed: int, as_json: bool) -> int:
    """Replay, keep what was issued, and show how far times were kept."""
    from writecliff.api import replay_timed as run

    name = f"replay-{asked.trace.stem}"
    output = asked.output or new_path("traces", name, asked.target, suffix=".parquet")
    shown = 0

    def on_tick(live: Mapping[str, int], due_ns: int) -> None:
        nonlocal shown
        if not as_json and live["elapsed_ns"] // (10 * _SECOND_NS) > shown:
            shown = live["elapsed_ns"] // (10 * _SECOND_NS)
            part = 100.0 * live["due_ns"] / max(due_ns, 1)
            log(f"{live['ios']:,} I/Os, {part:.0f} % of the trace")

    done = run(
        asked.trace,
        asked.target,
        output=output,
        speed=asked.speed,
        wrap=asked.wrap,
        volume=asked.volume,
        format=asked.format,
        columns=asked.columns,
        destroy_serial=asked.destroy,
        allow_signatures=asked.wipe_signatures,
        size_bytes=None if asked.size is None else units.parse_size(asked.size),
        seed=seed,
        on_tick=on_tick,
    )
    if as_json:
        emit_json(_answer(asked, done, output))
        return 0
    print(pairs(_lines(asked, done, output)))
    print()
    head = ("", "I/Os", "data", "mean", "p50", "p99", "p99.9", "max")
    print(table(head, list(_responses(done)), "lrrrrrrr"))
    return 0


def _answer(asked: Asked, done: TraceIssued, output: Path) -> ReplayTimed:
    from writecliff.api.answers.tests import ReplayTimed

    return ReplayTimed(
        trace=asked.trace,
        target=asked.target,
        speed=asked.speed,
        ios=dict(done.ios),
        elapsed_s=done.elapsed_ns / _SECOND_NS,
        timing=dict(done.timing),
        response_ms={name: _times(of["response"]) for name, of in done.operations.items()},
        service_ms={name: _times(service) for name, service in done.service.items()},
        notes=done.notes,
        issued_trace=output,
    )


def _times(of: Any) -> dict[str, float | None]:
    found: dict[str, float | None] = {"mean": of.mean_ns}
    found |= {name: of.quantile(q).value_ns for name, q in _QUANTILES.items()}
    found["max"] = of.max_ns
    return {name: None if value is None else value / 1e6 for name, value in found.items()}


def _lines(asked: Asked, done: TraceIssued, output: Path) -> list[tuple[str, str]]:
    late, timing = done.timing["lateness_ns"], done.timing
    counts = ", ".join(f"{count:,} {plural_of(name)}" for name, count in done.ios.items())
    return [
        ("trace", f"{asked.trace} on {asked.target}"),
        ("issued", counts),
        ("length", f"{units.duration(timing['length_ns'])}, {timing['length_error_pct']:+.3f} %"),
        ("lateness", f"p50 {units.latency(late['p50'])}, p99 {units.latency(late['p99'])}, "
         f"at most {units.latency(late['max'])}"),
        ("issued trace", str(output)),
        *(("note", note) for note in done.notes if not note.startswith("timed I/O: issued")),
    ]  # fmt: skip


def _responses(done: TraceIssued) -> list[tuple[str, ...]]:
    """Response times, which count from when an I/O was due."""
    rows = []
    for name, one in done.operations.items():
        of = one["response"]
        at = (of.quantile(q).value_ns for q in _QUANTILES.values())
        rows.append((
            name, f"{one['ios']:,}", units.size(one["bytes"]), units.latency(of.mean_ns),
            *(units.latency(value) for value in at), units.latency(of.max_ns),
        ))  # fmt: skip
    return rows
