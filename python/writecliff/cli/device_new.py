"""`writecliff device new`: a simulated drive from a data sheet."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json, latency_text, log, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.published.scores import Row


@Parameter(name="*", group=Group("Data sheet", sort_key=0))
@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """Values of the data sheet; omit those that it does not state."""

    interface: str | None = None
    """Host interface: sata, sas, pcie3, pcie4 or pcie5."""

    capacity: str | None = None
    """User capacity, such as 960GB."""

    year: str | None = None
    """Year of introduction, which determines the flash generation."""

    cell: str | None = None
    """Flash type: slc, mlc, tlc or qlc (default: mlc for drives up to 2012, then tlc)."""

    power_loss_protection: str | None = None
    """Power-loss protection by capacitors: yes or no. With yes, the rated random write IOPS are
    assumed to be steady-state figures."""

    dram: str | None = None
    """Presence of DRAM for the mapping table: yes or no."""

    sequential_read: str | None = None
    """Sequential read rate, such as 550MB/s."""

    sequential_write: str | None = None
    """Sequential write rate of a new drive, such as 520MB/s."""

    write_after_cache: str | None = None
    """Sequential write rate after the SLC cache is full."""

    write_while_folding: str | None = None
    """Sequential write rate while the drive folds the full SLC cache and has no free flash left."""

    slc_cache: str | None = None
    """SLC cache size, or 0 for no cache (default: 1.2 % of the capacity for client drives)."""

    random_read: str | None = None
    """Random read rate, in 4 KiB I/Os per second."""

    random_write: str | None = None
    """Random write rate, in 4 KiB I/Os per second."""

    sustained_write: str | None = None
    """Random write rate in steady state, in 4 KiB I/Os per second."""

    read_latency: str | None = None
    """4 KiB read latency at queue depth 1, such as 90us."""

    write_latency: str | None = None
    """4 KiB write latency at queue depth 1."""

    tbw: str | None = None
    """Rated write endurance (TBW), such as 600TB."""

    form_factor: str | None = None
    """Form factor, such as "M.2 2280", to show on the drive's sheet."""

    uber: str | None = None
    """Uncorrectable bit error rate, such as "1 sector in 10^17 bits", to show on the drive's
    sheet."""

    mtbf: str | None = None
    """Mean time between failures, such as "2,000,000 h", to show on the drive's sheet."""


NO_SHEET = SheetOptions()


def new(
    name: str | None = None,
    *,
    sheet: SheetOptions = NO_SHEET,
    answers: Path | None = None,
    output: OutputPath = None,
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
    json: JsonFlag = False,
) -> int:
    """Create a simulated drive from a data sheet, and compare the drive with the sheet.

    On a terminal, the command prompts for missing values. The command writes a device file with a
    rationale for each value, a table of the data sheet's figures (.csv), and a specification for a
    fit (.fit.toml).

    Parameters
    ----------
    name
        Drive name (default: my-drive).
    answers
        TOML file with the data sheet options. Each line sets an option, named with underscores,
        such as capacity = "960GB".
    output
        Device file to write, which must not exist (default: NAME.toml).
    check
        Simulate the drive, and compare it with the data sheet.
    """
    from writecliff.devices.derive import device_text
    from writecliff.devices.free import fit_specification
    from writecliff.devices.sheet import read_answers, sheet_of
    from writecliff.published.sheet_check import (
        SMALL_BYTES,
        figures_csv,
        fitting_scale,
        sheet_figures,
    )
    from writecliff.published.sheet_check import check as simulate
    from writecliff.store.files import write_atomically

    given = {} if answers is None else read_answers(answers)
    given |= {key: value for key, value in vars(sheet).items() if value is not None}
    if name is not None:
        given["name"] = name
    new_sheet = sheet_of(_asked(given))
    path = output or Path(f"{new_sheet.name}.toml")
    table_path, fit_path = path.with_suffix(".csv"), path.with_suffix(".fit.toml")
    for file in (path, table_path, fit_path):
        if file.exists():
            raise ConfigError(
                f"{file} already exists", hint="choose another file name with --output"
            )
    text = device_text(new_sheet)
    device = str(path) if path.is_absolute() else f"./{path}"
    figures = sheet_figures(new_sheet, device)
    scale = fitting_scale(text, device, SMALL_BYTES)
    rows = simulate(text, device, figures, log) if check and figures else ()
    for file, content in (
        (path, text),
        (table_path, figures_csv(figures)),
        (fit_path, fit_specification(text, device, scale)),
    ):
        write_atomically(file, content.encode())
    if json:
        from writecliff.api.answers.devices import NewDrive, SheetFigure

        shown = [
            SheetFigure(of.label, of.metric, of.value, row.simulated, of.unit, row.error_pct)
            for row in rows
            for of in (row.figure,)
        ]
        emit_json(NewDrive(path, table_path, fit_path, shown))
        return 0
    if rows:
        print(_table(rows), end="\n\n")
    print(
        f"{path}: use the drive with --on sim:{device}; `writecliff device show` explains the "
        f"values"
    )
    print(
        f"to fit the drive to more measurements, add them to {table_path} and run `writecliff lab "
        f"fit {fit_path} --figures ...`"
    )
    if rows:
        print(_verdict(rows))
    return 0


def _asked(given: Mapping[str, object]) -> Mapping[str, object]:
    """Return the given values, or prompt for all on a terminal if required values are missing."""
    from writecliff.devices.sheet import ANSWERS, REQUIRED

    missing = any(given.get(name) is None for name in REQUIRED)
    if not missing or not sys.stdin.isatty():
        return given
    answers = dict(given)
    log("Leave a value empty if the data sheet does not state it.")
    for item in ANSWERS:
        if item.name in answers or item.name == "name":
            continue
        choices = item.metadata.get("choices", ()) or (
            ("yes", "no") if item.metadata["unit"] == "flag" else ()
        )
        words = f" ({', '.join(choices)})" if choices else ""
        sys.stderr.write(f"{item.metadata['help']}{words}: ")
        sys.stderr.flush()
        if text := sys.stdin.readline().strip():
            answers[item.name] = text
    return answers


def _table(rows: Sequence[Row]) -> str:
    cells = [
        (
            row.figure.label,
            row.figure.metric,
            _value(row.figure.value, row.figure.unit),
            "-" if row.simulated is None else _value(row.simulated, row.figure.unit),
            "-" if row.error_pct is None else f"{row.error_pct:+.1f} %",
        )
        for row in rows
    ]
    return table(("load", "figure", "sheet", "simulated", "error"), cells, "llrrr")


def _value(value: float, unit: str) -> str:
    return latency_text(value * 1e6) if unit == "ms" else f"{value:,.0f} {unit}"


def _verdict(rows: Sequence[Row]) -> str:
    """Return a one-line summary of the result."""
    errors = [(abs(error), error, row) for row in rows if (error := row.error_pct) is not None]
    if not errors:
        return "no figure of the sheet could be simulated"
    near = sum(size <= 10 for size, *_ in errors)
    _, error, worst = max(errors, key=lambda entry: entry[0])
    return (
        f"{near} of {len(rows)} figures of the sheet are met within 10 %; the worst is "
        f"{worst.figure.metric} of {worst.figure.label}, {error:+.1f} %"
    )
