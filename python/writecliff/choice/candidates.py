"""Candidates for a choice, selected by name, pattern, group or capacity."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from writecliff import units
from writecliff.devices import drives_of_today, is_real_drive, preset_names, show_device
from writecliff.devices.families import discontinued_year
from writecliff.engines.target import SIMULATED, is_simulated
from writecliff.errors import ConfigError

ALL, TODAY = "all", "today"


def find_candidates(
    words: Iterable[str],
    *,
    capacity: str | None = None,
    least: int = 2,
    include_discontinued: bool = False,
) -> tuple[str, ...]:
    """Return the names of the selected drives, excluding duplicates.

    Args:
        words: Presets, patterns ("pm863-*"), paths of device files, "today" (the default: current
            drives, except discontinued drives) or "all" (every preset except hard disks); a word
            may contain several selections, separated by commas.
        capacity: Range of capacities to select, such as "1TB..2TB".
        least: Minimum number of drives.
        include_discontinued: `True` to include the discontinued drives in "today".

    Raises:
        ConfigError: If a drive is unknown or a real drive, or if fewer than `least` drives are
            selected.
    """
    selected: dict[str, None] = {}
    omitted = () if include_discontinued else discontinued_today()
    for name in _split(words):
        selected.update(dict.fromkeys(_named(name, omitted)))
    names = _within(selected, capacity) if capacity is not None else tuple(selected)
    if len(names) < least:
        raise ConfigError(
            f"a choice requires at least two drives, but "
            f"{'only one is' if names else 'none are'} selected",
            hint="specify the drives with --candidates (`writecliff device list` lists their "
            "names)",
        )
    return names


def omitted_candidates(words: Iterable[str], capacity: str | None) -> Mapping[str, str]:
    """Return the drives of "today" that are omitted from the candidates, each with the reason."""
    if TODAY not in _split(words):
        return {}
    omitted = discontinued_today()
    names = [*omitted] if capacity is None else _within(omitted, capacity)
    return {name: f"was discontinued in {omitted[name]}" for name in names}


def discontinued_today() -> Mapping[str, int]:
    """Return the discontinued drives of "today", each with the year of its discontinuation."""
    years = {name: discontinued_year(name) for name in drives_of_today()}
    return {name: year for name, year in years.items() if year is not None}


def _split(words: Iterable[str]) -> list[str]:
    return [part.strip() for word in [*words] or [TODAY] for part in word.split(",")]


def _named(text: str, omitted: Collection[str]) -> Sequence[str]:
    if not text:
        raise ConfigError("--candidates contains an empty name")
    name = text.removeprefix(SIMULATED)
    if is_real_drive(text) or text.startswith("file:"):
        raise ConfigError(
            f"{text} is a real drive, but `choose` compares simulated drives",
            hint="use the drive's model from `writecliff device list`, or a device file",
        )
    if name == TODAY:
        return [drive for drive in drives_of_today() if drive not in omitted]
    if name == ALL:
        return [preset for preset in preset_names() if show_device(preset).kind != "disk"]
    if any(mark in name for mark in "*?["):
        matching = [preset for preset in preset_names() if fnmatchcase(preset, name)]
        if not matching:
            raise ConfigError(
                f"no drive of the catalogue matches '{text}'",
                hint="list the drives with `writecliff device list`",
            )
        return matching
    show_device(name)  # Raise ConfigError if the drive does not exist.
    return [str(Path(name).resolve()) if name.endswith(".toml") or "/" in name else name]


def _within(names: Iterable[str], capacity: str) -> tuple[str, ...]:
    low, dots, high = capacity.partition("..")
    if not dots:
        raise ConfigError(
            f"--capacity {capacity} is not a capacity range",
            hint="specify a range, for example 1TB..2TB",
        )
    smallest, largest = units.parse_size(low), units.parse_size(high)
    return tuple(n for n in names if smallest <= show_device(n).capacity_bytes <= largest)


def target_of(name: str) -> str:
    """Return the target for a candidate, such as "sim:pm863-480"."""
    return name if is_simulated(name) else f"{SIMULATED}{name}"
