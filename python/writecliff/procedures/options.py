"""Options of a test procedure: typed, with the standard's values, so that departures are disclosed.

Owns: how a procedure declares an option (`option`), what an edition of the standard says about it
(`Rule`), and the list of deviations that ends up in the manifest and on the report (`deviations`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from writecliff.errors import ConfigError

Level = Literal["required", "recommended"]
CAMPAIGN = "the campaign"  # as a clause: not the standard, but what a published campaign did
T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """What the standard says about one option: a value for every edition, and how binding it is."""

    # By edition, revision or both ("pts-c 1.x"); "*" stands for all of them.
    values: Mapping[str, Any]
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
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


@dataclass(frozen=True)
class Within:
    """The numbers that an option may have: what engines can do, and runs that end."""

    low: float
    high: float
    open_low: bool = False  # the low end itself is not allowed

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError. NaN is never within."""
        if not value > self.low and (self.open_low or value != self.low):
            than = "more than" if self.open_low else "at least"
            raise ConfigError(f"{name} must be {than} {self.low:g}, not {value:g}")
        if math.isinf(value):
            raise ConfigError(f"{name} must be a finite number")
        if value > self.high:
            raise ConfigError(f"{name} must be at most {self.high:g}, not {value:g}")


PERCENT = Within(0, 100)
SOME_PERCENT = Within(0, 100, open_low=True)
SECONDS = Within(0.01, 3600 * 8784.0)  # from the resolution of fio's run times to a year
MINUTES = Within(0, 60 * 8784.0, open_low=True)
HOURS = Within(0, 8784.0, open_low=True)
THREADS = Within(1, 4096)
QUEUE_DEPTH = Within(1, 65536)
SEED = Within(0, (1 << 63) - 1)


def option(
    default: Any,
    help: str,
    *,
    rule: Rule | None = None,
    within: Within | None = None,
    choices: tuple[str, ...] = (),
    quick: Any = None,
) -> Any:
    """A dataclass field that is a procedure option.

    A default of None means: `quick` in a shortened run, else by edition, from the rule. `choices`
    are the words that a text, or each word of a list, may be.
    """
    metadata = {"help": help, "rule": rule, "within": within, "choices": choices, "quick": quick}
    return field(default=default, metadata=metadata)


def required_option(
    clause: str,
    values: Mapping[str, Any],
    help: str,
    *,
    within: Within | None = None,
    quick: Any = None,
) -> Any:
    """An option that stands at what `clause` requires, by edition (`Rule`), unless it is given."""
    return option(None, help, rule=Rule(values, "required", clause), within=within, quick=quick)


def step_option(clause: str, help: str = "length of a step") -> Any:
    """Seconds of a step: the standard's minute."""
    return required_option(clause, {"*": 60.0}, help, within=Within(0.01, 86400.0), quick=1.0)


TC_BY_EDITION = {"pts-e": 4, "pts-c": 2}
QD_BY_EDITION = {"pts-e": 32, "pts-c": 16}


def threads_option(clause: str, values: Mapping[str, int], level: Level = "recommended") -> Any:
    """TC of a test whose clause says `values`."""
    rule = Rule(values, level, clause)
    return option(None, "threads issuing I/O (TC)", rule=rule, within=THREADS)


def queue_depth_option(clause: str, values: Mapping[str, int], level: Level = "recommended") -> Any:
    """QD, of each thread."""
    rule = Rule(values, level, clause)
    return option(None, "outstanding I/Os of a thread (QD)", rule=rule, within=QUEUE_DEPTH)


def settled(options: T, *editions: str, quick: bool = False) -> T:
    """`options` with the values filled in that were left open, and checked.

    Raises ConfigError for a word or number that is not allowed.
    """
    filled: dict[str, Any] = {}
    for item in fields(options):  # type: ignore[arg-type]
        rule, short = rule_of(item), item.metadata.get("quick")
        if getattr(options, item.name) is None:
            if quick and short is not None:
                filled[item.name] = short
            elif rule is not None:
                filled[item.name] = rule.value(*editions)
        elif isinstance(value := getattr(options, item.name), tuple):
            filled[item.name] = tuple(dict.fromkeys(value))  # naming one twice means it once
    whole = replace(options, **filled)  # type: ignore[type-var]
    for item in fields(whole):  # type: ignore[arg-type]
        _check(item, getattr(whole, item.name))
    return whole


def _check(item: Field[Any], value: Any) -> None:
    within, choices = item.metadata.get("within"), item.metadata.get("choices", ())
    for one in value if isinstance(value, tuple) else (value,):
        if choices and one not in choices:
            raise ConfigError.unknown(item.name.replace("_", " "), str(one), choices)
        if within is not None and one is not None:
            within.check(item.name, one)


def rule_of(item: Field[Any]) -> Rule | None:
    return item.metadata.get("rule")


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
    known = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    for name in data:
        if name not in known:
            raise ConfigError.unknown("option", name, known)
    return kind(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    )
