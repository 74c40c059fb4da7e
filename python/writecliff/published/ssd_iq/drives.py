"""Drives measured by SSD-iq, derived from their data sheets by the rule for current drives."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.devices.derive import derived, text_of
from writecliff.devices.sheet import ANSWERS, CELLS, DataSheet, answer
from writecliff.errors import ConfigError
from writecliff.input_files import read_text
from writecliff.published.modern_sheets import Drive, capacity_bytes, drives, facts
from writecliff.published.modern_usual import with_usual

SSD_IQ = "ssd-iq"  # Source name for the rows in `sheets.csv`.
SHEETS = Path(__file__).parent / "sheets.csv"
_YEARS = 5  # Warranty period in years, which data sheets use for drive writes per day.
# Flash year by PCIe generation, for drives that are missing from `modern_drives.toml`.
_YEAR_OF_LINK: Mapping[int, int] = {3: 2018, 4: 2021, 5: 2023}
_SAME_CAPACITY = 0.03  # Relative tolerance for names such as "1.92 TB" and "1,920 GB".
_SAME_NAME = 0.5  # Fraction of a data sheet's words that a drive name must exceed to match.
_NEEDED = ("drive", "capacity_gb")
_OPTIONAL = (
    "pcie", "seq_read_mb_s", "seq_write_mb_s", "random_read_iops", "random_write_iops", "dwpd",
    "read_latency_us", "write_latency_us", "year", "cell",
)  # fmt: skip
_CAPACITY = re.compile(r"(\d+(?:\.\d+)?) ?(TB|GB)\b", re.IGNORECASE)
_FORM_FACTOR = re.compile(r"\b(?:u\.[23]|m\.2|e[13]\.[sl])(?!\w)")
_ALIASES = {"solidigm": "intel"}


@dataclass(frozen=True)
class Sheet:
    """A row of a data-sheet table."""

    name: str
    sheet: DataSheet

    @property
    def label(self) -> str:
        """Name and capacity, which together identify a drive."""
        name = " ".join(_CAPACITY.sub(" ", self.name).split())
        return f"{name} {units.size(self.sheet.capacity)}"


@dataclass(frozen=True)
class _Name:
    """Drive name without capacity, form factor and remarks in parentheses."""

    words: tuple[str, ...]
    # Words with digits, which distinguish models. Treat D7-P5520 as P5520, because some sources
    # omit D7.
    models: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Name:
        text = re.sub(r"\(.*?\)", " ", text)
        capacity = _CAPACITY.search(text)
        if capacity:  # A unit number may follow the digits.
            text = text[: capacity.start()].strip() or text[capacity.end() :]
        text = _FORM_FACTOR.sub(" ", text.lower())
        models: set[str] = set()
        for name in re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", text):
            numbered = [word for word in name.split("-") if _has_digit(word)]
            models.update(numbered[-1:])
        return cls(tuple(_words(text)), frozenset(models))

    @property
    def variant(self) -> set[str]:
        """Words after the first word with a digit: Examples are PRO in 7450 PRO and R in CM7-R."""
        at = next((at for at, word in enumerate(self.words) if _has_digit(word)), len(self.words))
        return set(self.words[at + 1 :])

    def likeness(self, drive: _Name) -> float:
        """Return the fraction of the words that `drive`'s name contains; 0 for another drive."""
        words, other = set(self.words), set(drive.words)
        if not words or not self.models <= other:
            return 0.0
        if self.variant - drive.variant and drive.variant - self.variant:
            return 0.0
        return len(words & other) / len(words)


def read_table(
    path: Path, needed: Sequence[str], optional: Sequence[str]
) -> list[dict[str, str | None]]:
    """Read the rows of a CSV file that may have columns other than `needed` and `optional`.

    Raises:
        ConfigError: the file cannot be read, is not CSV, or lacks a required column.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    for name in needed:
        if name not in (reader.fieldnames or ()):
            hint = f"needed: {', '.join(needed)}; optional: {', '.join(optional)}"
            raise ConfigError(f"{path} does not contain the column '{name}'", hint=hint)
    return rows


def read_sheets(path: Path = SHEETS) -> list[Sheet]:
    """Read a data-sheet table with the columns of `sheets.csv`; `year` and `cell` are optional.

    Raises:
        ConfigError: the file cannot be read, lacks a column, or contains an invalid value.
    """
    return [
        _sheet(row, f"{path}: line {number}")
        for number, row in enumerate(read_table(path, _NEEDED, _OPTIONAL), 2)
        if row["drive"]
    ]


def _sheet(row: Mapping[str, str | None], where: str) -> Sheet:
    def number(column: str) -> float | None:
        text = (row.get(column) or "").strip().replace(",", "")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise ConfigError(f"{where}: {column} is '{text}', not a number") from None
        if not 0 < value < 1e15:
            raise ConfigError(f"{where}: {column} is {text}, not above 0 and below 1e15")
        return value

    def in_units(column: str, unit: float) -> float | None:
        value = number(column)
        return None if value is None else value * unit

    name = (row["drive"] or "").strip()
    slug = "-".join(_Name.of(name).words)
    capacity, link = (number("capacity_gb") or 0.0) * 1e9, int(number("pcie") or 4)
    if not capacity:
        raise ConfigError(f"{where}: capacity_gb is missing")
    if link not in _YEAR_OF_LINK:
        raise ConfigError(f"{where}: pcie is {link}", hint="use 3, 4 or 5")
    family = facts().get(family_of(name), {})
    year = number("year") or family.get("year") or _YEAR_OF_LINK[link]
    writes = number("dwpd")
    return Sheet(
        name,
        DataSheet(
            name=f"{slug}-{capacity / 1e9:g}",
            interface=f"pcie{link}",
            capacity=capacity,
            year=_answer(where, "year", f"{year:g}"),
            cell=_answer(where, "cell", _cell(row) or family.get("cell") or "tlc"),
            power_loss_protection=True,
            sequential_read=in_units("seq_read_mb_s", 1e6),
            sequential_write=in_units("seq_write_mb_s", 1e6),
            random_read=number("random_read_iops"),
            random_write=number("random_write_iops"),
            read_latency=in_units("read_latency_us", 1e3),
            write_latency=in_units("write_latency_us", 1e3),
            tbw=None if writes is None else writes * 365 * _YEARS * capacity,
        ),
    )


def _answer(where: str, name: str, value: object) -> Any:
    """Return a field of a data sheet. Raises ConfigError with the table's line number."""
    try:
        return answer(name, value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}", hint=error.hint) from None


