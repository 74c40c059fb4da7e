"""A simulated drive as a data sheet: `writecliff device show NAME --sheet`."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.output import emit_json, log, table
from writecliff.devices import is_real_drive
from writecliff.errors import ConfigError


def show_sheet(name: str, page: Path | None, *, whole: bool, as_json: bool) -> int:
    """Measure the drive and print its sheet; write it to `page` if that is given."""
    if is_real_drive(name):
        raise ConfigError(
            "a sheet is of a simulated drive",
            hint="`writecliff test datacentre` measures the loads of data sheets on real drives",
        )
    from writecliff.published.data_sheet import of_groups, page_of, sheet_of
    from writecliff.published.measure import ComparedDrive
    from writecliff.report.pages import write_page

    found = sheet_of(ComparedDrive.preset(name.removeprefix("sim:")), whole=whole, log=log)
    if page is not None:
        write_page(page_of(found), page)
    if as_json:
        from writecliff.api.answers.devices import DataSheet

        emit_json(DataSheet.of(found.mapping(), page=page))
        return 0
    for group, rows in of_groups(found.rows):
        print(f"{group}\n")
        print(table(("", "value", "source"), [(r.name, r.value, r.source) for r in rows], "lrl"))
        print()
    if found.not_stated:
        print(f"not stated: {', '.join(found.not_stated)}")
    if page is not None:
        print(page)
    return 0
