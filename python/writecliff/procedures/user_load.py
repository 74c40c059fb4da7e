"""Base class of procedures that belong to no standard or campaign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from writecliff.procedures.model import Procedure
from writecliff.procedures.options import Deviation


class UserLoadProcedure(Procedure):
    """A procedure whose dataclass fields are its options. The write cache is on by default."""

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """Return the procedure whose `options_mapping` was `data`."""
        return cls(**data)

    def options_mapping(self) -> dict[str, Any]:
        """Return all fields as options."""
        return dict(vars(self))

    @property
    def edition(self) -> str:
        """Empty mapping, because there is no standard."""
        return ""

    def deviations(self) -> tuple[Deviation, ...]:
        """Return an empty result, because there is no standard that options could deviate from."""
        return ()

    @property
    def write_cache(self) -> bool:
        """`True`, which is the state after power-up."""
        return True
