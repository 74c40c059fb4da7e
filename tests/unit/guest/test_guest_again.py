"""Second run of tests that failed in a guest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.guest.testing import failed_in

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise OSError

@pytest.mark.parametrize("how", ["", "a b"])
def test_fails(how):
    assert how == ""

def test_has_no_fixture(broken):
    pass

def test_passes():
    pass
"""


def test_only_the_failed_tests_run_again(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "test_some.py").write_text(TESTS)
    results = tmp_path / "junit.xml"
    assert failed_in(results) == []
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    words += ["--import-mode=importlib", f"--rootdir={tmp_path}", f"--junitxml={results}"]
    subprocess.run([*words, "sub"], cwd=tmp_path, capture_output=True, check=False)
    failed = failed_in(results)
    assert failed == [
        "sub/test_some.py::test_fails[a b]",
        "sub/test_some.py::test_has_no_fixture",
    ]
    again = subprocess.run(
        [*words, *failed], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 error in" in again.stdout
