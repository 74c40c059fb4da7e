"""Options of a job, from its section and from the preceding [global] sections."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar

from writecliff.errors import ConfigError, did_you_mean
from writecliff.workload.fiojob.option import Option, Treatment
from writecliff.workload.fiojob.options import FioOptions, by_name, log_name
from writecliff.workload.fiojob.syntax import RawOption, RawSection, SourceLocation, fail
from writecliff.workload.fiojob.values import Context, FioValueError, Triple, flag, optional_string

T = TypeVar("T")

# fio parses units first and file names last (options.c, `prio`).
_PRIORITIES = {"kb_base": -1, "unit_base": -1, "filename": 1, "filename_format": 1}


@dataclass(kw_only=True)
class Settings(FioOptions):
    """Option values as attributes, with notes for the user.

    `locations` contains each option's location in the file, by canonical name.
    """

    section: str
    location: SourceLocation
    locations: dict[str, SourceLocation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[ConfigError] = field(default_factory=list)  # Problems in the whole file.
    failed: bool = False  # `True` if an option was invalid.

    def given(self, name: str) -> bool:
        """Return `True` if the file sets an option in the section or in [global]."""
        return name in self.locations

    @property
    def job_name(self) -> str:
        """Name of the job in results and notes."""
        return self.name or self.section

    def note(self, text: str) -> None:
        """Add a note for the user about a difference from fio."""
        self.notes.append(f"job {self.job_name}: {text}")

    def error(self, names: str, message: str, hint: str | None = None) -> ConfigError:
        """Return the error for an option that has a problem.

        The error's location is that of the first of `names` (separated by blanks) in the file or,
        failing that, of the section.
        """
        given = (self.locations[name] for name in names.split() if name in self.locations)
        return fail(next(given, self.location), message, hint)

    def attempt(self, read: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
        """Call `read` and return its result; a ConfigError is added to the problems: None."""
        try:
            return read(*arguments, **named)
        except ConfigError as problem:
            self.problems.append(problem)
            return None

    def child(self, section: RawSection) -> Settings:
        """Return a copy of these settings, overridden by the options of a section.

        Problems with the section's options are added to the file's problems.
        """
        settings = copy(self)
        settings.section, settings.location = section.name, section.location
        settings.locations, settings.notes = dict(self.locations), []
        settings.apply(section.options)
        return settings

    def apply(self, options: list[RawOption]) -> None:
        """Apply options in fio's order, with units first."""
        before = len(self.problems)
        valid = [raw for raw in options if self.attempt(_option_of, raw)]
        for raw, option in _in_order(valid):
            self.attempt(self._apply, raw, option)
        self.failed |= len(self.problems) > before

    def _apply(self, raw: RawOption, option: Option) -> None:
        text = raw.value
        if option.treatment is Treatment.REFUSED:
            if text is None or text not in option.neutral:
                raise fail(raw.location, f"option {raw.name} is not supported", option.text)
            return
        if text is None and option.read not in (flag, optional_string, log_name):
            raise fail(raw.location, f"option {raw.name} requires a value")
        if option.treatment is Treatment.NO_EFFECT:
            if text not in ("0", "none"):
                self.locations[option.key] = raw.location
            return
        self.locations[option.key] = raw.location
        context = Context(int(self.kb_base))
        try:
            value = option.read(text or "", context)
        except FioValueError as problem:
            raise fail(raw.location, f"{raw.name}: {problem}", problem.hint) from None
        earlier = getattr(self, option.key)
        if isinstance(value, Triple) and isinstance(earlier, Triple):
            value = value.over(earlier)
        setattr(self, option.key, value)
        self.notes += [f"{raw.location}: {raw.name}: {note}" for note in context.notes]


def written_options(options: list[RawOption]) -> dict[str, str]:
    """Return options as in fio 3.41's JSON, with canonical names in parsing order.

    Options without a value, such as `time_based`, have an empty value, whereas fio 3.33 omits them.
    """
    written = [raw for raw in options if raw.name in by_name()]
    return {option.name: raw.value or "" for raw, option in _in_order(written)}


def _in_order(options: list[RawOption]) -> list[tuple[RawOption, Option]]:
    pairs = [(raw, _option_of(raw)) for raw in options]
    return sorted(pairs, key=lambda pair: _PRIORITIES.get(pair[1].name, 0))


def _option_of(raw: RawOption) -> Option:
    option = by_name().get(raw.name)
    if option is None:
        hint = did_you_mean(raw.name, by_name(), "see docs/reference/fio-options.md")
        raise fail(raw.location, f"unknown option '{raw.name}'", hint)
    return option
