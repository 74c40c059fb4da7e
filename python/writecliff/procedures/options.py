"""Options of a test procedure: typed, with the standard's values, so that departures are disclosed.

Owns: how a procedure declares an option (`option`), what an edition of the standard says about it
(`Rule`), and the list of deviations that ends up in the manifest and on the report (`deviations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from writecliff.errors import ConfigError

Level = Literal["required", "recommended"]


@dataclass(frozen=True)
class Rule:
    """What the standard says about one option: a value for every edition, and how binding it is."""

    values: Mapping[str, Any]  # by edition or revision; "*" stands for all of them
    level: Level
    clause: str

    def value(self, *editions: str) -> Any:
        """The standard's value, None where it is silent."""
        for key in (*editions, "*"):
            if key in self.values:
                return self.values[key]
        return None


@dataclass(frozen=True)
class Deviation:
    """An option that is not at the standard's value."""

    option: str
    standard: Any
    used: Any
    level: Level
    clause: str

    def __str__(self) -> str:
        return (
            f"{self.option} is {_text(self.used)}; {self.level} by {self.clause}: "
            f"{_text(self.standard)}"
        )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def option(default: Any, help: str, *, rule: Rule | None = None) -> Any:
    """A dataclass field that is a procedure option. A default of None means: by edition, from the
    rule (see `resolve`)."""
    return field(default=default, metadata={"help": help, "rule": rule})


def rule_of(item: Field[Any]) -> Rule | None:
    return item.metadata.get("rule")


T = TypeVar("T")


def by_edition(options: Any, *editions: str) -> dict[str, Any]:
    """The values to fill in for options that were left at None and that the edition settles."""
    filled = {}
    for item in fields(options):
        rule = rule_of(item)
        if getattr(options, item.name) is None and rule is not None:
            filled[item.name] = rule.value(*editions)
    return filled


def deviations(options: Any, *editions: str) -> tuple[Deviation, ...]:
    """Every option that differs from what the edition requires or recommends."""
    found = []
    for item in fields(options):
        rule = rule_of(item)
        if rule is None:
            continue
        standard, used = rule.value(*editions), getattr(options, item.name)
        if standard is not None and used != standard:
            found.append(Deviation(item.name, standard, used, rule.level, rule.clause))
    return tuple(found)


def options_to_mapping(options: Any) -> dict[str, Any]:
    """Plain JSON-able values, for the manifest; `options_from_mapping` reads them back."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(options).items()
    }


def options_from_mapping(kind: type[T], data: Mapping[str, Any]) -> T:
    """Rebuild options. Raises ConfigError for a name that the procedure does not have."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    for name in data:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise ConfigError(
                f"unknown option '{name}'", hint=f"did you mean '{near[0]}'?" if near else None
            )
    return kind(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    )