def _cell(row: Mapping[str, str | None]) -> str:
    """Return the cell type in lower case ("tlc" for "3D TLC"), or unknown text unchanged."""
    text = (row.get("cell") or "").strip().lower()
    return next((cell for cell in CELLS if cell in _words(text)), text)


def family_of(name: str) -> str:
    """Return a drive's catalogue family, or an empty string.

    Figures from this family do not influence the typical values used for the drive.
    """
    words = set(_words(name))
    words |= {_ALIASES[word] for word in words if word in _ALIASES}
    matching = [family for family in facts() if set(family.split("-")) <= words]
    return max(matching, key=len, default="")


def sheet_of(drive: str, sheets: Iterable[Sheet]) -> Sheet:
    """Return the data sheet for a drive name, such as "Kioxia CM7-R 3.84 TB (PCIe 5)".

    Raises:
        ConfigError: no data sheet or more than one data sheet has this name and capacity.
    """
    name, capacity = _Name.of(drive), capacity_in(drive)
    ranks = {
        sheet: (likeness, len(sheet_name.words))
        for sheet in sheets
        if (likeness := (sheet_name := _Name.of(sheet.name)).likeness(name)) > _SAME_NAME
    }
    if not ranks:
        raise ConfigError(f"no data sheet for '{drive}'")
    best = max(ranks.values())
    named = [sheet for sheet, rank in ranks.items() if rank == best]
    fitting = [sheet for sheet in named if _is_capacity(sheet.sheet.capacity, capacity)]
    if not fitting:
        labels = ", ".join(sheet.label for sheet in named)
        raise ConfigError(f"no data sheet for '{drive}' has this capacity (known: {labels})")
    if len(fitting) > 1:
        labels = ", ".join(sheet.label for sheet in fitting)
        raise ConfigError(f"several data sheets match '{drive}': {labels}")
    return fitting[0]


def _is_capacity(have: float, wanted: float | None) -> bool:
    return wanted is None or abs(have / wanted - 1) < _SAME_CAPACITY


def capacity_in(text: str) -> float | None:
    """Return the capacity stated in a text, in bytes, or `None` if the text states none."""
    match = _CAPACITY.search(text)
    if match is None:
        return None
    return float(match[1]) * (1e12 if match[2].lower() == "tb" else 1e9)


def device_text(sheet: Sheet) -> str:
    """Return the device file derived from a sheet, its flash year and other families' figures.

    Raises:
        ConfigError: no flash from that year can meet the data sheet.
    """
    filled, sources = with_usual(family_of(sheet.name), sheet.sheet, _families())
    described = replace(filled, name=sheet.sheet.name)
    return text_of(derived(described, sources), [f"{sheet.name}: derived from its data sheet."])


@lru_cache(maxsize=1)
def _families() -> Mapping[str, tuple[DataSheet, ...]]:
    """Return the data sheets of the families that determine typical values."""
    usual = {name for name, fact in facts().items() if fact.get("usual", True)}
    return {
        name: tuple(drive.sheet for drive in family)
        for name, family in drives().items()
        if name in usual
    }


def listed_drives() -> dict[str, list[Drive]]:
    """Return each family's flash drives, from the figure table and from SSD-iq."""
    return {name: [*family, *_of_ssd_iq(name)] for name, family in drives().items()}


def _of_ssd_iq(family: str) -> list[Drive]:
    """Return a family's drives that SSD-iq measured, with the figures from their data sheets.

    `reproduce ssd-iq` simulates the same drives.
    """
    family_drives = []
    for name, listed in facts()[family].get("ssd_iq", {}).items():
        sheet = sheet_of(f"{listed} {capacity_bytes(name) / 1e9:g} GB", read_sheets()).sheet
        given = (field.name for field in ANSWERS if getattr(sheet, field.name) is not None)
        family_drives.append(
            Drive(name, family, replace(sheet, name=name), dict.fromkeys(given, SSD_IQ))
        )
    return family_drives


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)
