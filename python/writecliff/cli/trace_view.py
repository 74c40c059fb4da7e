"""How the commands on traces say how far they are, what they skipped, and what they found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from writecliff import units
from writecliff.cli.progress import Pace, Silence
from writecliff.traces.progress import TraceProgress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from writecliff.cli.screen import Screen
    from writecliff.traces.source import Skipped

_FIRST_S = 1.0  # nothing is shown of what is done at once
NS_PER_S = 1e9


class TraceView(TraceProgress):
    """What is done to a trace, how far it is and how long the rest may take: on a terminal a line
    that is redrawn, in a log one now and then."""

    def __init__(self, screen: Screen, what: str) -> None:
        self._screen = screen
        self._silence = Silence()
        self.part(what)

    @contextmanager
    def showing(self) -> Iterator[Self]:
        """Show it while the body runs."""
        with self._screen.showing(self.render):
            yield self

    def part(self, what: str) -> None:
        self._what, self._pace, self._share = what, Pace(), 0.0
        self._ios = self._ios_before = 0
        self._span = (0.0, 1.0)
        if not self._screen.terminal and self._silence.too_long():
            self._screen.log(what)

    def file(self, begin: float, end: float) -> None:
        """The next file of this part begins; it is from this share of the part to that."""
        self._ios_before, self._span = self._ios, (begin, end)

    def read(self, ios: int, share: float) -> None:
        self._ios = self._ios_before + ios
        self.done(share)

    def done(self, share: float) -> None:
        begin, end = self._span
        self._share = begin + share * (end - begin)
        if not self._screen.terminal and self._silence.too_long():
            self._screen.log(self.text)

    @property
    def text(self) -> str:
        """Where it is, as a line."""
        taken_s = self._pace.taken_s
        text = f"[{units.duration(round(taken_s) * NS_PER_S)}] {self._what}"
        if self._ios and taken_s > 0:
            text += f": {self._ios:,} I/Os, {self._ios / taken_s / 1e6:.1f} million a second"
        return f"{text}  {self._pace.how_far(self._share)}" if self._share else text

    def render(self) -> RenderableType:
        """The line, once it has taken a moment."""
        from rich.text import Text

        return Text(self.text) if self._pace.taken_s > _FIRST_S else ""


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
