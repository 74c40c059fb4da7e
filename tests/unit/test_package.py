"""The installed program: version, imports, data files and their sizes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from writecliff.cli.main import main

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "writecliff"
# Modules that determine the start-up time. Standard library modules count with their imports.
IMPORTED = {
    "import writecliff": {"importlib", "writecliff"},
    "from writecliff.cli.main import main; main(['--help'])": {
        "errno", "importlib", "writecliff", "writecliff.cli", "writecliff.cli.commands",
        "writecliff.cli.main", "writecliff.errors", "writecliff.startup",
    },
}  # fmt: skip


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{cargo['workspace']['package']['version']}\n"


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("writecliff.devices", {"sata-tlc-120.toml", "nvme-tlc-960.toml"}),
        (
            "writecliff.report",
            {"templates/report.html.j2", "templates/report.css", "templates/figures.js"},
        ),
        ("writecliff.ui", {"templates/list.html.j2", "static/ui.css", "static/plots.js"}),
    ],
)
def test_data_files_are_resources_of_the_package(package: str, names: set[str]) -> None:
    missing = [name for name in names if not files(package).joinpath(name).is_file()]
    assert missing == []


def new_modules(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has imported after `code`."""
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(ROOT / 'python')!r})",
        "before = set(sys.modules)",
        code,
        "names = sorted(set(sys.modules) - before)",
        "import json",
        "print(json.dumps(names), file=sys.stderr)",
    ]
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize("code", IMPORTED)
def test_start_imports_what_it_needs_and_no_more(code: str) -> None:
    allowed = new_modules(f"import {', '.join(sorted(IMPORTED[code]))}")
    assert sorted(new_modules(code) - allowed) == []


def test_start_needs_everything_on_its_list() -> None:
    for code, allowed in IMPORTED.items():
        assert allowed <= new_modules(code) | {"importlib"}, code


def test_a_wheel_stays_small(tmp_path: Path) -> None:
    """Check the data files, which take 3.6 MB compressed; a wheel may have 15 MB."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "python"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = [name for name in tracked.stdout.split("\0") if name]
    if tracked.returncode or not names:
        pytest.skip("this is no checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in names if (ROOT / name).exists()}
    assert {name: size for name, size in sizes.items() if size > 100_000} == {}
    assert sum(sizes.values()) < 6e6
    if shutil.which("strip") is None:
        pytest.skip("no strip: the sizes of the libraries are not known")
    limits = {"_native.abi3.so": 8e6, "capture/libwritecliff_preload.so": 1e6}
    for name, limit in limits.items():
        stripped = tmp_path / Path(name).name
        subprocess.run(["strip", "-o", stripped, PACKAGE / name], check=True)
        assert stripped.stat().st_size < limit, name
