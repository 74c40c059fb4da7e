"""The options in force for one job: its own over those of the [global] sections before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from writecliff.errors import did_you_mean
from writecliff.workload.fiojob.option import Option, Treatment, by_name
from writecliff.workload.fiojob.syntax import Place, RawOption, RawSection, fail
from writecliff.workload.fiojob.values import Context, FioValueError, Triple, flag, optional_string


@dataclass(frozen=True)
class Setting:
    """One value, where it stands, and how it was written."""

    value: Any
    place: Place
    written: str


@dataclass
class Settings:
    """Values by the canonical name of their option; `notes` is what to know of them."""

    name: str
    place: Place
    values: dict[str, Setting] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, key: str) -> Any:
        """The value in force, or fio's default."""
        setting = self.values.get(key)
        return _default(key) if setting is None else setting.value

    def given(self, key: str) -> bool:
        return key in self.values

    def place_of(self, *keys: str) -> Place:
        """Where the first of `keys` that is given stands; else where the job begins."""
        for key in keys:
            if key in self.values:
                return self.values[key].place
        return self.place

    def child(self, section: RawSection) -> Settings:
        """The settings of a section: these, with its own options over them."""
        settings = Settings(section.name, section.place, dict(self.values))
        settings.apply(section.options)
        return settings

    def apply(self, options: list[RawOption]) -> None:
        """Lay options over these, in the order in which fio does: units first."""
        known = [(raw, _known(raw)) for raw in options]
        for raw, option in sorted(known, key=lambda pair: pair[1].name != "kb_base"):
            self._apply(raw, option)

    def _apply(self, raw: RawOption, option: Option) -> None:
        text = raw.value
        if option.treatment is Treatment.REFUSED:
            if text is None or text not in option.neutral:
                raise fail(raw.place, f"option {raw.name} is not supported", option.text)
            return
        if text is None and option.read not in (flag, optional_string):
            raise fail(raw.place, f"option {raw.name} needs a value")
        context = Context(int(self["kb_base"]))
        try:
            value = option.read(text or "", context)
        except FioValueError as problem:
            raise fail(raw.place, f"{raw.name}: {problem}", problem.hint) from None
        earlier = self[option.key]
        if isinstance(value, Triple) and isinstance(earlier, Triple):
            value = value.over(earlier)
        self.values[option.key] = Setting(value, raw.place, text or "")
        self.notes += [f"{raw.place}: {raw.name}: {note}" for note in context.notes]


def written_options(options: list[RawOption]) -> dict[str, str]:
    """Options as fio lists them in its JSON: canonical names, without those that have no value."""
    listed: dict[str, str] = {}
    known = [(raw, _known(raw)) for raw in options]
    for raw, option in sorted(known, key=lambda pair: pair[1].name != "kb_base"):
        if raw.value:
            listed[option.name] = raw.value
    return listed


def _known(raw: RawOption) -> Option:
    option = by_name().get(raw.name)
    if option is None:
        hint = did_you_mean(raw.name, by_name(), "see docs/reference/fio-options.md")
        raise fail(raw.place, f"unknown option '{raw.name}'", hint)
    return option


@cache
def _default(key: str) -> Any:
    """fio's default; None where an option has none. Flags are off."""
    option = by_name()[key]
    if option.default is None:
        return False if option.read is flag else None
    return option.read(option.default, Context())
