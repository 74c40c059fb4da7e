"""What the commands on traces skipped, and what they found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from writecliff import units

if TYPE_CHECKING:
    from writecliff.traces.source import Skipped

NS_PER_S = 1e9


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
