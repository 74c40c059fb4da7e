"""`writecliff device` and `writecliff validate` on stand-ins of what they show."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tests.support.cli import CommandLine
from writecliff.errors import ConfigError


@dataclass(frozen=True)
class Summary:
    name: str
    capacity_bytes: int
    nand_type: str


@dataclass(frozen=True)
class Flash:
    page_bytes: int
    program_ns: tuple[int, ...]


@dataclass(frozen=True)
class Description:
    name: str
    flash: Flash
    power_loss_protection: bool
    spare_pct: float


@dataclass(frozen=True)
class Case:
    utilisation: float
    theory: float
    simulated: float
    ok: bool


def serve(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    parent = name.rpartition(".")[0]
    for module in (parent, name) if parent != "writecliff" else (name,):
        stand_in = ModuleType(module)
        stand_in.__path__ = []
        monkeypatch.setitem(sys.modules, module, stand_in)
    for key, function in functions.items():
        setattr(sys.modules[name], key, function)


@pytest.fixture(autouse=True)
def _devices(monkeypatch: pytest.MonkeyPatch) -> None:
    description = Description("small", Flash(16384, (2_200_000,)), True, 7.0)

    def show_device(name: str) -> Description:
        if name != "small":
            raise ConfigError(f"no simulated drive '{name}'")
        return description

    serve(
        monkeypatch,
        "writecliff.devices",
        list_devices=lambda: [Summary("small", 120_000_000_000, "TLC")],
        show_device=show_device,
    )


def test_device_list(cli: CommandLine) -> None:
    said = cli("device list")
    assert (said.code, said.err) == (0, "")
    assert said.out == "name   capacity  nand type\nsmall  120 GB    TLC\n"
    assert json.loads(cli("device list --json").out) == {
        "devices": [{"name": "small", "capacity_bytes": 120_000_000_000, "nand_type": "TLC"}]
    }


def test_device_show(cli: CommandLine) -> None:
    said = cli("device show sim:small")
    assert said.code == 0
    assert said.out.splitlines() == [
        "name                   small",
        "flash.page             16 KiB",
        "flash.program          2.20 ms",
        "power loss protection  yes",
        "spare                  7 %",
    ]
    assert json.loads(cli("device show small --json").out)["flash"]["page_bytes"] == 16384
    assert cli("device show big").code == 2


@pytest.mark.parametrize("ok", [True, False])
def test_validate_waf(cli: CommandLine, monkeypatch: pytest.MonkeyPatch, ok: bool) -> None:
    cases = [Case(0.8, 2.9, 2.9, True), Case(0.9, 5.1, 6.0, ok)]
    serve(monkeypatch, "writecliff.validate.waf", run=lambda: cases)
    said = cli("validate waf")
    assert said.code == (0 if ok else 1)
    assert "utilisation" in said.out
    assert ("some cases are off" in said.err) is not ok
    answer = json.loads(cli("validate waf --json").out)
    assert answer["ok"] is ok
    assert len(answer["cases"]) == 2
