"""The base class of procedures that follow no standard and no campaign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from writecliff.procedures.model import Procedure
from writecliff.procedures.options import Deviation


class OwnProcedure(Procedure):
    """A dataclass whose fields are its options. The write cache is as after power-up: on."""

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """The procedure whose `options_mapping` was `data`."""
        return cls(**data)

    def options_mapping(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def edition(self) -> str:
        return ""

    def deviations(self) -> tuple[Deviation, ...]:
        """None: there is no standard to differ from."""
        return ()

    @property
    def write_cache(self) -> bool:
        return True
