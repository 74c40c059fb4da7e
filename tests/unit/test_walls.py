"""Walls between the Rust crates, as ARCHITECTURE.md states them ("independent of").

Cargo rejects uses of crates that are not dependencies, so the table of dependencies enforces the
walls. Each `clippy.toml` lists the types that its crate must not use. Python's walls are contracts
of import-linter (`pyproject.toml`), checked by `make lint`.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PREFIX = "writecliff-"

# Workspace crates that each crate depends on, except for its tests.
DEPENDENCIES = {
    "base": set(),
    "contents": {"base"},
    "filesystem": {"base"},
    "flash": {"base"},
    "ftl": {"base", "flash", "host-interface"},
    "host-interface": {"base"},
    "measure": {"base", "host-interface"},
    "ssd": {"base", "flash", "ftl", "host-interface"},
    "disk": {"base", "host-interface"},
    "scm": {"base", "host-interface"},
    "synthesis": {"base"},
    "validate": {"base", "flash", "ftl", "host-interface", "ssd"},
    "workload": {"base", "host-interface", "synthesis"},
    "runner": {
        "base",
        "disk",
        "filesystem",
        "host-interface",
        "measure",
        "scm",
        "ssd",
        "workload",
    },
    "issuer": {"base", "measure", "traces", "workload"},
    "nvme": {"base", "host-interface"},
    "nvme-tcp": {"nvme"},
    "serve": {
        "base",
        "contents",
        "host-interface",
        "measure",
        "nvme",
        "nvme-tcp",
        "runner",
        "ssd",
    },
    "bench": {"host-interface", "measure", "nvme-tcp", "serve"},
    "python": {
        "base",
        "bench",
        "contents",
        "filesystem",
        "flash",
        "ftl",
        "host-interface",
        "issuer",
        "measure",
        "runner",
        "serve",
        "ssd",
        "tracefs",
        "traces",
        "validate",
        "workload",
    },
    "preload": set(),
    "tracefs": set(),
    "traces": {"base", "tracefs"},
}
# Crates that must not depend on the simulated drives, or on the host that issues I/O to them.
WITHOUT_SIMULATOR = [
    "contents",
    "filesystem",
    "issuer",
    "measure",
    "nvme",
    "nvme-tcp",
    "synthesis",
    "traces",
    "workload",
]
SIMULATOR = {"disk", "flash", "ftl", "runner", "scm", "ssd"}


@cache
def _packages() -> dict[str, list[dict[str, Any]]]:
    """Return the dependencies of each workspace crate, except those of tests, from Cargo."""
    words = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        package["name"].removeprefix(PREFIX): [
            dependency for dependency in package["dependencies"] if dependency["kind"] != "dev"
        ]
        for package in json.loads(done.stdout)["packages"]
    }


def _direct(crate: str) -> set[str]:
    names = {dependency["name"] for dependency in _packages()[crate]}
    return {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}


def _reachable(crate: str) -> set[str]:
    """Return the workspace crates that `crate` links, directly or indirectly."""
    linked: set[str] = set()
    waiting = _direct(crate)
    while waiting:
        name = waiting.pop()
        linked.add(name)
        waiting |= _direct(name) - linked
    return linked


def test_the_table_of_dependencies_lists_every_crate() -> None:
    assert _packages().keys() == DEPENDENCIES.keys()


@pytest.mark.parametrize("crate", DEPENDENCIES)
def test_dependencies_match_the_table(crate: str) -> None:
    assert _direct(crate) == DEPENDENCIES[crate]


@pytest.mark.parametrize("crate", WITHOUT_SIMULATOR)
def test_crates_beside_the_simulator_do_not_link_it(crate: str) -> None:
    assert _reachable(crate) & SIMULATOR == set()


def test_only_one_crate_links_python() -> None:
    linking = {
        crate
        for crate, dependencies in _packages().items()
        if any(dependency["name"] == "pyo3" for dependency in dependencies)
    }
    assert linking == {"python"}


def test_a_mechanism_is_named_in_few_files() -> None:
    """Check that only a mechanism's own files, the lists of mechanisms and few others name it."""
    files = [path for path in ROOT.glob("crates/*/src/**/*.rs") if "slc_cache" in path.read_text()]
    names = sorted(str(path.relative_to(ROOT)) for path in files)
    assert 0 < len(names) <= 6, names


def test_sector_and_slot_have_one_definition_each() -> None:
    """Check that only `base` defines 512 or 4,096 bytes for a block, page, sector or slot."""
    size = re.compile(r"const (BLOCK|PAGE|SECTOR|SLOT)(_BYTES|_SIZE)?: *\w+ = (512|4_?096)(\.0)?;")
    texts = {path: path.read_text() for path in ROOT.glob("crates/*/src/**/*.rs")}
    defining = {
        str(path.relative_to(ROOT)): [match[1] for match in size.finditer(text)]
        for path, text in texts.items()
        if size.search(text)
    }
    assert defining == {"crates/base/src/units.rs": ["SECTOR", "SLOT"]}


# Modules in `report` that may use regular expressions: two modules clean SVG and HTML, and one
# module reads limits written by a user. Other modules have the values, so they must not parse them
# from displayed text.
PATTERNS_ALLOWED = {"style.py", "pdf.py", "expectations.py"}


def test_reports_read_no_shown_text() -> None:
    folder = ROOT / "python/writecliff/report"
    users = {
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"^\s*(import re\b|from re import)", path.read_text(), re.M)
    }
    assert users == PATTERNS_ALLOWED
