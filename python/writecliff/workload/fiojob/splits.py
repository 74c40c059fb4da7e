"""Parsers for fio lists with percentages: bssplit, zoned random_distribution, write_mode.

Entries without a percentage divide the remainder equally, as in fio 3.33 (options.c). All
percentages are whole numbers. Commas separate the lists for reads, writes and trims.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from writecliff.workload.fiojob.values import (
    Context,
    FioValueError,
    Triple,
    number,
    whole_percent,
)


@dataclass(frozen=True)
class Distribution:
    """A random_distribution with its kind, its parameter, and its zones as (access %, size).

    `parameter` is Zipf's theta, Pareto's h, or the normal distribution's spread in percent. Sizes
    are in bytes if `absolute`, otherwise in percent of the range.
    """

    kind: str = "random"
    parameter: float | None = None
    centre: float | None = None
    zones: Triple[Split] | None = None
    absolute: bool = False
    blocks: tuple[int, ...] = ()  # Blocks of the `sequence` kind.


Split = tuple[tuple[int, int], ...]
WriteModes = tuple[tuple[str, int], ...]
_WRITE_MODES = ("write", "uncor", "zeroes", "verify", "zone_append")


def _directions(text: str) -> list[str]:
    """Return the lists for reads, writes and trims; a missing list equals the preceding list."""
    parts = text.strip().split(",")
    if len(parts) > 3:
        raise FioValueError(f"'{text}' has more than three parts", "read,write,trim")
    return parts + [parts[-1]] * (3 - len(parts))


def _entries(text: str) -> list[tuple[str, str | None]]:
    entries = []
    for part in text.strip().split(":"):
        if not part.strip():
            continue
        first, slash, second = part.partition("/")
        entries.append((first, second.strip() if slash and second.strip() else None))
    return entries


def _share(text: str | None, entry: str, context: Context) -> int | None:
    """Parse a percentage; 0 counts as missing, as in fio."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(\.\d*)?%?", text)
    if match is None:
        raise FioValueError(f"'{text}' in '{entry}' is not a percentage")
    if match.group(2):
        whole_percent(text.rstrip("%"), context)
    return min(int(match.group(1)), 100) or None


def _fill(shares: list[int | None], what: str) -> list[int]:
    """Divide the remainder among the entries without a percentage."""
    given = sum(share for share in shares if share is not None)
    missing = shares.count(None)
    if given > 100:
        raise FioValueError(f"the percentages of {what} add up to {given} %, more than 100")
    rest = (100 - given) // missing if missing else 0
    return [rest if share is None else share for share in shares]


def bssplit(text: str, context: Context) -> Triple[Split]:
    """Parse (size in bytes, weight) pairs for reads, writes and trims."""
    return Triple(*(_block_sizes(part, context) for part in _directions(text)))


def _block_sizes(text: str, context: Context) -> Split:
    entries = _entries(text)
    if not entries:
        raise FioValueError(
            "the value contains no block sizes",
            "specify block sizes and percentages, for example 4k/60:64k/40",
        )
    sizes = [number(first, context) for first, _ in entries]
    if min(sizes) < 1:
        raise FioValueError(f"the block size {min(sizes)} in '{text}' is less than 1 byte")
    shares = [_share(second, text, context) for _, second in entries]
    weights = [100] if len(shares) == 1 else _fill(shares, "bssplit")
    # fio chooses from the list in the order of the percentages. The last entry receives the
    # remainder.
    order = sorted(range(len(sizes)), key=lambda index: weights[index])
    weights[order[-1]] += 100 - sum(weights)
    merged: dict[int, int] = {}
    smallest = min(sizes)
    for index in range(len(sizes)):
        if weights[index] > 0:
            # fio rounds every size down to a multiple of the smallest size.
            cut = sizes[index] - sizes[index] % smallest
            merged[cut] = merged.get(cut, 0) + weights[index]
    return tuple(sorted(merged.items()))


