"""Device file for a twin, with each value's source and the errors of held-out figures.

The errors are a comment in the file, so that they stay with the file: `choose` reads them as the
model's errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from writecliff.devices.edit import value_of, with_values
from writecliff.engines.base import DeviceIdentity
from writecliff.published.fit import Estimate
from writecliff.published.kinds import MEAN, MIXED, PURE, TAILS
from writecliff.published.scores import Row
from writecliff.twin.fitting import Fitted

Group = Literal["rates", "means", "tails"]
_GROUPS: Mapping[str, Group] = {
    PURE.name: "rates", MIXED.name: "rates", MEAN.name: "means", TAILS.name: "tails",
}  # fmt: skip
_WORDS: Mapping[Group, str] = {
    "rates": "rates", "means": "mean latencies", "tails": "99th percentiles",
}  # fmt: skip
_LINE = re.compile(
    # Older files contain the second wording.
    r"^# (?:held out|kept aside): (?P<figures>\d+) figures; "
    r"median errors: (?P<errors>.*)$",
    re.MULTILINE,
)
_ERROR = re.compile(r"(rates|mean latencies|99th percentiles) ([0-9.]+) %")


@dataclass(frozen=True)
class HeldOutErrors:
    """Median errors of held-out figures in percent; `None` for a group without figures."""

    rates_pct: float | None = None
    means_pct: float | None = None
    tails_pct: float | None = None
    figures: int = 0


def errors_of(rows: Sequence[Row]) -> HeldOutErrors:
    """Return the median errors between figures and their predictions."""
    sizes: dict[Group, list[float]] = {}
    for row in rows:
        group = _GROUPS.get(row.kind.name)
        if group is not None and row.error_pct is not None:
            sizes.setdefault(group, []).append(abs(row.error_pct))
    medians = {f"{group}_pct": median(percentages) for group, percentages in sizes.items()}
    return HeldOutErrors(figures=sum(map(len, sizes.values())), **medians)


def held_out_errors(text: str) -> HeldOutErrors | None:
    """Return the errors from a device file's comment, or `None` if the file is not a twin's."""
    match = _LINE.search(text)
    if match is None:
        return None
    by_word = {word: float(value) for word, value in _ERROR.findall(match["errors"])}
    errors = {f"{group}_pct": by_word.get(word) for group, word in _WORDS.items()}
    return HeldOutErrors(figures=int(match["figures"]), **errors)


def twin_text(fitted: Fitted, identity: DeviceIdentity, name: str, when: str) -> str:
    """Return the text of the device file with the sources of all values."""
    sources: dict[str, tuple[str, str | None]] = {
        "name": (f'"{name}"', "name of its file"),
        "description": (f'"twin of {_who(identity)}, by measurements"', "writecliff twin"),
        "model": (f'"twin of {_who(identity)}"', "shown in reports"),
    }
    keys = [estimate.key for estimate in fitted.result.estimates]
    for estimate in fitted.result.estimates:
        sources[estimate.key] = (_as_toml(fitted.text, estimate.key), source_of(estimate, keys))
    if fitted.spare is not None:
        blocks = str(value_of(fitted.text, "flash.blocks_per_plane"))
        what = "measured here by write amplification after overwrites"
        if not fitted.spare.exact:
            what += f"; the nearest possible, with {fitted.spare.waf:.2f}"
        sources["flash.blocks_per_plane"] = (blocks, what)
    dies = f"measured here by reads by queue depth: the nearest of {fitted.starts} starts"
    for key in ("flash.channels", "flash.dies_per_channel"):
        sources[key] = (str(value_of(fitted.text, key)), dies)
    text = with_values(fitted.text, sources)
    body = text[text.index("\n\n") :] if text.startswith("#") else "\n\n" + text
    return "\n".join(_head(fitted, identity, name, when)) + body


def source_of(estimate: Estimate, keys: Sequence[str]) -> str:
    """Return the comment that states a fitted value's source."""
    if not estimate.determined:
        return "default: no measured figure determines it; see the twin's page"
    ended = ", at a bound of the range" if estimate.at_bound else ""
    return f"measured here by a fit of {len(keys)} values, +/- {estimate.error_pct:.1f} %{ended}"


def _head(fitted: Fitted, identity: DeviceIdentity, name: str, when: str) -> list[str]:
    errors = errors_of(fitted.held_out)
    values: Mapping[Group, float | None] = {
        "rates": errors.rates_pct, "means": errors.means_pct, "tails": errors.tails_pct,
    }  # fmt: skip
    listed = [
        f"{_WORDS[group]} {value:.1f} %" for group, value in values.items() if value is not None
    ]
    return [
        f"# {name}: twin of {_who(identity)}, measured {when} by `writecliff twin`.",
        '# "measured here" marks measured and derived values, "default" all others.',
        f"# held out: {errors.figures} figures; median errors: {', '.join(listed) or 'none'}",
    ]


def _who(identity: DeviceIdentity) -> str:
    """Return the drive's name without characters that would end a TOML string or a comment."""
    words = " ".join(filter(None, (identity.vendor, identity.model))) or identity.target
    return re.sub(r'["\\\x00-\x1f]', "", words)


def _as_toml(text: str, key: str) -> str:
    import json

    return json.dumps(value_of(text, key))
