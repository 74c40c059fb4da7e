"""`writecliff doctor` on machines with missing features."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from writecliff import doctor
from writecliff.cli.main import main
from writecliff.doctor import Check, checks


def checks_by_name() -> dict[str, Check]:
    return {check.name: check for check in checks()}


def test_a_machine_without_tools_is_told_where_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "find_tool", lambda name: None)
    monkeypatch.setattr("writecliff.engines.fio.capability.find_tool", lambda name: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(doctor, "kernel_has_io_uring", lambda: False)
    monkeypatch.setattr("platform.release", lambda: "6.1.0-13-cloud-amd64")
    monkeypatch.setattr(doctor, "available_memory_bytes", lambda: 1_000_000_000)
    results = checks_by_name()
    assert (results["fio"].state, results["fio"].found) == (
        "missing",
        "fio is not installed",
    )
    assert "package 'fio'" in results["fio"].remedy
    assert results["nvme"].remedy == "Debian, Ubuntu: apt install nvme-cli"
    assert (results["rights"].state, results["rights"].found) == ("limited", "user 1000")
    assert results["kernel"].state == "limited" and "6.16" in results["kernel"].remedy
    assert results["io_uring"].state == "missing"
    assert results["memory"].state == "limited"
    assert results["NVMe/TCP"].state == "missing", "no modules of that kernel are here"
    assert all(check.remedy for check in results.values() if check.state == "missing")


@pytest.mark.parametrize(
    ("release", "state"), [("6.16.0", "ok"), ("7.3.4-x", "ok"), ("6.9", "limited")]
)
def test_kernels_are_compared_by_number(
    release: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    assert checks_by_name()["kernel"].state == state


def test_a_module_counts_if_it_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.release", lambda: "none")
    assert not doctor._has_module("no_such_module")
    real = Path.read_text
    listing = "kernel/drivers/nvme/host/nvme-tcp.ko.xz: kernel/drivers/nvme/host/nvme-fabrics.ko.xz"
    monkeypatch.setattr(
        Path, "read_text",
        lambda path, *a, **k: listing if path.name == "modules.dep" else real(path, *a, **k),
    )  # fmt: skip
    assert doctor._has_module("nvme_tcp")
    assert not doctor._has_module("nvme_rdma")


def test_a_cache_that_cannot_be_written_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRITECLIFF_CACHE", "/proc/writecliff")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    cache = checks_by_name()["cache"]
    assert cache.state == "limited" and "not writable" in cache.found
    monkeypatch.setenv("WRITECLIFF_CACHE_LIMIT", "much")
    assert checks_by_name()["cache"].state == "limited"


def test_the_command_prints_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    names = [row["name"] for row in answer["checks"]]
    assert {"writecliff", "memory", "fio", "nvme", "rights", "kernel", "weasyprint"} <= set(names)
    assert main(["doctor"]) == 0
    screen = capsys.readouterr().out
    assert all(name in screen for name in names)
