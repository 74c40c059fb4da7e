"""What the published campaigns share: options, the state that they begin in, and their accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import recipe
from writecliff.procedures.model import Step, step_seed
from writecliff.procedures.optioned import OptionedProcedure
from writecliff.procedures.options import CAMPAIGN, PERCENT, SEED, Rule, Within, option
from writecliff.procedures.registry import PROCEDURES
from writecliff.workload.model import KIB, SECOND_NS, BlockSize, Job, Pattern, Workload

PRICE = Within(0, 1e9, open_low=True)


def campaign_rule(value: object) -> Rule:
    """What the campaign was published with."""
    return Rule({"*": value}, "required", CAMPAIGN)


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    """Options that every campaign has. None stands for the campaign's value."""

    quick: bool = option(False, "a shortened form for demos; its report is stamped")
    write_cache: bool | None = option(
        None, "state of the volatile write cache (on: as drives come)", rule=campaign_rule(True)
    )
    compressible_pct: float = option(
        0.0,
        "compressibility of the data (0: random)",
        rule=campaign_rule(0.0),
        within=PERCENT,
    )
    seed: int = option(1, "fixes every random choice", within=SEED)


class CampaignProcedure(OptionedProcedure):
    """A campaign, its options settled and checked (else ConfigError)."""

    @property
    def edition(self) -> str:
        """The published campaign that it repeats."""
        return PROCEDURES[self.name].campaign

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """The parameters that every campaign discloses; tests add theirs."""
        compressible = self.options.compressible_pct
        return {
            "subtitle": self.title,
            "data_pattern": f"{compressible:g}% compr." if compressible else "RND",
            "active_range": "100%",
            "ar_segments": "N/A",
            "precondition": "None",
        }

    def state(self, identity: DeviceIdentity, name: str) -> Sequence[Workload]:
        """The workloads of a recipe of `engines.preconditioned`."""
        return [self._compressible(load) for load in recipe(name, identity.capacity_bytes)]

    def _compressible(self, load: Workload) -> Workload:
        """The same load with the campaign's data."""
        share = self.options.compressible_pct
        return replace(load, jobs=tuple(replace(job, compressible_pct=share) for job in load.jobs))

    def step(self, name: str, load: Workload, *place: object) -> Step:
        """A step of a ready workload; `place` makes its seed differ from others'."""
        seed = step_seed(self.seed, self.name, *place)
        return Step(name, replace(self._compressible(load), name=name, seed=seed))

    def access(
        self,
        name: str,
        *place: object,
        seconds: float,
        queue_depth: int,
        threads: int = 1,
        pattern: Pattern = "random",
        block_bytes: int = 4 * KIB,
        read_pct: float = 0.0,
        range_bytes: int | None = None,
    ) -> Step:
        """One access for so many seconds."""
        job = Job(
            name=self.name,
            pattern=pattern,
            read_pct=read_pct,
            block_sizes=(BlockSize(block_bytes),),
            threads=threads,
            queue_depth=queue_depth,
            range_bytes=range_bytes,
            duration_ns=round(seconds * SECOND_NS),
        )
        return self.step(name, Workload(name, (job,)), *place)
