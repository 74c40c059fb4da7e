"""Compare runs: who is better at what, and by more than noise."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json
from writecliff.cli.report_files import paper_of
from writecliff.errors import ConfigError

GROUP = "tests and suites", 4


def compare(
    *paths: Path,
    output: OutputPath = None,
    pdf: bool = False,
    csv: OutputPath = None,
    json: JsonFlag = False,
) -> int:
    """Compare runs: what differs in their set-up, and who is better at what by how much.

    Takes any runs that measured something in common: of different drives, or of one drive with
    another firmware, option or seed. A suite counts as one, each run of a sweep as one. Figures by
    block size, mix or queue depth stand side by side, with differences and the best marked. The
    last line says whether a difference is more than noise, at 5 % for all figures together.

    Parameters
    ----------
    paths
        Run directories, suites, sweeps, folders of them, or saved answers of `run --json` and
        `replay --json`.
    output
        The HTML file to write (default: comparison.html); an existing file is replaced.
    pdf
        Also write it as PDF, next to the HTML file: comparison.pdf.
    csv
        A folder for the data of every figure and table as CSV; created if needed.
    """
    if not paths:
        raise ConfigError("nothing to compare", hint="give run directories, suites or folders")
    from writecliff.api import compare as compare_runs
    from writecliff.api import write_page
    from writecliff.api.outcome import comparison_answer
    from writecliff.cli.comparison import show_comparison

    path = output or Path("comparison.html")
    paper = paper_of(path, output, pdf=pdf, csv=csv)
    found = compare_runs(*paths)
    page = write_page(found, path, pdf=paper, csv=csv)
    if json:
        emit_json(comparison_answer(found, page, pdf=paper, csv=csv))
    else:
        show_comparison(found, *filter(None, (page, paper, csv)))
    return 0
