"""Base class of tests that have options, which resolves, stores and reads the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self

from writecliff.procedures.model import Procedure, Step, step_seed
from writecliff.procedures.options import (
    Deviation,
    O,
    deviations,
    is_short,
    options_from_mapping,
    options_to_mapping,
    settled,
)
from writecliff.procedures.registry import PROCEDURES
from writecliff.workload.model import KIB, SECOND_NS, BlockSize, Job, Pattern, Workload


class OptionedProcedure(Procedure, Generic[O]):
    """A test with options of type `O`. Raises ConfigError if an option is invalid.

    The option `quick` shortens a test. If a test `scales` and the drive is `simulated`, the test
    retains its length, and the drive is scaled down instead (`scaling.py`).
    """

    options_type: type[O]
    scales: ClassVar[bool] = True

    def __init__(self, options: O | None = None, *, simulated: bool = False) -> None:
        """Resolve and check the options, where `None` selects the defaults."""
        given = self.options_type() if options is None else options
        shorten = given.quick and not (simulated and self.scales)
        self.options = self.settle(given, shorten=shorten)
        self.check()

    def settle(self, options: O, *, shorten: bool) -> O:
        """Return `options` with every open value filled in."""
        return settled(options, shorten=shorten)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], *, simulated: bool = False) -> Self:
        """Return the procedure with the options `data`, such as its `options_mapping`."""
        return cls(options_from_mapping(cls.options_type, data), simulated=simulated)

    def check(self) -> None:
        """Raise ConfigError if options contradict each other."""

    @property
    def title(self) -> str:
        """The title in the registry; an edition may use a different name for the test."""
        return PROCEDURES[self.name].title

    @property
    def write_cache(self) -> bool:
        """`True` if the volatile write cache is enabled during the test."""
        return self.options.write_cache

    @property
    def purges(self) -> bool:
        """`False` if --no-purge is set."""
        return not self.options.no_purge

    @property
    def seed(self) -> int:
        """Base seed for the seeds of all steps."""
        return self.options.seed

    @property
    def quick(self) -> bool:
        """`True` with --quick."""
        return self.options.quick

    @property
    def duplicate_pct(self) -> float:
        """Percentage of written 4 KiB pages that are duplicates of another page."""
        return 0.0

    @property
    def is_short(self) -> bool:
        """`True` if --quick has shortened the steps."""
        return is_short(self.options)

    def options_mapping(self) -> dict[str, Any]:
        """Return all options as JSON values."""
        return options_to_mapping(self.options)

    def deviations(self) -> tuple[Deviation, ...]:
        """Return the options that deviate from their rules."""
        return deviations(self.options)

    @property
    def beginning(self) -> tuple[str, str]:
        """Descriptions of the first phases of every test, one sentence each."""
        cache = "on (WCE)" if self.write_cache else "off (WCD)"
        start = "purge the drive" if self.purges else "no purge: the drive starts in its state"
        return start, f"write cache {cache}"

    def step(self, name: str, load: Workload, *seed_path: object, sample: bool = False) -> Step:
        """Return a step named `name` that runs the workload `load`.

        Steps with different values in `seed_path` have different seeds.
        """
        seed = step_seed(self.seed, self.name, *seed_path)
        return Step(name, replace(load, name=name, seed=seed), sample)

    def access(
        self,
        name: str,
        *seed_path: object,
        seconds: float,
        queue_depth: int,
        threads: int = 1,
        pattern: Pattern = "random",
        block_bytes: int = 4 * KIB,
        read_pct: float = 0.0,
        sample: bool = False,
        **more: Any,
    ) -> Step:
        """Return a step of one access for `seconds`, with `more` fields for its `Job`."""
        job = Job(
            name=self.name,
            pattern=pattern,
            read_pct=read_pct,
            block_sizes=(BlockSize(block_bytes),),
            threads=threads,
            queue_depth=queue_depth,
            compressible_pct=self.options.compressible_pct,
            duplicate_pct=self.duplicate_pct,
            duration_ns=round(seconds * SECOND_NS),
        )
        return self.step(name, Workload(name, (replace(job, **more),)), *seed_path, sample=sample)
