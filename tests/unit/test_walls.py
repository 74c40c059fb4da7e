"""Walls between the Rust crates, as ARCHITECTURE.md states them ("does not know").

Cargo refuses what a crate does not depend on, so the table of dependencies is the wall; the words
are for what a crate could still say without a dependency. Python's walls are contracts of
import-linter (`pyproject.toml`), checked by `make lint`.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREFIX = "writecliff-"

# Crate: the crates of this workspace that it may know.
MAY_KNOW = {
    "base": set(),
    "contents": {"base"},
    "flash": {"base"},
    "ftl": {"base", "flash", "host-interface"},  # what is in the host's data
    "host-interface": {"base"},
    "ssd": {"base", "flash", "ftl", "host-interface"},
    "disk": {"base", "host-interface"},
    "scm": {"base", "host-interface"},
    "workload": {"base", "host-interface"},  # the same
    "runner": {"base", "flash", "ftl", "host-interface", "ssd", "disk", "scm", "workload"},
    # Of "runner": histograms, series, outcomes.
    "issuer": {"base", "runner", "traces", "workload"},
    "nvme": {"base", "host-interface"},  # streams and FDP
    "nvme-tcp": {"nvme"},
    # Of "ssd": the status and the commands of its streams.
    "serve": {"base", "contents", "host-interface", "nvme", "nvme-tcp", "runner", "ssd"},
    "python": {
        "base",
        "contents",
        "flash",
        "ftl",
        "host-interface",
        "issuer",
        "ssd",
        "disk",
        "workload",
        "runner",
        "serve",
        "tracefs",
        "traces",
    },
    "preload": set(),
    "tracefs": set(),
    "traces": {"base", "tracefs"},  # runs; requests from events
}
# Crate: what its code must not name, and why.
MUST_NOT_NAME = {
    "base": (r"\b(Ssd|Drive|Flash|Ftl)\b", "what a drive is"),
    "contents": (r"\b(Ssd|Drive|Command)", "drives"),
    "flash": (r"\bLpn\b|\bLogicalPage", "logical addresses"),
    "ftl": (r"\bNanos\b|\bInstant\b", "time"),
    "ssd": (r"\bHistogram\b|std::thread", "threads of hosts, statistics"),
    "disk": (r"\bHistogram\b|std::thread|writecliff_flash", "flash, statistics"),
    "scm": (r"\bHistogram\b|std::thread|writecliff_flash", "flash, statistics"),
    "workload": (r"\bSsd\b|\bDrive\b", "drives"),
    "nvme": (
        r"std::(net|thread|time|sync|io|os)\b|\bSocket|\bTcp",
        "transports, threads, clocks",
    ),
    "nvme-tcp": (r"std::(net|thread|time|io|os)\b|\bSocket", "sockets, threads"),
    "serve": (r"\bpyo3\b|\bPyResult\b|\bWorkloadSpec\b", "Python, workloads"),
    "issuer": (r"\bpyo3\b|\bPyResult\b|\bDriveModel\b|\bSsd\b", "Python, simulated drives"),
    "traces": (
        r"\bpyo3|std::(thread|time|net)\b|\bDrive\b|\bSsd\b",
        "Python, clocks, drives",
    ),
    "tracefs": (r"\bpyo3|std::(thread|time|net)\b", "Python, clocks"),
    "runner": (r"\bpyo3\b|\bPyResult\b", "Python"),
}


@cache
def _known() -> dict[str, set[str]]:
    """Crates of the workspace, and those of the workspace that each depends on outside its tests."""
    words = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    return {
        package["name"].removeprefix(PREFIX): {
            dependency["name"].removeprefix(PREFIX)
            for dependency in package["dependencies"]
            if dependency["name"].startswith(PREFIX) and dependency["kind"] != "dev"
        }
        for package in packages
    }


def _code(crate: str) -> dict[str, str]:
    """The crate's files without comments and without tests."""
    folder = ROOT / "crates" / crate.replace("-", "_") / "src"
    files = [path for path in folder.rglob("*.rs") if "tests" not in (path.stem, path.parent.name)]
    assert files, f"no sources of {crate}"
    return {
        str(path.relative_to(ROOT)): re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]")[0])
        for path in files
    }


def test_every_crate_has_its_walls_stated() -> None:
    assert _known().keys() == MAY_KNOW.keys()


@pytest.mark.parametrize("crate", MAY_KNOW)
def test_a_crate_knows_only_what_is_below_it(crate: str) -> None:
    assert _known()[crate] - MAY_KNOW[crate] == set()


@pytest.mark.parametrize("crate", MUST_NOT_NAME)
def test_a_crate_does_not_name_what_it_must_not_know(crate: str) -> None:
    pattern, what = MUST_NOT_NAME[crate]
    found = [
        f"{name}: {match[0]}"
        for name, code in _code(crate).items()
        if (match := re.search(pattern, code))
    ]
    assert found == [], f"{crate} does not know {what}"


def test_only_one_crate_knows_python() -> None:
    words = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found = {
        package["name"]
        for package in json.loads(done.stdout)["packages"]
        if any(dependency["name"] == "pyo3" for dependency in package["dependencies"])
    }
    assert found == {f"{PREFIX}python"}
