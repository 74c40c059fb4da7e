"""Candidates for a choice, selected by name, pattern, group or capacity."""

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
    """Return the names of the selected drives, excluding duplicates.

    Args:
        words: Presets, patterns ("pm863-*"), paths of device files, "today" (the default: current
            drives) or "all" (every preset except hard disks); a word may contain several
            selections, separated by commas.
        capacity: Range of capacities to select, such as "1TB..2TB".
        least: Minimum number of drives.

    Raises:
        ConfigError: If a drive is unknown or a real drive, or if fewer than `least` drives are
            selected.
    """
    selected: dict[str, None] = {}
    for word in [*words] or [TODAY]:
        for name in (part.strip() for part in word.split(",")):
            selected.update(dict.fromkeys(_named(name)))
    names = _within(selected, capacity) if capacity is not None else tuple(selected)
    if len(names) < least:
        raise ConfigError(
            f"a choice requires at least two drives, but {'only one is' if names else 'none is'} "
            f"selected",
            hint="set --candidates (`writecliff device list` shows the names)",
        )
    return names


def _named(text: str) -> Sequence[str]:
    if not text:
        raise ConfigError("--candidates contains an empty name")
    name = text.removeprefix(SIMULATED)
    if is_real_drive(text) or text.startswith("file:"):
        raise ConfigError(
            f"{text} is a real drive, but `choose` compares simulated drives",
            hint="use the drive's model from `writecliff device list`, or a device file",
        )
    if name == TODAY:
        return drives_of_today()
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
            f"--capacity {capacity} is not a range", hint="specify a range, for example 1TB..2TB"
        )
    smallest, largest = units.parse_size(low), units.parse_size(high)
    return tuple(n for n in names if smallest <= show_device(n).capacity_bytes <= largest)


def target_of(name: str) -> str:
    """Return the target for a candidate, such as "sim:pm863-480"."""
    return name if is_simulated(name) else f"{SIMULATED}{name}"
