"""The question of a choice: load, candidates, limits, weights and prices.

The question is stored as `choice.json` next to the runs. Limits, weights and prices can be changed
later without new measurements.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Self

from writecliff.errors import ConfigError
from writecliff.input_files import read_text
from writecliff.latency_basis import BASES, prefix_of
from writecliff.operation_names import FLUSH
from writecliff.procedures.scaling import LARGEST_USER_SCALE
from writecliff.report.expectations import Expectation, check_figures, parse_expectations
from writecliff.store.checksums import read_document, write_document
from writecliff.store.typed import typed
from writecliff.workload.model import SECOND_NS

SCHEMA = "writecliff/choice/1"
FILE_NAME = "choice.json"
LIFE, PRICE = "life", "price"
DEFAULT_WEIGHTS: Mapping[str, float] = {"p99.99": 1.0, LIFE: 1.0, PRICE: 1.0}
"""Default weights of a load with a rate. IOPS count too if drives run as fast as they can, and the
latency of flushes if the load has flushes."""
QUOTED: Mapping[str, float] = {"p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
FIGURE_UNITS: Mapping[str, str] = {
    "iops": "IOPS", "mb_per_s": "MB/s",
    **{f"{operation}{prefix_of(basis)}{time}": "ms" for basis in BASES
       for operation in ("", "reads/", "writes/") for time in ("mean", *QUOTED, "max")},
    f"{FLUSH}/iops": "IOPS", **{f"{FLUSH}/{time}": "ms" for time in ("mean", *QUOTED, "max")},
    "waf": "", "watts": "W", LIFE: "years", PRICE: "",
}  # fmt: skip
"""Units of the figures of a whole load, by key; limits may name other percentiles too."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Question that a choice answers."""

    workload: str  # Path of the workload file.
    candidates: tuple[str, ...]  # Drive names or paths of device files.
    limits: tuple[str, ...] = ()  # Limits in the user's notation, such as "p99.99 <= 2 ms".
    weights: Mapping[str, float] = field(
        default_factory=dict
    )  # Weights by figure; if empty: `DEFAULT_WEIGHTS`
    prices: Mapping[str, float] = field(default_factory=dict)  # Prices by drive name.
    # Bytes written per day; `None` for the load's own write rate around the clock.
    writes_per_day_bytes: int | None = None
    # Initial state; `None` for the load's initial state or, if the load has none, "sustained".
    precondition: str | None = None
    duration_ns: int | None = None  # Duration of each job; `None` for the load's own durations.
    # Over-provisioning values to try in addition to the drive's own value.
    spare_pct: tuple[float, ...] = ()
    seeds: int = 1
    # Largest factor by which drives are scaled down at the finest level. 1 means full size; if
    # `None`, the model errors for the drive class determine the factor.
    scale: float | None = None
    exhaustive: bool = False  # `True` to simulate every drive at the finest level.
    # Time limit for the finer levels, in ns; `None` if unlimited.
    budget_ns: int | None = 300 * SECOND_NS
    what_if: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)  # Reasons for omission by candidate.

    def __post_init__(self) -> None:
        """Check the values in the question.

        Raises:
            ConfigError: If a value is out of range, or a price is missing.
        """
        if not 1 <= self.seeds <= 100:
            raise ConfigError(f"--seeds must be from 1 to 100, not {self.seeds}")
        if self.scale is not None and not 1 <= self.scale <= LARGEST_USER_SCALE:
            raise ConfigError(
                f"--scale must be from 1 to {LARGEST_USER_SCALE:g}, not {self.scale:g}"
            )
        if self.budget_ns is not None and self.budget_ns < 0:
            raise ConfigError("--budget must not be negative")
        if any(not 0 < spare <= 1000 for spare in self.spare_pct):
            raise ConfigError(
                "--overprovision must be percentages above 0 and up to 1000, such as 7,28"
            )
        for key, weight in self.weights.items():
            if not (isfinite(weight) and weight >= 0):
                raise ConfigError(f"the weight of {key} must be 0 or more, not {weight:g}")
        if self.weights and not any(self.weights.values()):
            raise ConfigError(
                "all weights are 0, so the drives cannot be ranked; set at least one weight above 0"
            )
        if self.prices:
            for drive in self.candidates:
                if self.price_of(drive) is None:
                    raise ConfigError(
                        f"the price list has no price for {drive}",
                        hint="add the drive's price to the --prices file",
                    )
        self.expectations()

    def price_of(self, drive: str) -> float | None:
        """Return a candidate's price, or `None`, by its path or file name."""
        return self.prices.get(drive, self.prices.get(label_of(drive)))

    def expectations(self) -> Sequence[Expectation]:
        """Return the limits.

        Raises:
            ConfigError: If a limit is malformed, or names an unknown figure.
        """
        limits = parse_expectations(self.limits)
        check_figures(limits, FIGURE_UNITS)
        return limits

    def write(self, folder: Path) -> None:
        """Write `choice.json` to a folder.

        Raises:
            StoreError: If the file cannot be written.
        """
        write_document(folder / FILE_NAME, SCHEMA, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the question stored in a folder.

        Raises:
            ConfigError: If the folder does not contain a choice.
            StoreError: If `choice.json` is damaged.
        """
        path = folder / FILE_NAME
        if not path.is_file():
            raise ConfigError(
                f"{folder} was not created by `writecliff choose`: it does not contain {FILE_NAME}",
                hint="use the directory that `writecliff choose` printed",
            )
        return typed(read_document(path, SCHEMA), cls, path)


def label_of(drive: str) -> str:
    """Return a candidate's display name: its preset, or the name of its device file."""
    return Path(drive).stem if drive.endswith(".toml") else drive


def read_weights(texts: Iterable[str]) -> dict[str, float]:
    """Parse weights such as "p99.99=2", and return them by figure.

    Raises:
        ConfigError: If a text does not have the form FIGURE=WEIGHT.
    """
    weights = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            weights[key.strip()] = float(value)
        except ValueError:
            raise ConfigError(
                f"the weight '{text}' is not FIGURE=WEIGHT",
                hint='specify weights in the form "p99.99=2" or "life=1"',
            ) from None
    return weights


def read_prices(path: Path) -> dict[str, float]:
    """Read a CSV list of drives and prices in any currency, with or without a header.

    Raises:
        ConfigError: If a price is not a positive number, or a drive has two prices. The message
            names the line.
    """
    try:
        lines = list(csv.reader(read_text(path).removeprefix("\ufeff").splitlines()))
    except csv.Error as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    prices: dict[str, float] = {}
    for number, cells in enumerate(lines, 1):
        if not any(cell.strip() for cell in cells):
            continue
        name, price = cells[0].strip(), _price(cells)
        if price is None and not prices and number == 1:
            continue  # The row is a header.
        if price is None or not name:
            raise ConfigError(
                f"{path}, line {number}: expected a drive and a price",
                hint="write each row in the form pm863-960,249",
            )
        if name in prices:
            raise ConfigError(
                f"{path}, line {number}: {name} already has a price; remove one of the two lines"
            )
        prices[name] = price
    return prices


def _price(cells: Sequence[str]) -> float | None:
    try:
        price = float(cells[1])
    except (IndexError, ValueError):
        return None
    return price if isfinite(price) and price > 0 else None
