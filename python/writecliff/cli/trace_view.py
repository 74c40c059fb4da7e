"""How the commands on traces say how far they are, what they skipped, and what they found."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from writecliff import units
from writecliff.cli.output import log
from writecliff.cli.streams import raw

if TYPE_CHECKING:
    from types import TracebackType

    from writecliff.traces.source import Skipped

_FIRST_S, _TERMINAL_S, _LINE_S = 2.0, 0.5, 10.0
NS_PER_S = 1e9


class Counter:
    """Says on stderr how many I/Os are done, if it takes long: a line that is overwritten on a
    terminal, else one every ten seconds."""

    def __init__(self, done: str) -> None:
        self._done = done
        self._begin = time.monotonic()
        self._next = self._begin + _FIRST_S
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            raw(sys.stderr).write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, ios: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        rate = ios / (now - self._begin)
        text = f"{ios:,} I/Os {self._done}, {rate / 1e6:.1f} million a second"
        self._shown = sys.stderr.isatty()
        self._next = now + (_TERMINAL_S if self._shown else _LINE_S)
        if self._shown:
            raw(sys.stderr).write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        else:
            log(text)


def skipped_line(one: Skipped) -> str:
    """What was skipped for one reason."""
    return f"{one.lines:,} lines: {one.reason}, first in line {one.first_line:,}"


def summary(of: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The measures of a trace in a few lines."""
    seconds, arrivals = of["duration_s"], of["arrivals"]
    streams = [
        f"{one['share_pct']:.0f} % {one['access']} {one['operation']} "
        f"{units.size(one['size_bytes'])}"
        for one in of["streams"][:4]
    ]
    per_year = of["drive"]["writes_per_year_bytes"]
    lines = [
        ("format", of["format"]),
        ("I/Os", f"{of['ios']:,} in {units.duration(seconds * NS_PER_S)}"),
        ("reads", f"{units.pct(of['read_pct'], 1)}, {units.size(of['read_bytes'])}"),
        ("writes", units.size(of["write_bytes"])),
        ("sequential", units.pct(of["sequential_pct"], 1)),
        ("streams", "; ".join(streams)),
        ("unique", units.size(of["unique_bytes"])),
        (
            "bursts",
            f"peak {arrivals['peak_ios_per_s']:,} I/Os in a second, "
            f"{units.significant(arrivals['peak_to_mean'])} times the mean",
        ),
    ]
    if (depth := of["queue_depth"]) is not None:
        lines.append(("queue depth", f"mean {depth['mean']:.1f}, p99 {depth['p99']}"))
    if (response := of["response_ms"]) is not None:
        said = [
            f"{name} mean {one['mean']:.3g} ms, p99 {one['p99']:.3g} ms"
            for name in ("read", "write")
            if (one := response[name]) is not None
        ]
        lines.append(("response", "; ".join(said)))
    if per_year is not None:
        lines.append(("a year", f"{units.size(per_year)} written"))
    return lines
