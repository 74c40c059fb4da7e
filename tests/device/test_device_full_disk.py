"""Commands that run on a full or read-only disk.

A one-line error names the cause, no data are lost or partially written, and the same command
succeeds once space is available. `python -m tests.kills --by full --disk ext4` covers all kinds of
commands.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kills.disks import small_disk
from tests.support.dashboard import dashboard
from tests.support.run_store import aged, make_run

ROOT = Path(__file__).parents[2]
KINDS = ("drive", "convert", "tag", "capture", "export", "import")


@pytest.mark.parametrize("by", ["full", "read-only"])
def test_commands_without_space(by: str, tmp_path: Path) -> None:
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills", *kinds, "--count", str(len(KINDS)), "--by", by,
         "--disk", "ext4", "--seed", "21", "--folder", str(tmp_path / "trials")],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{len(KINDS)} of {len(KINDS)} as undisturbed\n")
    if by == "read-only":
        assert done.stdout.count("exit code 1: error: ") == len(KINDS), done.stdout


@pytest.mark.parametrize(
    ("room", "code", "message"), [(0, 409, "read-only file system"), (4096, 303, "")]
)
def test_the_dashboard_of_a_store_without_space(
    room: int, code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that pages require no space, and that a change that cannot be stored has no effect."""
    monkeypatch.delenv("WRITECLIFF_STORE", raising=False)
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, "ext4") as resize:
        for seed, name in enumerate(("first", "second")):
            make_run(disk / "runs" / name, seed=seed)
        aged(disk)
        before = sorted(disk.rglob("*"))
        resize(room)
        with dashboard(disk, allow_changes=True) as served:
            assert "first" in served.ask("/").text
            for page in ("/run?name=runs/first", "/report?name=runs/first"):
                assert served.ask(page).status == 200
            tagged = served.form("/tags", {"name": "runs/first", "add": "kept", "remove": ""})
            deleted = served.form("/delete", {"name": "runs/second", "confirm": "runs/second"})
        assert (tagged.status, deleted.status) == (code, code)
        assert message in tagged.text and message in deleted.text
        if code != 303:
            assert sorted(disk.rglob("*")) == before
        assert served.complaints == []
