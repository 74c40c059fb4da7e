"""Options and initial states shared by the published campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import recipe
from writecliff.procedures.model import Step
from writecliff.procedures.optioned import OptionedProcedure
from writecliff.procedures.options import (
    CAMPAIGN,
    PERCENT,
    QUICK_HELP,
    SEED,
    Within,
    campaign_option,
    no_purge_option,
    option,
)
from writecliff.procedures.registry import PROCEDURES
from writecliff.workload.model import Workload

PRICE = Within(0, 1e9, open_low=True)


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    """Options of every campaign. Omitted options have the campaign's values."""

    quick: bool = option(False, QUICK_HELP)
    no_purge: bool = no_purge_option(CAMPAIGN)
    write_cache: bool = campaign_option(True, "state of the volatile write cache")
    compressible_pct: float = campaign_option(
        0.0, "compressibility of the data in percent, where 0 means random data", within=PERCENT
    )
    seed: int = option(1, "seed for all random choices", within=SEED)

    @property
    def rule_keys(self) -> tuple[str, ...]:
        """Options that select a set of rules, which campaigns do not have."""
        return ()


K = TypeVar("K", bound=CampaignOptions)


class CampaignProcedure(OptionedProcedure[K]):
    """A published campaign.

    `quick` also shortens the campaign on simulated drives, because quantities that are measured
    from second to second, such as consistency or lag, do not scale with the drive.
    """

    scales = False

    @property
    def edition(self) -> str:
        """The published campaign that the test reproduces."""
        return PROCEDURES[self.name].campaign

    @property
    def active_range_pct(self) -> float | None:
        """The active range in percent of the addresses, or `None` if the campaign uses several."""
        return 100.0

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the parameters that every campaign discloses, which tests extend."""
        compressible = self.options.compressible_pct
        return {
            "subtitle": self.title,
            "data_pattern": f"{compressible:g}% compr." if compressible else "RND",
            "active_range": "100%",
            "ar_segments": "N/A",
            "precondition": "None",
        }

    def state(self, identity: DeviceIdentity, name: str) -> Sequence[Workload]:
        """Return the workloads that create a state (`engines.preconditioned.RECIPES`)."""
        loads = recipe(name, identity.capacity_bytes, seed=self.seed)
        return [self._compressible(load) for load in loads]

    def _compressible(self, load: Workload) -> Workload:
        """Return the load with the compressibility of the campaign's data."""
        share = self.options.compressible_pct
        return replace(load, jobs=tuple(replace(job, compressible_pct=share) for job in load.jobs))

    def step(self, name: str, load: Workload, *seed_path: object, sample: bool = False) -> Step:
        """Return a step with the compressibility of the campaign's data."""
        return super().step(name, self._compressible(load), *seed_path, sample=sample)