def write_modes(text: str, context: Context) -> WriteModes:
    """Parse the (mode, percentage) pairs of `write_mode`: one mode, or `mode/share:mode/share`."""
    parts = [part.strip().partition("/") for part in text.strip().split(":")]
    for mode, slash, share in parts:
        if mode not in _WRITE_MODES:
            raise FioValueError(
                f"the write mode '{mode}' is unknown", f"use one of {', '.join(_WRITE_MODES)}"
            )
        if bool(slash) != (len(parts) > 1) or not re.fullmatch(r"\d*", share):
            raise FioValueError(
                f"'{text.strip()}' is neither a mode nor a list of modes with percentages",
                "write/60:zeroes/40",
            )
    if len(parts) == 1:
        return ((parts[0][0], 100),)
    shares = [int(share) if share else None for _, _, share in parts]
    filled = _fill(shares, "write_mode")
    if None not in shares and sum(filled) != 100:
        raise FioValueError(f"the percentages of write_mode add up to {sum(filled)} %, not to 100")
    return tuple((mode, share) for (mode, _, _), share in zip(parts, filled, strict=True))


def distribution(text: str, context: Context) -> Distribution:
    """Parse random_distribution; raise FioValueError for unsupported distributions."""
    kind, _, rest = text.strip().partition(":")
    if kind in ("random", "uniform"):
        return Distribution()
    if kind in _PARAMETERS:
        return _with_parameter(kind, rest)
    if kind in ("zoned", "zoned_abs"):
        if not rest:
            raise FioValueError(
                f"'{text}' defines no zones", "specify the zones, for example zoned:80/20:20/80"
            )
        absolute = kind == "zoned_abs"
        parts = (_zones(part, absolute, context) for part in _directions(rest))
        return Distribution("zoned", zones=Triple(*parts), absolute=absolute)
    if kind == "sequence":
        return Distribution("sequence", blocks=_sequence(rest, context))
    raise FioValueError(
        f"the distribution '{kind}' is unknown",
        "use random, zipf:theta, pareto:h, normal:spread, zoned:... or sequence:...",
    )


# Name in the model, and fio's default for the parameter.
_PARAMETERS = {
    "zipf": ("zipf", 1.1),
    "pareto": ("pareto", 0.2),
    "normal": ("normal", 0.0),
    "gauss": ("normal", 0.0),
}


def _with_parameter(kind: str, rest: str) -> Distribution:
    """Read `zipf:theta[:centre]`, `pareto:h[:centre]` or `normal:spread[:centre]`."""
    name, default = _PARAMETERS[kind]
    value_text, _, centre_text = rest.partition(":")
    try:
        value = float(value_text) if value_text else default
        centre = float(centre_text) if centre_text else None
    except ValueError:
        raise FioValueError(
            f"'{kind}:{rest}' does not contain a valid number",
            f"specify a number, for example {kind}:1.2",
        ) from None
    # These comparisons also reject "nan".
    if name == "zipf" and (not 0 < value <= 10 or value == 1.0):
        raise FioValueError(
            f"the zipf theta {value:g} is out of range",
            "use a theta above 0 and at most 10, except 1, for example 1.2",
        )
    if name == "pareto" and not 0 < value < 1:
        raise FioValueError(
            f"the pareto parameter h {value:g} is out of range",
            "use a value above 0 and below 1, for example 0.2",
        )
    if name == "normal" and not 0 <= value <= 100:
        raise FioValueError(
            f"the normal spread {value:g} is out of range",
            "use 0 to 100 percent of the address range",
        )
    if centre is not None and not 0 <= centre <= 1:
        raise FioValueError(
            f"the {kind} centre {centre:g} is out of range", "use a number from 0 to 1"
        )
    return Distribution(name, parameter=value, centre=centre)


def _sequence(text: str, context: Context) -> tuple[int, ...]:
    """Parse at most 64 block numbers."""
    blocks = tuple(number(part, context) for part in text.split(",") if part.strip())
    if not 0 < len(blocks) <= 64 or min(blocks) < 0:
        raise FioValueError(
            f"'{text}' is not a list of 1 to 64 blocks",
            "specify block numbers, for example sequence:2,0,1",
        )
    return blocks


def _zones(text: str, absolute: bool, context: Context) -> Split:
    entries = _entries(text)
    accesses = [whole_percent(first, context) for first, _ in entries]
    if sum(accesses) != 100:
        raise FioValueError(
            f"the access percentages in '{text}' add up to {sum(accesses)} %, not to 100"
        )
    if absolute:
        if any(second is None for _, second in entries):
            raise FioValueError(f"'{text}' omits the size of a zone")
        sizes = [number(second or "0", context) for _, second in entries]
    else:
        sizes = _fill([_share(second, text, context) for _, second in entries], "the zones' sizes")
    if min(sizes) <= 0:
        raise FioValueError(f"a zone in '{text}' has a size of 0")
    return tuple(zip(accesses, sizes, strict=True))
