"""The drives that a choice is between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from writecliff import units
from writecliff.devices import drives_of_today, is_real_drive, preset_names, show_device
from writecliff.engines.target import SIMULATED, is_simulated
from writecliff.errors import ConfigError

ALL, TODAY = "all", "today"


def find_candidates(
    words: Iterable[str], *, capacity: str | None = None, least: int = 2
) -> tuple[str, ...]:
    """The drives that `words` name, each once: names of the catalogue, patterns ("pm863-*"), paths
    of device files, "today" (the default) or "all". `capacity` limits them to a range: "1TB..2TB".

    Raises ConfigError: no such drive, a real one, fewer than `least`.
    """
    found: dict[str, None] = {}
    for word in [*words] or [TODAY]:
        for name in (part.strip() for part in word.split(",")):
            found.update(dict.fromkeys(_named(name)))
    names = _within(found, capacity) if capacity is not None else tuple(found)
    if len(names) < least:
        raise ConfigError(
            f"a choice needs two drives or more, here {'is one' if names else 'are none'}",
            hint="give --candidates, see `writecliff device list`",
        )
    return names


def _named(text: str) -> Sequence[str]:
    if not text:
        raise ConfigError("--candidates has an empty name")
    name = text.removeprefix(SIMULATED)
    if is_real_drive(text) or text.startswith("file:"):
        raise ConfigError(
            f"{text} is a real drive; drives are chosen by simulation",
            hint="give its model from `writecliff device list`, or a device file",
        )
    if name == TODAY:
        return drives_of_today()
    if name == ALL:
        return [one for one in preset_names() if show_device(one).kind != "disk"]
    if any(mark in name for mark in "*?["):
        matching = [one for one in preset_names() if fnmatchcase(one, name)]
        if not matching:
            raise ConfigError(f"no drive of the catalogue matches '{text}'")
        return matching
    show_device(name)  # refuses what is not there
    return [str(Path(name).resolve()) if name.endswith(".toml") or "/" in name else name]


def _within(names: Iterable[str], capacity: str) -> tuple[str, ...]:
    low, dots, high = capacity.partition("..")
    if not dots:
        raise ConfigError(f"--capacity {capacity} is no range", hint="for example 1TB..2TB")
    smallest, largest = units.parse_size(low), units.parse_size(high)
    return tuple(n for n in names if smallest <= show_device(n).capacity_bytes <= largest)


def target_of(name: str) -> str:
    """The target of a candidate."""
    return name if is_simulated(name) else f"{SIMULATED}{name}"
