"""The interface to the native module: its types, its contracts, and the modules that use it."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import writecliff
from tests.support.processes import WAIT_LIMIT_S
from writecliff import _native

PACKAGE = Path(writecliff.__file__).parent
ROOT = Path(__file__).parents[3]
CRATE = ROOT / "crates" / "python" / "src"
# Modules that need more from the native module than the result types. Adding a name to this list is
# a design decision (see docs/explanation/design.md).
USERS = {
    "lab/bench/serve.py",  # Uses the load that measures servers.
    "lab/bench/sim.py",
    "lab/bench/trace.py",  # Uses the trace reader and the metrics.
    "capture/block/run.py",  # Reads the kernel's trace buffers.
    "cli/reference_limits.py",  # Uses the limits of workloads.
    "devices/__init__.py",
    "devices/edit.py",
    "devices/families.py",
    "devices/quantities.py",  # Parses sizes and times in device files as the simulator does.
    "engines/counters.py",  # Uses the names, units and kinds of drive counters.
    "engines/fio/parse.py",  # Fills an identical histogram from fio's bins.
    "engines/sim.py",
    "engines/state_cache.py",
    "lab/experiments/fms_fio.py",
    "latency_causes.py",  # Uses the names and meanings of latency causes.
    "native_errors.py",
    "serve/figures.py",  # Merges histograms.
    "serve/server.py",  # Serves the drive.
    "lab/reliability/power_loss.py",  # Cuts the power.
    "store/tables.py",  # Rebuilds histograms.
    "synthesis/fit.py",  # Identifies the runs of a trace.
    "synthesis/result.py",  # Generates the I/Os of a model, and measures them.
    "engines/timed/loads.py",  # Generates the requests of loads with rates.
    "replay/timed_trace.py",  # Fits a trace to the drive.
    "traces/characterise.py",  # Measures traces.
    "traces/convert.py",  # Writes traces.
    "traces/formats.py",  # Describes trace formats.
    "traces/io_capture.py",  # Measures time steps.
    "traces/source.py",  # Reads traces, and uses the meanings of columns and operations.
    "units.py",  # Parses sizes as device files do.
    "lab/validate/handles.py",
    "lab/validate/power_cuts.py",
    "lab/validate/theory.py",
    "lab/validate/streams.py",
    "workload/load.py",  # Reads workload files and checks stored workloads as the simulator does.
    "replay/columns.py",
    "replay/model.py",
    "replay/synthetic.py",
}
CLASSES = sorted(
    name
    for name, value in vars(_native).items()
    if isinstance(value, type) and not issubclass(value, BaseException)
)


# The surrounding package, which would be checked as a whole, is not the stub. `make lint` checks
# it.
_STUB_ALONE = "[mypy]\npython_version = 3.11\n[mypy-writecliff]\nfollow_imports = skip\n"


def test_the_stub_and_the_module_have_the_same_names_and_signatures(tmp_path: Path) -> None:
    """Mypy's stubtest compares names, parameters, defaults and kinds, in both directions."""
    settings = tmp_path / "mypy.ini"
    settings.write_text(_STUB_ALONE)
    words = ["-m", "mypy.stubtest", "writecliff._native", "--mypy-config-file", str(settings)]
    completed = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_there_are_classes_to_check() -> None:
    assert {"Drive", "Histogram", "Quantile", "Server"} <= set(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_native_classes_are_frozen_and_show_what_they_are(name: str) -> None:
    kind = getattr(_native, name)
    assert "__repr__" in vars(kind), f"{name} has no __repr__ of its own"
    assert "__dict__" not in vars(kind), f"{name} takes any attribute"


def test_native_classes_are_declared_frozen() -> None:
    """Python cannot detect `&mut self`, so this test reads the declarations."""
    texts = (path.read_text(encoding="utf-8") for path in CRATE.glob("*.rs"))
    declared = [line for text in texts for line in re.findall(r"#\[pyclass[^\]]*\]", text)]
    assert len(declared) == len(CLASSES)
    assert [line for line in declared if not re.search(r"\bfrozen\b", line)] == []


def test_instances_take_no_attributes() -> None:
    histogram = _native.Histogram()
    for name in ("count", "unheard_of"):
        with pytest.raises(AttributeError):
            setattr(histogram, name, 1)
    assert repr(histogram) == "Histogram(count=0)"


def test_histograms_travel_between_processes() -> None:
    histogram = _native.Histogram()
    assert pickle.loads(pickle.dumps(histogram)) == histogram
    for value_ns, count in ((90_000, 5), (20_000_000_000, 1)):
        histogram.record(value_ns, count)
    copy = pickle.loads(pickle.dumps(histogram))
    assert copy == histogram
    assert copy.to_bytes() == histogram.to_bytes()
    with pytest.raises(ValueError, match="histogram"):
        copy.__setstate__(b"something else")


def test_an_error_carries_a_message_and_a_hint() -> None:
    with pytest.raises(_native.NativeConfigError) as caught:
        _native.parse_size("4 KB or so")
    message, hint = caught.value.args
    assert "4 KB or so" in message
    assert hint is None or isinstance(hint, str)


def _imports_native_at_run_time(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        if any(name.startswith("writecliff._native") for name in names):
            return True
    return False


def test_only_these_modules_import_the_native_module() -> None:
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if _imports_native_at_run_time(path)
    }
    assert users == USERS
