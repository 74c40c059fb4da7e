"""Procedures whose options are a dataclass: settled, checked, stored and read back in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

from writecliff.procedures.model import Procedure
from writecliff.procedures.options import (
    Deviation,
    deviations,
    options_from_mapping,
    options_to_mapping,
    settled,
)
from writecliff.procedures.registry import PROCEDURES


class CommonOptions(Protocol):
    """What the options of every test have."""

    @property
    def quick(self) -> bool: ...
    @property
    def write_cache(self) -> bool | None: ...
    @property
    def seed(self) -> int: ...


class OptionedProcedure(Procedure):
    """A test with options, settled and checked (else ConfigError)."""

    options_type: ClassVar[type[Any]]

    def __init__(self, options: CommonOptions | None = None) -> None:
        given = self.options_type() if options is None else options
        self.options: Any = settled(given, *self.rule_keys(given), quick=given.quick)
        self.check()

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """The procedure whose `options_mapping` was `data` (a manifest's)."""
        return cls(options_from_mapping(cls.options_type, data))

    @staticmethod
    def rule_keys(options: Any) -> tuple[str, ...]:
        """The keys under which a `Rule` may have its value, the most special one first; "*" is
        looked up after them."""
        return ()

    def check(self) -> None:
        """Refuse options that do not go together; raises ConfigError."""

    @property
    def title(self) -> str:
        """The title of its entry in the registry; an edition may call the test differently."""
        return PROCEDURES[self.name].title

    @property
    def write_cache(self) -> bool:
        return bool(self.options.write_cache)

    @property
    def seed(self) -> int:
        return int(self.options.seed)

    def options_mapping(self) -> dict[str, Any]:
        return options_to_mapping(self.options)

    def deviations(self) -> tuple[Deviation, ...]:
        return deviations(self.options, *self.rule_keys(self.options))
