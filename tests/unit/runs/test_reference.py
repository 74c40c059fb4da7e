"""The reference, the guide and the benchmark of the run store."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from writecliff.lab.bench.store import CASES, fill
from writecliff.runs.catalogue import Catalogue
from writecliff.runs.place import open_place
from writecliff.runs.queries import Selection, listed
from writecliff.runs.reference import reference
from writecliff.workload.load import load_workload

DOCS = Path(__file__).parents[3] / "docs"


def test_the_reference_is_what_the_columns_say() -> None:
    hint = "run: python -m writecliff.runs.reference > docs/reference/run-store.md"
    assert (DOCS / "reference" / "run-store.md").read_text(encoding="utf-8") == reference(), hint


def test_the_views_have_the_columns_of_the_reference(store: Path) -> None:
    made = Catalogue(open_place(str(store)))
    made.refresh()
    with made.opened() as database:
        for name in ("runs", "figures", "tags"):
            section = reference().split(f"\n## `{name}`\n", 1)[1].split("\n## ", 1)[0]
            documented = re.findall(r"^\| `(\w+)` \| ([\w\[\]]+) \|", section, re.M)
            columns = database.rows(
                f"select column_name, lower(column_type) from (describe {name})"
            )
            assert columns[1] == documented


def test_the_queries_of_the_guide_are_answered(store: Path) -> None:
    from writecliff.runs.queries import sql_table

    text = (DOCS / "guides" / "runs.md").read_text(encoding="utf-8")
    queries = re.findall(r'runs sql "([^"]+)"', text)
    assert len(queries) == 3
    for query in queries:
        table, notes = sql_table(Catalogue(open_place(str(store))), query)
        assert table is not None
        assert list(notes) == []
    conditions = re.findall(r'runs list --where "([^"]+)"', text)
    assert len(conditions) == 2
    for condition in conditions:
        listed(Catalogue(open_place(str(store))), Selection(where=condition))


def test_the_workload_of_the_guide_has_limits(tmp_path: Path) -> None:
    text = (DOCS / "guides" / "runs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```$", text, re.M | re.S)
    (tmp_path / "w.toml").write_text(example)
    loaded = load_workload(tmp_path / "w.toml", capacity_bytes=10**9)
    assert loaded.expect == ("reads/iops >= 100000", "reads/p99.9 <= 2 ms")


def test_the_benchmark_makes_runs_that_differ(tmp_path: Path) -> None:
    fill(tmp_path, 4)
    made = Catalogue(open_place(str(tmp_path)))
    made.refresh()
    with made.opened() as database:
        counts = (
            "select count(*), count(distinct seed), count(distinct drive), bool_and(has_figures)"
        )
        assert database.rows(f"{counts} from catalogue")[1] == [(4, 4, 4, True)]
        figures = "select count(distinct value) from figures where key like '%reads/iops'"
        assert database.rows(figures)[1] == [(4,)]
    assert {goal for _, goal in CASES.values()} == {None, 0.5, 2.0}


def test_a_list_loads_neither_arrow_nor_numpy(store: Path) -> None:
    Catalogue(open_place(str(store))).refresh()
    code = (
        "import sys\nfrom writecliff.cli.main import main\n"
        f"assert main(['runs', 'list', '--store', {str(store)!r}]) == 0\n"
        "print([m for m in ('numpy', 'pyarrow', 'writecliff._native') if m in sys.modules],"
        " file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("words", ["['report', 'absent']", "['device', 'list']"])
def test_other_commands_do_not_load_the_run_store(words: str) -> None:
    code = (
        "import sys\nfrom writecliff.cli.main import main\n"
        f"main({words})\n"
        "found = [m for m in sys.modules if m.startswith('writecliff.runs')]\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
