"""Compare drives by their runs."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.output import emit_json
from writecliff.errors import ConfigError

GROUP = "tests and suites", 4


def compare(
    *paths: Path,
    output: Path | None = None,
    json: bool = False,
) -> int:
    """Compare drives by their runs, on one page.

    For runs of campaigns, tables show the improvement of the first drive over each other drive.

    Parameters
    ----------
    paths
        Run directories, suites, or folders of them.
    output
        The HTML file to write (default: comparison.html); an existing file is replaced.
    json
        Print {"report": PATH, "drives": [...], "improvements": [...]} with every figure, its run,
        and whether it was measured in steady state and according to the standard.
    """
    if not paths:
        raise ConfigError("nothing to compare", hint="give run directories, suites or folders")
    from writecliff.report.comparison import drives_of, run_directories
    from writecliff.report.comparison_page import comparison_mapping, comparison_page
    from writecliff.report.pages import write_page

    drives = drives_of(run_directories(paths))
    page = write_page(comparison_page(drives), output or Path("comparison.html"))
    if json:
        emit_json({"report": page, **comparison_mapping(drives)})
    else:
        print(page)
    return 0
