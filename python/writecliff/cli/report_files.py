"""The files that `report` and `compare` write: checked before anything is drawn."""

from __future__ import annotations

from pathlib import Path

from writecliff.errors import ConfigError


def paper_of(page: Path, output: Path | None, *, pdf: bool, csv: Path | None) -> Path | None:
    """The file for the PDF, beside the page; None unless `pdf`. `page` is `output` if that is
    given. Raises ConfigError: one file for both, a directory in the place of a file, or the other
    way round."""
    paper = page.with_suffix(".pdf") if pdf else None
    if paper == page:
        raise ConfigError(f"{page} cannot be HTML and PDF", hint=f"--output {page.stem}.html --pdf")
    for file in filter(None, (output, paper)):
        if file.is_dir():
            raise ConfigError(f"{file} is a directory", hint=f"give a file: {file / 'report.html'}")
    for path, given in ((page, output), (csv, csv)):
        if path is not None and given is not None and not path.parent.is_dir():
            raise ConfigError(f"{path.parent} is not a directory", hint="create it first")
    if csv is not None and csv.exists() and not csv.is_dir():
        raise ConfigError(f"{csv} is not a directory", hint="give a folder for the CSV files")
    return paper
