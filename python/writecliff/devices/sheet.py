"""Data sheet fields, their units, and files that contain their values.

`derive.py` derives a device file from a data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.input_files import read_toml

INTERFACES = ("sata", "sas", "pcie3", "pcie4", "pcie5")
CELLS = ("slc", "mlc", "tlc", "qlc")
REQUIRED = ("interface", "capacity", "year")


def _field(unit: str, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=None, metadata={"unit": unit, "help": help, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class DataSheet:
    """A data sheet in bytes, bytes/s and ns, where unspecified values are `None`."""

    name: str = "my-drive"
    interface: str = _field("", "interface", INTERFACES)
    capacity: float = _field("size", "user capacity, such as 960GB")
    year: int = _field("year", "year in which it was introduced")
    cell: str | None = _field("", "bits per cell", CELLS)
    power_loss_protection: bool | None = _field("flag", "capacitors for its write buffer")
    dram: bool | None = _field("flag", "DRAM of its own")
    sequential_read: float | None = _field("rate", "sequential reads, such as 550MB/s")
    sequential_write: float | None = _field("rate", "sequential writes, of a new drive")
    write_after_cache: float | None = _field("rate", "sequential writes once the SLC cache is full")
    write_while_folding: float | None = _field(
        "rate", "sequential writes while the full SLC cache is folded"
    )
    slc_cache: float | None = _field("size", "SLC cache, 0 for none")
    random_read: float | None = _field("IOPS", "random 4 KiB reads per second")
    random_write: float | None = _field("IOPS", "random 4 KiB writes per second")
    sustained_write: float | None = _field("IOPS", "random 4 KiB writes in steady state")
    read_latency: float | None = _field("time", "4 KiB read at queue depth 1, such as 90us")
    write_latency: float | None = _field("time", "4 KiB write at queue depth 1")
    tbw: float | None = _field("size", "bytes that may be written in its life, such as 600TB")
    form_factor: str | None = _field("", "form factor, such as 'M.2 2280'")
    uber: str | None = _field("", "uncorrectable bit error rate, such as '1 sector in 10^17 bits'")
    mtbf: str | None = _field("", "mean time between failures, such as '2,000,000 h'")

    @property
    def enterprise(self) -> bool:
        """`True` if random writes are rated in steady state, as for drives that have capacitors."""
        return bool(self.power_loss_protection)

    @property
    def steady_write(self) -> float | None:
        """Number of random writes per second in steady state."""
        return self.sustained_write or (self.random_write if self.enterprise else None)

    @property
    def has_cache(self) -> bool:
        """`True` if the drive has an SLC cache, like client drives with TLC or QLC flash."""
        if self.slc_cache is not None:
            return self.slc_cache > 0
        return not self.enterprise and self.cell in ("tlc", "qlc", None) and self.year >= 2013


ANSWERS = tuple(fields(DataSheet))


def answer(name: str, text: object) -> Any:
    """Parse the text of a field.

    Raises:
        ConfigError: If the text is not a valid value.
    """
    (item,) = (field for field in ANSWERS if field.name == name)
    unit, choices = item.metadata.get("unit", ""), item.metadata.get("choices", ())
    where = name.replace("_", "-")
    if unit == "flag":
        flags = {"yes": True, "no": False, "true": True, "false": False}
        if str(text).lower() not in flags:
            raise ConfigError(f"{where} is '{text}'", hint="specify yes or no")
        return flags[str(text).lower()]
    if choices and str(text) not in choices:
        raise ConfigError.unknown(where, str(text), choices)
    if unit in ("", None):
        return str(text)
    try:
        plain = unit in ("IOPS", "year")
        value = float(str(text)) if plain else number(_spaced(str(text)))
    except (ValueError, ConfigError):
        raise ConfigError(f"{where} is '{text}'", hint=item.metadata["help"]) from None
    low, high = (1990, 2100) if unit == "year" else (0, 1e18)
    if not low <= value <= high or (value == 0 and name != "slc_cache"):
        raise ConfigError(f"{where} is '{text}'", hint=item.metadata["help"])
    return int(value) if unit == "year" else value


def _spaced(text: str) -> str:
    """Return a quantity in device file notation, where 0 without a unit is a size."""
    return "0 B" if text.strip() == "0" else text


def sheet_of(answers: Mapping[str, object]) -> DataSheet:
    """Return the data sheet defined by texts that are keyed by field.

    Raises:
        ConfigError: If a field is unknown, invalid or missing.
    """
    names = [field.name for field in ANSWERS]
    for name in answers:
        if name not in names:
            raise ConfigError.unknown("answer", name, names)
    missing = [name for name in REQUIRED if answers.get(name) is None]
    if missing:
        raise ConfigError(
            f"missing data sheet values: {', '.join(missing)}",
            hint=f"for example --{missing[0]} {_EXAMPLES[missing[0]]}",
        )
    given = {name: answer(name, text) for name, text in answers.items() if text is not None}
    return DataSheet(**given)


_EXAMPLES = {"interface": "pcie4", "capacity": "1TB", "year": "2022"}


def read_answers(path: Path) -> dict[str, object]:
    """Read a TOML file that contains values by field.

    Raises:
        ConfigError: If the file cannot be read or is not valid TOML.
    """
    return dict(read_toml(path))
