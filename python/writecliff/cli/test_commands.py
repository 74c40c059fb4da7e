"""The commands `writecliff test NAME`, generated from each test's options.

An option's name, type, help and standard value are taken from the procedure's dataclass, so that
the command line always matches the procedure. `test_commands.NAME` is the command of the test NAME.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields, make_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Parameter

from writecliff.cli.options import NEW_RUN, NO_TARGET, RunOptions, TargetOptions, Whole
from writecliff.cli.output import JsonFlag
from writecliff.cli.runner import run_test
from writecliff.errors import ConfigError
from writecliff.procedures.options import CAMPAIGN, Rule, rule_of, value_text
from writecliff.procedures.registry import PROCEDURES, procedure_class

Command = Callable[..., int]
_SWITCH = Literal["on", "off"]
_FLAGS = ("quick", "no_purge")  # Options that take no value; all other switches take on or off.


def __getattr__(name: str) -> Command:
    """Return a test's command, given the test's name with underscores."""
    test = name.replace("_", "-")
    if test not in PROCEDURES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return command_for(test)


def command_for(name: str) -> Command:
    """Return the function that implements `writecliff test NAME`."""
    kind = _options_type(name)
    nothing = kind()

    def command(
        *,
        target: TargetOptions = NO_TARGET,
        run: RunOptions = NEW_RUN,
        options: Any = nothing,
        json: JsonFlag = False,
    ) -> int:
        return run_test(name, _given(name, options), target, run, as_json=json)

    command.__name__ = name.replace("-", "_")
    command.__doc__ = _help(name)
    command.__annotations__ = {
        "target": TargetOptions,
        "run": RunOptions,
        "options": kind,
        "json": JsonFlag,
        "return": int,
    }
    return command


def _help(name: str) -> str:
    entry = PROCEDURES[name]
    whose = "the campaign's" if entry.campaign else "the standard's"
    return f"{entry.help}\n\nOptions that differ from {whose} values are disclosed in the report."


def _options_type(name: str) -> type:
    """Return a dataclass of the procedure's options, whose defaults mean "not given"."""
    source = procedure_class(name).options_type
    hints = get_type_hints(source, vars(sys.modules[source.__module__]))
    members = [
        (item.name, _annotation(item, hints[item.name]), field(default=None, kw_only=True))
        for item in fields(source)
        if not item.metadata["measured"]
    ]
    kind = make_dataclass(f"{source.__name__}Given", members, frozen=True)
    kind.__module__ = __name__  # cyclopts would otherwise treat the class as a built-in type.
    return Parameter(name="*")(kind)


def _annotation(item: Field[Any], hint: Any) -> Any:
    """Return an option's type for cyclopts, which is an integer, a flag, or text for a list."""
    text = Parameter(help=_option_help(item))
    plain = _without_none(hint)
    choices = item.metadata.get("choices", ())
    if item.name in _FLAGS:
        return Annotated[bool | None, text]
    if plain is bool:
        return Annotated[_SWITCH | None, text]
    if plain is int:
        return Annotated[Whole, text]
    if plain is str and choices:
        return Annotated[Literal[choices] | None, text]
    if get_origin(plain) is tuple:
        return Annotated[str | None, text]
    return Annotated[plain | None, text]


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is UnionType:
        (plain,) = (part for part in get_args(hint) if part is not NoneType)
        return plain
    return hint


def _option_help(item: Field[Any]) -> str:
    text = str(item.metadata["help"])
    text = text[:1].upper() + text[1:]
    rule = rule_of(item)
    choices, default = item.metadata["choices"], item.metadata["unset"]
    if item.default is not None and item.name not in _FLAGS:
        default = "all" if item.default == choices else value_text(item.default)
    if choices and _sample(item) is not None:
        text += f"; a list of {','.join(choices)}"
    if rule is not None and item.name not in _FLAGS:
        text += f" ({_standard(rule)})"
    elif default:
        text += f" (default: {default})"
    return text + "."


def _standard(rule: Rule) -> str:
    """Return the option value in the standard or campaign, by edition if the editions differ."""
    exceptions = [f"{key}: {value_text(value)}" for key, value in rule.values.items() if key != "*"]
    if "*" not in rule.values:
        return ", ".join(exceptions)
    whose = "campaign" if rule.clause == CAMPAIGN else "standard"
    return "; ".join([f"{whose}: {value_text(rule.values['*'])}", *exceptions])


def _given(name: str, options: Any) -> Mapping[str, Any]:
    """Return the given options, converted to the procedure's types."""
    source = procedure_class(name).options_type
    given = {}
    for item in fields(source):
        value = getattr(options, item.name, None)
        if value is None:
            continue
        if _sample(item) is not None:
            value = _words(item, value)
        elif value in ("on", "off") and not item.metadata["choices"]:
            value = value == "on"
        given[item.name] = value
    return given


def _sample(item: Field[Any]) -> tuple[Any, ...] | None:
    """Return example values for a list option (its default or the standard's), or `None`."""
    rule = rule_of(item)
    values = [item.default, *(rule.values.values() if rule is not None else ())]
    return next((value for value in values if isinstance(value, tuple)), None)


def _words(item: Field[Any], text: str) -> list[Any]:
    """Parse a comma-separated list of values that have the type of the option's defaults."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        example = ", ".join(item.metadata["choices"]) or "values separated by commas"
        raise ConfigError(
            f"--{item.name.replace('_', '-')} is empty", hint=f"specify a list, such as {example}"
        )
    sample = _sample(item) or ()
    kind = type(next(iter(sample), ""))
    try:
        return [kind(word) for word in words]
    except ValueError:
        raise ConfigError(
            f"--{item.name.replace('_', '-')}: '{text}' is not a list of numbers",
            hint=f"use numbers, for example {value_text(sample)}",
        ) from None


def option_names(test: str) -> list[str]:
    """Return the names of a test's options. Raises ConfigError if the test does not exist."""
    if test not in PROCEDURES:
        raise ConfigError.unknown("test", test, PROCEDURES)
    return list(_settable(test))


def _settable(test: str) -> dict[str, Field[Any]]:
    source = procedure_class(test).options_type
    return {item.name: item for item in fields(source) if not item.metadata["measured"]}


def option_from_text(test: str, name: str, text: str) -> Any:
    """Return the value of an option that is given as text (`suite --set`).

    Raises:
        ConfigError: If the test does not have the option, or the value is invalid.
    """
    if test not in PROCEDURES:
        raise ConfigError.unknown("test", test, PROCEDURES)
    source = procedure_class(test).options_type
    items = _settable(test)
    if name not in items:
        raise ConfigError.unknown("option", name, items, where=test)
    item = items[name]
    if _sample(item) is not None:
        return _words(item, text)
    hints = get_type_hints(source, vars(sys.modules[source.__module__]))
    return _plain_value(test, name, _without_none(hints[name]), text.strip())


def _plain_value(test: str, name: str, kind: type, text: str) -> Any:
    if kind is bool:
        if text not in ("on", "off"):
            raise ConfigError(f"{test}.{name} must be on or off, not '{text}'")
        return text == "on"
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise ConfigError(f"{test}.{name} must be {what}, not '{text}'") from None


def setting(test: str, text: str) -> tuple[str, Any]:
    """Parse `OPTION=VALUE`. Raises ConfigError in the same cases as `option_from_text`."""
    option, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(
            f"the setting '{text}' in --set is not OPTION=VALUE",
            hint="specify settings in the form --set drive_fills=2",
        )
    option = option.strip().replace("-", "_")
    return option, option_from_text(test, option, value)
