"""Compare runs, and test their differences for significance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison

GROUP = "tests and suites", 4


def compare(
    *paths: Path,
    output: OutputPath = None,
    pdf: bool = False,
    csv: OutputPath = None,
    json: JsonFlag = False,
) -> int:
    """Compare the set-up and the figures of runs.

    The runs must have at least one figure in common. The runs may be of different drives, or of the
    same drive with different firmware, options or seeds. A suite counts as one run; each run of a
    sweep counts separately. Figures by block size, read/write mix or queue depth are shown side by
    side with their differences, and the best value is highlighted. The last line states whether a
    difference is statistically significant at the 5 % level for the whole comparison.

    Parameters
    ----------
    paths
        Run directories, suites, sweeps, folders of runs, or saved output from `run --json` and
        `replay --json`.
    output
        HTML file to write (default: comparison.html); an existing file is replaced.
    pdf
        Also write comparison.pdf next to the HTML file.
    csv
        Write the data of every plot and table to this folder as CSV. The folder is created if
        needed.
    """
    if not paths:
        raise ConfigError(
            "no runs to compare were specified", hint="specify run directories, suites or folders"
        )
    from writecliff.api import compare as compare_runs
    from writecliff.api import write_page
    from writecliff.api.outcome import comparison_answer

    path = output or Path("comparison.html")
    paper = paper_of(path, output, pdf=pdf, csv=csv)
    comparison = compare_runs(*paths)
    page = write_page(comparison, path, pdf=paper, csv=csv)
    if json:
        emit_json(comparison_answer(comparison, page, pdf=paper, csv=csv))
    else:
        show_comparison(comparison, *filter(None, (page, paper, csv)))
    return 0


def show_comparison(comparison: Comparison, *files: Path) -> None:
    """Print the differences, the figures (grouped if numerous), the files and the verdict."""
    from writecliff.report.comparison.groups import LONG_LIST, groups_of, groups_table
    from writecliff.report.comparison.page import differences_table, figures_table

    differing = differences_table(comparison)
    if differing is not None:
        print(differing.grid().text(), "\n", sep="")
    if len(comparison.figures) > LONG_LIST:
        print(groups_table(groups_of(comparison.figures), comparison.labels).grid().text())
        print(f"the page shows all {len(comparison.figures)} figures")
    else:
        print(figures_table(comparison).grid().text())
    print("", *files, comparison.verdict, sep="\n")


def paper_of(page: Path, output: Path | None, *, pdf: bool, csv: Path | None) -> Path | None:
    """Return the PDF path next to the page, or `None` unless `pdf` is set.

    `page` is the given output path, if any.

    Raises:
        ConfigError: If the HTML and PDF paths are equal, or if a path is a directory instead of a
            file or vice versa.
    """
    paper = page.with_suffix(".pdf") if pdf else None
    if paper == page:
        raise ConfigError(
            f"{page} cannot be both the HTML and the PDF file",
            hint=f"--output {page.stem}.html --pdf",
        )
    for file in filter(None, (output, paper)):
        if file.is_dir():
            raise ConfigError(
                f"{file} is a directory, not a file",
                hint=f"specify a file, such as {file / 'report.html'}",
            )
    for path, given in ((page, output), (csv, csv)):
        if path is not None and given is not None and not path.parent.is_dir():
            raise ConfigError(
                f"{path.parent} is not a directory",
                hint="create the directory, or choose another file",
            )
    if csv is not None and csv.exists() and not csv.is_dir():
        raise ConfigError(f"{csv} is not a directory", hint="specify a folder for the CSV files")
    return paper
