"""What is asked of `writecliff choose`, and where it is kept: `choice.json` beside the runs.

Limits, weights and prices may be given anew for runs that are there: nothing is measured again.
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
from writecliff.report.expectations import Expectation, check_figures, parse_expectations
from writecliff.store.checksums import read_document, write_document
from writecliff.store.typed import typed

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
    """What is asked. `spare_pct` are over-provisionings beside that of the drive as sold."""

    workload: str  # the file
    candidates: tuple[str, ...]  # names of drives or paths of device files
    limits: tuple[str, ...] = ()  # as given: "p99.99 <= 2 ms"
    weights: Mapping[str, float] = field(
        default_factory=dict
    )  # by figure; empty: `DEFAULT_WEIGHTS`
    prices: Mapping[str, float] = field(default_factory=dict)  # by drive
    writes_per_day_bytes: int | None = None  # None: the load's own rate, all day
    precondition: str | None = None  # a recipe; None: as the load asks, else "sustained"
    duration_ns: int | None = None  # of each job; None: as the load says
    spare_pct: tuple[float, ...] = ()
    seeds: int = 1
    scale: float = 16.0  # at most so many times smaller are the drives simulated; 1: whole
    what_if: bool = True
    # Candidates of a group that cannot be simulated here, and why.
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError for what cannot be asked."""
        if not 1 <= self.seeds <= 100:
            raise ConfigError(f"--seeds must be 1 to 100, not {self.seeds}")
        if not 1 <= self.scale <= 1024:
            raise ConfigError(f"--scale must be 1 to 1024, not {self.scale:g}")
        if any(not 0 < one <= 1000 for one in self.spare_pct):
            raise ConfigError("--overprovision takes percentages above 0, such as 7,28")
        for key, weight in self.weights.items():
            if not (isfinite(weight) and weight >= 0):
                raise ConfigError(f"the weight of {key} must be 0 or more, not {weight:g}")
        if self.weights and not any(self.weights.values()):
            raise ConfigError("all weights are 0: nothing would rank the drives")
        if self.prices:
            for drive in self.candidates:
                if self.price_of(drive) is None:
                    raise ConfigError(f"there is no price of {drive}", hint="see --prices")
        self.expectations()

    def price_of(self, drive: str) -> float | None:
        """The price of a candidate; a device file may be called by its name without folder."""
        return self.prices.get(drive, self.prices.get(label_of(drive)))

    def expectations(self) -> Sequence[Expectation]:
        """The limits. Raises ConfigError."""
        limits = parse_expectations(self.limits)
        check_figures(limits, FIGURE_UNITS)
        return limits

    def write(self, folder: Path) -> None:
        """Write choice.json. Raises StoreError."""
        write_document(folder / FILE_NAME, SCHEMA, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The question of a folder. Raises ConfigError: there is none; StoreError: damaged."""
        path = folder / FILE_NAME
        if not path.is_file():
            raise ConfigError(
                f"{folder} is not a choice: it has no {FILE_NAME}",
                hint="give the directory that `writecliff choose` named",
            )
        return typed(read_document(path, SCHEMA), cls, path)


def label_of(drive: str) -> str:
    """What a candidate is called: the name of its file, or its own."""
    return Path(drive).stem if drive.endswith(".toml") else drive


def read_weights(texts: Iterable[str]) -> dict[str, float]:
    """Weights from "p99.99=2". Raises ConfigError."""
    found = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            found[key.strip()] = float(value)
        except ValueError:
            raise ConfigError(
                f"'{text}' is not FIGURE=WEIGHT", hint='for example "p99.99=2" or "life=1"'
            ) from None
    return found


def read_prices(path: Path) -> dict[str, float]:
    """A price list: lines of drive and price, with or without a header; any currency.

    Raises ConfigError, with the line: a price that is not a positive number, a drive twice.
    """
    try:
        lines = list(csv.reader(read_text(path).removeprefix("\ufeff").splitlines()))
    except csv.Error as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    found: dict[str, float] = {}
    for number, cells in enumerate(lines, 1):
        if not any(cell.strip() for cell in cells):
            continue
        name, price = cells[0].strip(), _price(cells)
        if price is None and not found and number == 1:
            continue  # a header
        if price is None or not name:
            raise ConfigError(
                f"{path}, line {number}: not a drive and a price", hint="for example pm863-960,249"
            )
        if name in found:
            raise ConfigError(f"{path}, line {number}: {name} has a price already")
        found[name] = price
    return found


def _price(cells: Sequence[str]) -> float | None:
    try:
        price = float(cells[1])
    except (IndexError, ValueError):
        return None
    return price if isfinite(price) and price > 0 else None
