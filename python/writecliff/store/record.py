"""A measured step in the form passed to the store by procedures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from writecliff.engines.base import StepResult
from writecliff.workload.model import Access

Scalar = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """A step in a run, with all its measurements.

    `extra` adds columns to the `rounds` table. Extra column names must differ from the store's
    column names.
    """

    phase: str  # Phase: "preconditioning", "rounds", "rth", or another procedure stage.
    round: int  # Round number from 1; 0 outside the rounds.
    step: int  # Number from 1 within the round or phase.
    label: str
    started_ns: int  # Device time since the first step of the rounds.
    elapsed_ns: int
    result: StepResult
    access: Access = field(default_factory=Access)
    sample: bool = False  # `True` for a steady-state sample, which provides the tracking variable.
    host_write_bytes_total: int = 0  # Total bytes written since the purge, including this step.
    waf: float | None = None
    extra: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def columns(self) -> Mapping[str, Any]:
        """Columns for the step in the `rounds` table, shared by the driver and the store.

        Raises:
            ValueError: Under the same conditions as `columns_of`.
        """
        from writecliff.store.tables import columns_of

        return columns_of(self)
