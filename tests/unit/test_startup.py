"""Start-up settings of writecliff's processes; as a library, it changes none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from writecliff.lab.bench.sim import measured

_STATE = """
import gc, sys
print(gc.get_threshold()[0] > 1000, any("pandas" in (f.__doc__ or "") for f in sys.meta_path))
"""


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_writecliff_changes_nothing_of_the_process() -> None:
    assert _printed(f"import writecliff.cli.main, writecliff.suite.member{_STATE}") == "False False"


def test_commands_of_the_product_do_not_load_the_lab() -> None:
    code = (
        "import sys\n"
        "from importlib import import_module\n"
        "from writecliff.cli.commands import build_app, commands\n"
        "app = build_app()\n"
        "for command in commands():\n"
        "    import_module(command.target.partition(':')[0])\n"
        "    app[command.name]\n"
        "print([name for name in sys.modules if name.startswith('writecliff.lab')])\n"
        "app['lab']\n"
        "print('writecliff.lab.commands' in sys.modules)"
    )
    assert _printed(code).split() == ["[]", "True"]


def test_a_process_of_ours_stores_tables_without_pandas() -> None:
    pytest.importorskip("pandas", reason="the extra pandas")
    table = "import sys, pyarrow; pyarrow.Table.from_pylist([{'a': 1}]); "
    seen = "print('pandas' in sys.modules)"
    assert _printed(table + seen) == "True"  # avoided imports
    lean = "from writecliff.startup import lean; lean(); "
    assert _printed(lean + table + seen) == "False"
    assert _printed(lean + _STATE) == "True True"


def test_a_process_of_ours_keeps_loaded_modules_and_leaves_no_leak() -> None:
    """Check that DuckDB, whose objects must be collected at exit, has nothing to report."""
    code = (
        "import gc; from writecliff.store.db import query; "
        "query('select 1', {}); print(gc.get_freeze_count() > 10_000)"
    )
    assert _printed(code) == "False"
    lean = f"from writecliff.startup import lean; lean(); {code}"
    done = subprocess.run([sys.executable, "-c", lean], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_process_of_ours_loads_matplotlib_without_generated_documentation() -> None:
    listed = "from matplotlib.axes import Axes; print('xlabel: str' in Axes.set.__doc__)"
    assert _printed(listed) == "True"
    assert _printed(f"from writecliff.startup import lean; lean(); {listed}") == "False"


def test_a_command_is_measured_with_compiled_modules_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    monkeypatch.setenv("WRITECLIFF_STORE", str(tmp_path / "store"))
    ran = measured(["runs", "list", "--json"])
    assert ran.exit_code == 0, ran.stderr
    assert '"runs": []' in ran.stdout
    assert ran.cpu_s > 0
    assert ran.wall_s > 0
    assert any((tmp_path / "compiled").rglob("catalogue.*.pyc"))
    refused = measured(["runs", "list", "--limit", "-1"])
    assert refused.exit_code == 2
    assert "--limit must be 0 or more" in refused.stderr
