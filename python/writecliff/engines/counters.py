"""Counters of drives: their values, and the simulator's declarations of names, units and kinds.

Counters are declared in Rust beside the mechanism that counts. Stored columns, the JSON of a run,
the counters of a scaled drive and docs/reference/counters.md (`python -m
writecliff.engines.counters`) follow from the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Counter:
    """Declaration of a counter."""

    name: str
    unit: str  # "B", "ns", "J", "°C", "%", or "" for a count of events
    meaning: str
    is_level: bool  # current state of the drive; else a sum since the drive was new
    scales: bool  # proportional to the size of the drive and the amount of work
    is_real: bool  # not a whole number


@lru_cache(maxsize=1)
def declared() -> Mapping[str, Counter]:
    """Return all counters by name, in display order."""
    from writecliff._native import counter_declarations

    return {row[0]: Counter(*row) for row in counter_declarations()}


class Counters(Mapping[str, "int | None"]):
    """A drive's counters since it was new, by name, also as attributes.

    None: the drive does not report the counter.
    """

    def __init__(self, **values: float | None) -> None:
        """Set the given counters, and the others to None.

        Raises:
            TypeError: A name is not declared.
        """
        if unknown := values.keys() - declared().keys():
            raise TypeError(f"not a drive counter: {', '.join(sorted(unknown))}")
        self._values: dict[str, int | None] = dict.fromkeys(declared()) | values

    def __getitem__(self, name: str) -> int | None:
        """Return the value of a counter; None if the drive does not report it."""
        return self._values[name]

    def __getattr__(self, name: str) -> int | None:
        """Return the value of a counter; None if the drive does not report it."""
        if name.startswith("_") or name not in declared():
            raise AttributeError(f"not a drive counter: {name}")
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
        """Return the increase of sums since `earlier`, and current levels; None if unknown."""

        def grown(name: str, now: int | None) -> int | None:
            before = earlier[name]
            if now is None or declared()[name].is_level:
                return now
            return None if before is None else now - before

        return Counters(**{name: grown(name, now) for name, now in self.items()})

    def scaled(self, factor: float) -> Counters:
        """Return the counters of a drive with `factor` times the size and the work."""

        def grown(name: str, value: int | None) -> float | None:
            if value is None or not declared()[name].scales:
                return value
            return value * factor if declared()[name].is_real else round(value * factor)

        return Counters(**{name: grown(name, value) for name, value in self.items()})

    def write_amplification_since(self, earlier: Counters) -> float | None:
        """Return NAND bytes written per host byte written since `earlier`; None if unknown."""
        step = self.since(earlier)
        host, nand = step.host_write_bytes, step.nand_write_bytes
        return nand / host if nand is not None and host is not None and host > 0 else None


def reference() -> str:
    """Return the page docs/reference/counters.md."""
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
