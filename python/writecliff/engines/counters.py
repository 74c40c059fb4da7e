"""Drive counter values, and the simulator's declarations of counter names, units and kinds.

Counters are declared in Rust next to the mechanism that increments them. The stored columns, a
run's JSON, the counters of a scaled drive and docs/reference/counters.md (`python -m
writecliff.engines.counters`) are generated from the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Counter:
    """Declaration of a drive counter."""

    name: str
    unit: str  # "B", "ns", "J", "°C", "%", or "" for an event count
    meaning: str
    is_level: bool  # the value is a current state of the drive, not a lifetime sum
    scales: bool  # the value is proportional to the drive size and the work done
    is_real: bool  # the value is not a whole number


@lru_cache(maxsize=1)
def declared() -> Mapping[str, Counter]:
    """Return all counters by name, in display order."""
    from writecliff._native import counter_declarations

    return {row[0]: Counter(*row) for row in counter_declarations()}


class Counters(Mapping[str, "int | None"]):
    """A drive's lifetime counters by name, which are also available as attributes.

    `None` means that the drive does not report the counter.
    """

    def __init__(self, **values: float | None) -> None:
        """Set the given counters, and set all others to `None`.

        Raises:
            TypeError: If a name is not declared.
        """
        if unknown := values.keys() - declared().keys():
            raise TypeError(f"unknown drive counter: {', '.join(sorted(unknown))}")
        self._values: dict[str, int | None] = dict.fromkeys(declared()) | values

    def __getitem__(self, name: str) -> int | None:
        """Return a counter's value; None if the drive does not report it."""
        return self._values[name]

    def __getattr__(self, name: str) -> int | None:
        """Return a counter's value; None if the drive does not report it."""
        if name.startswith("_") or name not in declared():
            raise AttributeError(f"unknown drive counter: {name}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all declared counters."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of declared counters."""
        return len(self._values)

    def __repr__(self) -> str:
        """Return the counters that the drive reports."""
        reported = (f"{name}={value}" for name, value in self.items() if value is not None)
        return f"Counters({', '.join(reported)})"

    def since(self, earlier: Counters) -> Counters:
        """Return increases of sums since `earlier`, and current levels; None if unknown."""

        def grown(name: str, now: int | None) -> int | None:
            before = earlier[name]
            if now is None or declared()[name].is_level:
                return now
            return None if before is None else now - before

        return Counters(**{name: grown(name, now) for name, now in self.items()})

    def scaled(self, factor: float) -> Counters:
        """Return the counters of a drive whose size and work are scaled by `factor`."""

        def grown(name: str, value: int | None) -> float | None:
            if value is None or not declared()[name].scales:
                return value
            return value * factor if declared()[name].is_real else round(value * factor)

        return Counters(**{name: grown(name, value) for name, value in self.items()})

    def write_amplification_since(self, earlier: Counters) -> float | None:
        """Return the NAND bytes written per host byte written since `earlier`; None if unknown."""
        step = self.since(earlier)
        host, nand = step.host_write_bytes, step.nand_write_bytes
        return nand / host if nand is not None and host is not None and host > 0 else None


def reference() -> str:
    """Return the contents of docs/reference/counters.md."""
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
