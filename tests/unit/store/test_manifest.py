"""Manifests, and the list of runs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.synthetic_run import manifest
from writecliff.errors import StoreError
from writecliff.store import manifest as manifest_module
from writecliff.store.checksums import write_document
from writecliff.store.manifest import (
    MANIFEST_NAME,
    SCHEMA,
    Manifest,
    host_platform,
    read_manifest,
    read_state,
    versions,
    write_manifest,
)
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
    assert data["device"]["device_hash"] == before.device.device_hash
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
    assert set(host) == {"platform", "motherboard", "cpu", "memory", "operating_system", "machine",
                         "cpu_governor", "virtual_machine"}  # fmt: skip
    assert host["operating_system"]
    assert host["memory"] is None or host["memory"].endswith(" GiB")
    assert set(versions()) == {"writecliff", "fio", "python", "kernel"}


def test_unknown_keys_are_accepted(tmp_path: Path) -> None:
    data = asdict(manifest())
    data["later"] = 1
    data["device"]["later"] = 1
    write_document(tmp_path / MANIFEST_NAME, SCHEMA, data)
    assert read_manifest(tmp_path) == manifest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged: .*manifest.json: the file is not JSON"),
        ("[]", "schema null"),
        ('{"schema": "writecliff/run/9"}', 'schema "writecliff/run/9", but this version reads'),
        ('{"schema": "writecliff/run/1"}', "damaged: .*manifest.json: checksum"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / MANIFEST_NAME).write_text(text)
    with pytest.raises(StoreError, match=message):
        read_manifest(tmp_path)


@pytest.mark.parametrize("change", [{"status": "well"}, {"device": {}}, {"created": "yesterday"}])
def test_fields_that_are_not_a_manifest_are_damage(
    tmp_path: Path, change: dict[str, object]
) -> None:
    write_document(tmp_path / MANIFEST_NAME, SCHEMA, asdict(manifest()) | change)
    with pytest.raises(StoreError, match=r"damaged: .*manifest\.json: "):
        read_manifest(tmp_path)


def test_a_changed_value_is_damage(tmp_path: Path) -> None:
    write_manifest(tmp_path, manifest())
    path = tmp_path / MANIFEST_NAME
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 5'))
    with pytest.raises(StoreError, match="checksum mismatch"):
        read_manifest(tmp_path)


def test_a_run_without_a_process_is_interrupted(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", manifest()):
        assert read_state(tmp_path / "run")[1] == "running"
    assert read_state(tmp_path / "run")[1] == "interrupted"


def test_a_run_that_ends_while_it_is_opened_is_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory.create(tmp_path / "run", manifest())

    def ended(folder: Path) -> bool:
        run.finish("complete")
        return False

    monkeypatch.setattr(manifest_module, "is_locked", ended)
    assert read_state(tmp_path / "run")[1] == "complete"


def test_the_manifest_imports_nothing_heavy() -> None:
    code = (
        "import sys, writecliff.store.manifest\n"
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
