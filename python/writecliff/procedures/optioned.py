"""The base class of all tests: options that are settled, stored and read back; steps with seeds."""

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
    """A test with options of type `O`. Raises ConfigError for options that are not allowed.

    The option `quick` shortens a test. On a `simulated` drive it leaves a test that `scales` as
    long as it is: the drive is scaled down instead (`scaling.py`).
    """

    options_type: type[O]
    scales: ClassVar[bool] = True

    def __init__(self, options: O | None = None, *, simulated: bool = False) -> None:
        given = self.options_type() if options is None else options
        shorten = given.quick and not (simulated and self.scales)
        self.options = self.settle(given, shorten=shorten)
        self.check()

    def settle(self, options: O, *, shorten: bool) -> O:
        """`options` with all values that were left open filled in."""
        return settled(options, shorten=shorten)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], *, simulated: bool = False) -> Self:
        """The procedure with the options `data`, which may be its `options_mapping`."""
        return cls(options_from_mapping(cls.options_type, data), simulated=simulated)

    def check(self) -> None:
        """Raise ConfigError for options that contradict each other."""

    @property
    def title(self) -> str:
        """The title of its entry in the registry; an edition may call the test differently."""
        return PROCEDURES[self.name].title

    @property
    def write_cache(self) -> bool:
        return self.options.write_cache

    @property
    def purges(self) -> bool:
        return not self.options.no_purge

    @property
    def seed(self) -> int:
        return self.options.seed

    @property
    def quick(self) -> bool:
        return self.options.quick

    @property
    def duplicate_pct(self) -> float:
        """The share of the written pages that repeat another."""
        return 0.0

    @property
    def is_short(self) -> bool:
        return is_short(self.options)

    def options_mapping(self) -> dict[str, Any]:
        return options_to_mapping(self.options)

    def deviations(self) -> tuple[Deviation, ...]:
        return deviations(self.options)

    @property
    def beginning(self) -> tuple[str, str]:
        """How every test begins, a sentence per phase."""
        cache = "on (WCE)" if self.write_cache else "off (WCD)"
        start = "purge the drive" if self.purges else "no purge: the drive begins as it is"
        return start, f"write cache {cache}"

    def step(self, name: str, load: Workload, *seed_path: object, sample: bool = False) -> Step:
        """A step of the workload `load`, called `name`. Steps with different values in `seed_path`
        get different seeds.
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
        """A step of one kind of access for `seconds`; `more` are further fields of its `Job`."""
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
