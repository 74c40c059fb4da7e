"""The manifest and the list of runs."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.synthetic_run import manifest
from writecliff.errors import StoreError
from writecliff.store.catalog import latest_run, list_runs
from writecliff.store.host import host_platform, versions
from writecliff.store.manifest import Manifest, read_manifest, write_manifest
from writecliff.store.rundir import RunDirectory


def test_round_trip(tmp_path: Path) -> None:
    before = manifest(
        interruptions=({"after_steps": 3, "resumed": "2026-03-02T16:00:00+00:00", "exact": True},),
        warnings=("w",),
        extra={"device_zero_ns": 12},
    )
    write_manifest(tmp_path, before)
    assert read_manifest(tmp_path) == before
    data = json.loads((tmp_path / "manifest.json").read_text())
    assert data["schema"] == "writecliff/run/1"
    assert data["device"]["device_hash"] == before.device_hash
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_defaults_describe_this_machine_and_moment() -> None:
    made = Manifest(
        procedure="wsat", edition="PTS-E 1.1", device=manifest().device, options={}, seed=1
    )
    assert made.status == "planned"
    assert made.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    created = datetime.fromisoformat(made.created)
    assert created.tzinfo is not None
    assert abs((datetime.now().astimezone() - created).total_seconds()) < 60
    changed = made.changed(status="running")
    assert changed.status == "running"
    assert changed.updated >= made.updated


@pytest.mark.parametrize("program", ["/opt/x/writecliff/__main__.py", "/opt/bin/writecliff"])
def test_command_is_what_a_user_types(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys, "argv", [program, "test", "wsat"])
    made = Manifest(
        procedure="wsat", edition="PTS-E 1.1", device=manifest().device, options={}, seed=1
    )
    assert made.command == ("writecliff", "test", "wsat")


def test_host_platform() -> None:
    host = host_platform()
    assert set(host) == {"motherboard", "cpu", "memory", "operating_system", "machine"}
    assert host["operating_system"]
    assert host["memory"] is None or host["memory"].endswith(" GiB")
    assert set(versions()) == {"writecliff", "fio", "python", "kernel"}


def test_unknown_keys_are_accepted(tmp_path: Path) -> None:
    data = json.loads(manifest().to_json())
    data["later"] = 1
    data["device"]["later"] = 1
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    assert read_manifest(tmp_path) == manifest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read"),
        ("[]", "schema null"),
        ('{"schema": "writecliff/run/9"}', 'schema "writecliff/run/9", this version reads'),
        ('{"schema": "writecliff/run/1"}', "is damaged"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=message):
        read_manifest(tmp_path)


def test_unknown_status_is_damage(tmp_path: Path) -> None:
    text = manifest().to_json().replace('"status": "running"', '"status": "well"')
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match="unknown status 'well'"):
        read_manifest(tmp_path)


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    days = {"b": "2026-03-02", "a": "2026-03-04", "c": "2026-03-03"}
    for name, day in days.items():
        (tmp_path / name).mkdir()
        write_manifest(tmp_path / name, manifest(created=f"{day}T10:00:00+00:00"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("")
    listings = list_runs(tmp_path)
    assert [listing.path.name for listing in listings] == ["a", "c", "b", "broken"]
    assert listings[0].status == "interrupted"  # "running", but nobody holds it
    assert listings[-1].manifest is None
    assert "cannot read" in listings[-1].problem
    assert latest_run(tmp_path) == tmp_path / "a"


def test_a_running_run_is_listed_as_running(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", manifest()):
        assert [listing.status for listing in list_runs(tmp_path)] == ["running"]
    assert [listing.status for listing in list_runs(tmp_path)] == ["interrupted"]


def test_listing_needs_a_folder(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []
    assert latest_run(tmp_path) is None
    with pytest.raises(StoreError, match="cannot list"):
        list_runs(tmp_path / "absent")


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys, writecliff.store.catalog, writecliff.store.manifest\n"
        "print([m for m in ('numpy', 'pyarrow', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[3] / "python")},
    )
    assert done.stdout.strip() == "[]"
