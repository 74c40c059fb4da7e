"""Export of run tables as Parquet or CSV files."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from writecliff.csv_cells import cell
from writecliff.output_files import part_of, remove_part
from writecliff.runs.catalogue import Catalogue, Progress, unseen
from writecliff.runs.columns import CATALOGUE_TABLES, STEP_TABLES
from writecliff.runs.queries import answering
from writecliff.store.files import store_error

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (*CATALOGUE_TABLES, *STEP_TABLES)
_BATCH_ROWS = 50_000


def write_tables(
    catalogue: Catalogue,
    runs: Sequence[str],
    folder: Path,
    form: Literal["parquet", "csv"],
    *,
    progress: Progress = unseen,
) -> Sequence[str]:
    """Write `runs.parquet`, `figures.parquet` and other tables of `runs` to `folder`.

    With `form` "csv", nested values are written as JSON.

    Returns:
        A note for each run omitted from a table.

    Raises:
        StoreError: If the store cannot be read or a file cannot be written.
    """
    import pyarrow as pa

    with answering(catalogue, ", ".join(TABLES), progress=progress) as (database, notes):
        database.add_table("chosen", pa.table({"run": pa.array(list(runs), pa.string())}))
        for name in TABLES:
            rows = database.arrow(f"select {name}.* from {name} semi join chosen using (run)")
            path = folder / f"{name}.{form}"
            made = part_of(path)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _WRITERS[form](rows, made)
                made.replace(path)
            except OSError as error:
                remove_part(made)
                raise store_error(error, path) from error
    return notes


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")


def _write_csv(table: pa.Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(cell, table.column_names))
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            columns = [[_cell(value) for value in column.to_pylist()] for column in batch.columns]
            writer.writerows(zip(*columns, strict=True))


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    if isinstance(value, str):
        return cell(value)
    return int(value) if isinstance(value, bool) else value


_WRITERS = {"parquet": _write_parquet, "csv": _write_csv}
