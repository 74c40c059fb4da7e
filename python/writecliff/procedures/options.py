"""Test options, declared together with the standard's values so that deviations can be disclosed.

`option` declares an option as a dataclass field. A `Rule` is a requirement of the standard, or of a
published campaign, for an option. `settled` fills in and checks open values. `deviations` lists the
deviations from the rules, for the manifest and the report.
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
    "run a shortened test that cannot reach steady state, and stamp the report. On simulated "
    "drives, PTS tests run at full length on a drive of reduced capacity instead"
)
CAMPAIGN = "the campaign"  # Clause name for the rules of a published campaign.


class CommonOptions(Protocol):
    """Options common to all tests. The classes are dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def quick(self) -> bool:
        """`True` to shorten the test."""
        ...

    @property
    def no_purge(self) -> bool:
        """`True` to skip the purge."""
        ...

    @property
    def write_cache(self) -> bool:
        """`True` to enable the volatile write cache."""
        ...

    @property
    def compressible_pct(self) -> float:
        """Data compressibility in percent, where 0 means random data."""
        ...

    @property
    def seed(self) -> int:
        """Random seed for all random choices."""
        ...

    @property
    def rule_keys(self) -> tuple[str, ...]:
        """The applicable keys of a `Rule`, most specific first."""


O = TypeVar("O", bound=CommonOptions)  # noqa: E741 - options of a test


@dataclass(frozen=True)
class Rule:
    """The standard's requirement for an option, with a value per edition, and a level."""

    # Defaults by edition, revision, both ("pts-c 1.x") or reading; "*" covers all others.
    values: Mapping[str, Any]
    level: Level
    clause: str

    def value(self, keys: tuple[str, ...]) -> Any:
        """Return the value of the first matching key in `keys`; `None` without a standard value."""
        return next((self.values[key] for key in (*keys, "*") if key in self.values), None)


@dataclass(frozen=True)
class Deviation:
    """An option that deviates from the standard's value."""

    option: str
    standard: Any
    used: Any
    level: Level
    clause: str

    def __str__(self) -> str:
        """Describe the deviation, in the wording of the report."""
        if self.option == "no_purge":
            return f"not purged by writecliff (--no-purge); a purge is required by {self.clause}"
        return (
            f"{self.option} is {value_text(self.used)}; {self.level} by {self.clause}: "
            f"{value_text(self.standard)}"
        )


def value_text(value: Any) -> str:
    """Return an option's value in command-line notation."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | list):
        return ",".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Within:
    """Range of a numeric option that engines support and that finishes in reasonable time."""

    low: float
    high: float
    open_low: bool = False  # `True` if the lower bound itself is excluded.

    def check(self, name: str, value: float) -> None:
        """Check that a value is in range; NaN is always out of range.

        Raises:
            ConfigError: If the value is out of range.
        """
        if not value > self.low and (self.open_low or value != self.low):
            than = "more than" if self.open_low else "at least"
            raise ConfigError(f"{name} must be {than} {self.low:g}, not {value:g}")
        if math.isinf(value):
            raise ConfigError(f"{name} must be a finite number, not {value:g}")
        if value > self.high:
            raise ConfigError(f"{name} must be at most {self.high:g}, not {value:g}")


PERCENT = Within(0, 100)
SOME_PERCENT = Within(0, 100, open_low=True)
SECONDS = Within(0.01, 3600 * 8784.0)  # Range from the resolution of fio's run times to one year.
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
    """Declare a dataclass field as a test option.

    Args:
        default: The default. Default value, where None means `quick` in the short form, or else the
            rule's value.
        help: Help text without the default, which the command line adds.
        rule: Requirement of the standard or campaign.
        within: Range for a number, or for each number in a list.
        choices: Allowed words for a text, or for each text in a list.
        quick: Value in the short form.
        unset: Description of a None that neither `quick` nor the rule replaces.
        measured: True for a value that the test measures itself and stores for its report.
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
    """Declare an option that defaults to the value required by `clause`.

    `values` is a single value, or a mapping by edition, revision or reading (see `Rule`).
    """
    rule = Rule(values if isinstance(values, Mapping) else {"*": values}, level, clause)
    return option(None, help, rule=rule, within=within, choices=choices, quick=quick)


def no_purge_option(clause: str) -> Any:
    """Declare the option that skips the purge, which `clause` requires."""
    help = (
        "skip the purge, and stamp the report. Use this option for a real drive that was purged by "
        "other means (behind USB, RAID or virtio, or with the vendor's tool)"
    )
    return option(False, help, rule=Rule({"*": False}, "required", clause))


def campaign_option(value: Any, help: str, **limits: Any) -> Any:
    """Declare an option that defaults to the value of the published campaign."""
    return required_option(CAMPAIGN, value, help, **limits)


def settled(options: O, *, shorten: bool) -> O:
    """Return `options`, checked and with open values filled in.

    The values are taken from the rules or, if `shorten` is set, from the short form.

    Raises:
        ConfigError: If a word or number is not allowed.
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
            # Remove duplicates, but preserve the order.
            filled[item.name] = tuple(dict.fromkeys(value))
    whole = replace(options, **filled)
    for item in fields(whole):
        _check(item, getattr(whole, item.name))
    return whole


def _check(item: Field[Any], value: object) -> None:
    within, choices = item.metadata["within"], item.metadata["choices"]
    for item_value in value if isinstance(value, tuple) else (value,):
        if choices and item_value not in choices:
            raise ConfigError.unknown(item.name.replace("_", " "), str(item_value), choices)
        if within is not None and item_value is not None:
            within.check(item.name, item_value)


def is_short(options: CommonOptions) -> bool:
    """Return `True` if `quick` has shortened the test by a short-form option value."""
    return options.quick and any(
        getattr(options, item.name) == item.metadata["quick"]
        for item in fields(options)
        if item.metadata["quick"] is not None
    )


def rule_of(item: Field[Any]) -> Rule | None:
    """Return the requirement of the standard or campaign, or `None` if there is none."""
    rule: Rule | None = item.metadata["rule"]
    return rule


def deviations(options: CommonOptions) -> tuple[Deviation, ...]:
    """Return every option that deviates from its rule."""
    differing = []
    for item in fields(options):
        rule, used = rule_of(item), getattr(options, item.name)
        standard = rule.value(options.rule_keys) if rule is not None else None
        if rule is not None and standard is not None and used != standard:
            differing.append(Deviation(item.name, standard, used, rule.level, rule.clause))
    return tuple(differing)


def options_to_mapping(options: CommonOptions) -> dict[str, object]:
    """Return the options as JSON values for the manifest, readable by `options_from_mapping`."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(options).items()
    }


def options_from_mapping(kind: type[O], data: Mapping[str, object]) -> O:
    """Create options from JSON values.

    Raises:
        ConfigError: If an option does not exist, or its value has the wrong type.
    """
    defaults = {item.name: item.default for item in fields(kind)}
    hints = get_type_hints(kind)
    lists = {name for name, hint in hints.items() if get_origin(hint) is tuple}
    # A list with a single value may be given as a plain value, as on the command line.
    data = {n: [v] if n in lists and isinstance(v, str) else v for n, v in data.items()}
    for name, value in data.items():
        if name not in defaults:
            raise ConfigError.unknown("option", name, defaults)
        if value is not None or defaults[name] is not None:  # `None`: still open
            as_type(value, hints[name], f"option {name}")
    return kind(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    )
