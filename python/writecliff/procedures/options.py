"""Options of a test: declared with the standard's values, so that deviations can be disclosed.

`option` declares one, as a field of a dataclass. `Rule` says what the standard, or a published
campaign, requires of it. `settled` fills in the values that were left open and checks them;
`deviations` lists what differs from the rules, for the manifest and the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_origin, get_type_hints

from writecliff.errors import ConfigError
from writecliff.input_files import as_type

Level = Literal["required", "recommended"]
QUICK_HELP = (
    "a shortened form, too short for steady state; tests of the standard on simulated drives keep"
    " their length, at a fraction of the capacity; its report is stamped"
)
CAMPAIGN = "the campaign"  # the clause of a rule that a published campaign sets, not the standard


class CommonOptions(Protocol):
    """What the options of every test have. They are dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def quick(self) -> bool: ...
    @property
    def no_purge(self) -> bool: ...
    @property
    def write_cache(self) -> bool: ...
    @property
    def compressible_pct(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def rule_keys(self) -> tuple[str, ...]:
        """The keys under which a `Rule` may have its value, the most specific one first."""


O = TypeVar("O", bound=CommonOptions)  # noqa: E741 - of the options of a test


@dataclass(frozen=True)
class Rule:
    """What the standard says about one option: a value per edition, and how binding it is."""

    # By edition, revision, both ("pts-c 1.x") or reading; "*" stands for all others.
    values: Mapping[str, Any]
    level: Level
    clause: str

    def value(self, keys: tuple[str, ...]) -> Any:
        """The value under the first of `keys`, None where the standard does not say."""
        return next((self.values[key] for key in (*keys, "*") if key in self.values), None)


@dataclass(frozen=True)
class Deviation:
    """An option that is not at the standard's value."""

    option: str
    standard: Any
    used: Any
    level: Level
    clause: str

    def __str__(self) -> str:
        if self.option == "no_purge":
            return f"not purged by writecliff (--no-purge); a purge is required by {self.clause}"
        return (
            f"{self.option} is {value_text(self.used)}; {self.level} by {self.clause}: "
            f"{value_text(self.standard)}"
        )


def value_text(value: Any) -> str:
    """The value of an option as the command line has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | list):
        return ",".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Within:
    """The range of a numeric option: what engines can do, and what ends in reasonable time."""

    low: float
    high: float
    open_low: bool = False  # the low end itself is not allowed

    def check(self, name: str, value: float) -> None:
        """Raises ConfigError for a value outside the range; NaN is always outside."""
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
BLOCK_KIB = Within(0.5, 65536)
SEED = Within(0, (1 << 63) - 1)


def option(
    default: Any,
    help: str,
    *,
    rule: Rule | None = None,
    within: Within | None = None,
    choices: tuple[str, ...] = (),
    quick: Any = None,
    unset: str = "",
    measured: bool = False,
) -> Any:
    """Declare a dataclass field as an option of a test.

    A default of None stands for `quick` in the short form, otherwise for the rule's value; `unset`
    says what it stands for where there is neither. `choices` are the words that a text, or each
    word of a list, may be. `help` does not name the default: the command line adds it. An option
    that is `measured` is found by the test itself, and kept for its report.
    """
    metadata = {
        "help": help,
        "rule": rule,
        "within": within,
        "choices": choices,
        "quick": quick,
        "unset": unset,
        "measured": measured,
    }
    return field(default=default, metadata=metadata)


def required_option(
    clause: str,
    values: Any,
    help: str,
    *,
    level: Level = "required",
    within: Within | None = None,
    choices: tuple[str, ...] = (),
    quick: Any = None,
) -> Any:
    """An option that has the value that `clause` requires unless it is given.

    `values` is one value, or a mapping by edition, revision or reading (see `Rule`).
    """
    rule = Rule(values if isinstance(values, Mapping) else {"*": values}, level, clause)
    return option(None, help, rule=rule, within=within, choices=choices, quick=quick)


def no_purge_option(clause: str) -> Any:
    """Whether the test begins on the drive as it is; `clause` requires a purge."""
    help = (
        "begin without a purge, for a real drive that was purged by other means (behind USB, RAID"
        " or virtio, or with the vendor's tool); its report is stamped"
    )
    return option(False, help, rule=Rule({"*": False}, "required", clause))


def campaign_option(value: Any, help: str, **limits: Any) -> Any:
    """An option that has the value of the published campaign unless it is given."""
    return required_option(CAMPAIGN, value, help, **limits)


def settled(options: O, *, shorten: bool) -> O:
    """`options` with the open values filled in by the rules, or with `shorten` by those of the
    short form, and checked.

    Raises ConfigError for a word or number that is not allowed.
    """
    filled: dict[str, Any] = {}
    for item in fields(options):
        value = getattr(options, item.name)
        rule, short = rule_of(item), item.metadata["quick"]
        if value is None and shorten and short is not None:
            filled[item.name] = short
        elif value is None and rule is not None:
            filled[item.name] = rule.value(options.rule_keys)
        elif isinstance(value, tuple):
            filled[item.name] = tuple(dict.fromkeys(value))  # naming a value twice means it once
    whole = replace(options, **filled)
    for item in fields(whole):
        _check(item, getattr(whole, item.name))
    return whole


def _check(item: Field[Any], value: object) -> None:
    within, choices = item.metadata["within"], item.metadata["choices"]
    for one in value if isinstance(value, tuple) else (value,):
        if choices and one not in choices:
            raise ConfigError.unknown(item.name.replace("_", " "), str(one), choices)
        if within is not None and one is not None:
            within.check(item.name, one)


def is_short(options: CommonOptions) -> bool:
    """Whether `quick` has shortened a test: an option has the value of the short form."""
    return options.quick and any(
        getattr(options, item.name) == item.metadata["quick"]
        for item in fields(options)
        if item.metadata["quick"] is not None
    )


def rule_of(item: Field[Any]) -> Rule | None:
    """What the standard or campaign says about the option, None if nothing."""
    rule: Rule | None = item.metadata["rule"]
    return rule


def deviations(options: CommonOptions) -> tuple[Deviation, ...]:
    """Every option that differs from what its rule requires or recommends."""
    found = []
    for item in fields(options):
        rule, used = rule_of(item), getattr(options, item.name)
        standard = rule.value(options.rule_keys) if rule is not None else None
        if rule is not None and standard is not None and used != standard:
            found.append(Deviation(item.name, standard, used, rule.level, rule.clause))
    return tuple(found)


def options_to_mapping(options: CommonOptions) -> dict[str, object]:
    """Plain JSON values, for the manifest; `options_from_mapping` reads them back."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(options).items()
    }


def options_from_mapping(kind: type[O], data: Mapping[str, object]) -> O:
    """Build options from plain values. Raises ConfigError for an unknown name, or a value of
    another type.
    """
    known = {item.name: item.default for item in fields(kind)}
    hints = get_type_hints(kind)
    lists = {name for name, hint in hints.items() if get_origin(hint) is tuple}
    # One value of a list may be given alone, as on the command line.
    data = {n: [v] if n in lists and isinstance(v, str) else v for n, v in data.items()}
    for name, value in data.items():
        if name not in known:
            raise ConfigError.unknown("option", name, known)
        if value is not None or known[name] is not None:  # None: not settled yet
            as_type(value, hints[name], f"option {name}")
    return kind(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    )
