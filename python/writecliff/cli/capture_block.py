"""The capture of a block device: its options, its progress, its summary."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.options import new_path
from writecliff.cli.output import emit_json, log, pairs
from writecliff.cli.streams import raw
from writecliff.errors import ConfigError, TargetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from writecliff.capture.block.run import BlockCapture

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
    """Run `writecliff capture --device`; the exit code. Raises as `capture_device` does, and
    TargetError for a device that had nothing to do."""
    from writecliff.api import capture_device

    if for_ is not None and command:
        raise ConfigError("a command and --for exclude each other", hint="give one")
    seconds = None if for_ is None else _seconds(for_)
    path = output or new_path("traces", device.name, suffix=".parquet")
    done = capture_device(
        device,
        output=path,
        command=command,
        seconds=seconds,
        stdout=sys.stderr.fileno() if as_json else None,
        on_tick=None if command else _Ticker(seconds),
    )
    metadata = done.metadata
    if as_json:
        from writecliff.api.answers.captures import DeviceCapture

        emit_json(DeviceCapture(trace=done.output, **metadata))
    else:
        log(pairs([("trace", f"{path}, {units.size(path.stat().st_size)}"), *lines(metadata)]))
    if not sum(metadata["requests"].values()) and not done.exit_code:
        raise TargetError(
            f"{device} had nothing to do: the trace has no requests",
            hint="name the device that the file system is on, as findmnt shows it",
        )
    return done.exit_code


def _seconds(text: str) -> float:
    seconds = units.parse_time(text) / NS_PER_S
    if seconds <= 0:
        raise ConfigError(f"--for is {text}; it must be above 0", hint="for example --for 1h")
    return seconds


def lines(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was captured, as names and figures."""
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


class _Ticker:
    """A line every ten seconds, or on a terminal one that is overwritten every second."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._ticks = 0

    def __call__(self, capture: BlockCapture) -> None:
        self._ticks += 1
        terminal = sys.stderr.isatty()
        if not terminal and self._ticks % 10:
            return
        text = f"{capture.counts.total:,} requests in {self._ticks} s"
        if self._seconds is not None:
            left = max(0.0, self._seconds - self._ticks)
            text += f", {units.duration(left * NS_PER_S)} left"
        if terminal:
            raw(sys.stderr).write(f"\r\x1b[K{text}\r")
            sys.stderr.flush()
        else:
            log(text)
