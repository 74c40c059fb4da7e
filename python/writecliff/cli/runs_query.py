"""`writecliff runs sql` and `writecliff runs diff`."""

from __future__ import annotations

import csv as csv_files
import sys
from typing import TYPE_CHECKING, Any

from writecliff.cli.output import JsonFlag, emit_json, log, table
from writecliff.cli.runs_options import StoreOption, catalogue_of, progress_log
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from writecliff.api.answers.runs import RunsDifference
    from writecliff.runs.difference import RunDifference

_MOST = 200  # rows on a terminal


def sql(
    query: str,
    *,
    csv: bool = False,
    allow_files: bool = False,
    store: StoreOption = None,
    json: JsonFlag = False,
) -> int:
    """Answer SQL (of DuckDB) over all runs: views runs, figures, tags, rounds, intervals,
    histograms.

    Columns have units in their names; docs/reference/run-store.md describes them. The first query
    over rounds, intervals or histograms copies these tables of all runs together. Statements cannot
    read or write files, attach databases or load extensions unless --allow-files is given.

    Parameters
    ----------
    query
        Such as "select test, count(*) from runs group by test".
    csv
        Print all rows as CSV.
    allow_files
        Let the query read and write any of your files and load extensions of DuckDB, also from the
        network. Give it only for queries that you wrote or have read.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from writecliff.cli.runs_view import plain
    from writecliff.runs.queries import sql_table

    if csv and json:
        raise ConfigError("--csv and --json exclude each other")
    catalogue = catalogue_of(store)
    answer, notes = sql_table(catalogue, query, allow_files=allow_files, progress=progress_log())
    for note in notes:
        log(f"warning: {note}")
    if json:
        from writecliff.api.answers.runs import Column, QueryResult

        fields = () if answer is None else answer.schema
        columns = [Column(field.name, str(field.type)) for field in fields]
        rows = [] if answer is None else [plain(row) for row in answer.to_pylist()]
        emit_json(QueryResult(catalogue.place.location, columns, rows))
    elif answer is not None:
        _show(answer, csv=csv)
    return 0


def _show(answer: pa.Table, *, csv: bool) -> None:
    from writecliff.cli.runs_view import cell, printable
    from writecliff.csv_cells import cell as safe

    names = list(answer.column_names)
    shown = answer if csv else answer.slice(0, _MOST)
    columns = [[cell(value) for value in column.to_pylist()] for column in shown.columns]
    rows = list(zip(*columns, strict=True))
    if csv:
        writer = csv_files.writer(sys.stdout, lineterminator="\n")
        writer.writerow(map(safe, names))
        writer.writerows([safe(v) if isinstance(v, str) else v for v in row] for row in rows)
        return
    kinds = "".join("r" if _is_number(field) else "l" for field in answer.schema)
    print(table([*map(printable, names)], [[*map(printable, row)] for row in rows], kinds))
    if (more := answer.num_rows - len(rows)) > 0:
        log(f"... and {more} more rows; --csv and --json print all")


def _is_number(field: Any) -> bool:
    import pyarrow.types as kinds

    kind = field.type
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def diff(first: str, second: str, *, store: StoreOption = None, json: JsonFlag = False) -> int:
    """Say how run B differs from run A: set-up, versions and host, and figures.

    Each figure is better, worse or equal, or it cannot be told: a difference counts if it is more
    than noise, at 5 % for all figures together. In all, B is better if some figures are and none is
    worse.

    Parameters
    ----------
    first
        Run or suite A: a name in the store, or a path.
    second
        Run or suite B.
    store
        The store (default: WRITECLIFF_STORE, else the current folder).
    """
    from contextlib import ExitStack

    from writecliff.cli.runs_options import ALL_RUNS
    from writecliff.cli.runs_view import select_runs
    from writecliff.runs.difference import difference

    catalogue = catalogue_of(store)
    names = [select_runs(catalogue, [name], ALL_RUNS, suites=True)[0] for name in (first, second)]
    with ExitStack() as stack:
        paths = [stack.enter_context(catalogue.place.as_folder(name)) for name in names]
        found = difference(paths[0], paths[1], names)
        if json:
            emit_json(_diff_answer(found, names))
        else:
            print(_diff_text(found, names))
    return 0


def _diff_answer(found: RunDifference, names: list[str]) -> RunsDifference:
    from writecliff.api.answers.base import Difference
    from writecliff.api.answers.runs import RunsDifference
    from writecliff.report.comparison.figures import RULE
    from writecliff.report.comparison.page import figure_mapping

    return RunsDifference(
        runs=names,
        differences=[
            Difference(part.what, part.values, part.tests) for part in found.compared.differences
        ],
        environment=[
            {"what": what, "values": [mine, its]} for what, mine, its in found.environment
        ],
        figures=[
            {**figure_mapping(found.compared, figure), "judgement": word}
            for figure, word in found.judgements
        ],
        rule=RULE,
        judgement=found.judgement,
        verdict=found.verdict,
    )


def _diff_text(found: RunDifference, names: list[str]) -> str:
    from writecliff.cli.runs_view import printable
    from writecliff.report.comparison.page import differences_table, figure_names
    from writecliff.report.headline import interval_text, value_text

    compared = found.compared
    parts = []
    differing = differences_table(compared)
    rows = [] if differing is None else [[*map(printable, row)] for row in differing.rows]
    rows += [[*map(printable, (what, mine or "-", its or "-"))]
             for what, mine, its in found.environment
             if what not in {row[0] for row in rows}]  # fmt: skip
    if rows:
        parts.append(table(("", "A", "B"), rows))
    else:
        parts.append("set-up, versions and host are the same")
    cells = []
    for name, (figure, word) in zip(figure_names(compared), found.judgements, strict=True):
        values = ("-" if v is None else f"{value_text(v.value)}{interval_text(v.interval)}"
                  for v in figure.values)  # fmt: skip
        cells.append((printable(name), figure.one.unit, *values, figure.margin_text, word))
    if cells:
        head = ("figure", "unit", "A", "B", "apart", "B is")
        parts.append(table(head, cells, "llrrrl"))
    parts.append(f"A: {printable(names[0])}\nB: {printable(names[1])}")
    parts.append(f"{printable(found.verdict)}\nB in all: {found.judgement}")
    return "\n\n".join(parts)
