"""What drives count: names, units and kinds as the simulator declares them, and values.

A counter is declared in Rust beside the mechanism that counts it. Stored columns, the JSON of a
run, the counters of a scaled drive and docs/reference/counters.md (`python -m
writecliff.engines.counters`) follow from the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Counter:
    """One declared counter."""

    name: str
    unit: str  # "B", "ns", "J", "°C", "%", or "" for a count of events
    meaning: str
    is_level: bool  # a state of the drive; else a sum since the drive was new
    scales: bool  # a drive of twice the size that does twice the work has twice the value
    is_real: bool  # not a whole number


@lru_cache(maxsize=1)
def declared() -> Mapping[str, Counter]:
    """All counters by name, in the order in which they are shown."""
    from writecliff._native import counter_declarations

    return {row[0]: Counter(*row) for row in counter_declarations()}


class Counters(Mapping[str, "int | None"]):
    """A drive's counters since it was new, by name, also as attributes. None: the drive does not
    tell. Raises TypeError for a name that is not declared.
    """

    def __init__(self, **values: float | None) -> None:
        if unknown := values.keys() - declared().keys():
            raise TypeError(f"not a drive counter: {', '.join(sorted(unknown))}")
        self._values: dict[str, int | None] = dict.fromkeys(declared()) | values

    def __getitem__(self, name: str) -> int | None:
        return self._values[name]

    def __getattr__(self, name: str) -> int | None:
        if name.startswith("_") or name not in declared():
            raise AttributeError(f"not a drive counter: {name}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        known = (f"{name}={value}" for name, value in self.items() if value is not None)
        return f"Counters({', '.join(known)})"

    def since(self, earlier: Counters) -> Counters:
        """What was counted since `earlier`, and levels as they are now. None: either is unknown."""

        def grown(name: str, now: int | None) -> int | None:
            before = earlier[name]
            if now is None or declared()[name].is_level:
                return now
            return None if before is None else now - before

        return Counters(**{name: grown(name, now) for name, now in self.items()})

    def scaled(self, factor: float) -> Counters:
        """The counters of a drive that is `factor` times as large and did as much more."""

        def grown(name: str, value: int | None) -> float | None:
            if value is None or not declared()[name].scales:
                return value
            return value * factor if declared()[name].is_real else round(value * factor)

        return Counters(**{name: grown(name, value) for name, value in self.items()})

    def write_amplification_since(self, earlier: Counters) -> float | None:
        """NAND bytes written per host byte written since `earlier`; None if either is unknown."""
        step = self.since(earlier)
        host, nand = step.host_write_bytes, step.nand_write_bytes
        return nand / host if nand is not None and host is not None and host > 0 else None


def reference() -> str:
    """The page docs/reference/counters.md."""
    lines = [
        "# Drive counters",
        "",
        "Made by `python -m writecliff.engines.counters > docs/reference/counters.md` from the",
        "declarations in the simulator; do not edit it.",
        "",
        "Simulated drives have the counters of the sections in their device files, real drives",
        "those of their SMART logs. A counter that a drive does not report is null. In the table",
        "`rounds` of a [run directory](run-directory.md), sums are those of the step and levels",
        "those at its end.",
        "",
        "| counter | unit | kind | meaning |",
        "|---|---|---|---|",
    ]
    for counter in declared().values():
        kind = "level" if counter.is_level else "sum"
        lines.append(f"| `{counter.name}` | {counter.unit} | {kind} | {counter.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
