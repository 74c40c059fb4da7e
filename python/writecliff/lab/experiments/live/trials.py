"""Trials of an experiment: pairs with and without streams, in alternating order."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from writecliff.errors import ConfigError
from writecliff.lab.experiments import Log
from writecliff.lab.experiments.live.machine import FILE_SYSTEM, Machine, small_drive
from writecliff.lab.experiments.live.model import Application, Condition, Result, Trial
from writecliff.lab.torture import file_system
from writecliff.lab.torture.attachment import check_machine
from writecliff.signals import TERMINATIONS, handling

DEVICE = "sas-ms-480"


def schedule(repeats: int, trims: Sequence[bool]) -> list[tuple[int, Condition]]:
    """Return repeats and conditions in trial order.

    Every other pair starts with streams, so that machine drift favours neither side.
    """
    order = []
    for repeat in range(repeats):
        for trim in trims:
            sides = (False, True) if repeat % 2 == 0 else (True, False)
            order += [(repeat, Condition(trim, streams)) for streams in sides]
    return order


def run_trials(
    application: Application, *, repeats: int, trims: Sequence[bool], folder: Path, log: Log
) -> Result:
    """Run all trials, each with a run directory in `folder`, which must be empty or not exist.

    Raises:
        TargetError: If the machine lacks a program or package.
        ConfigError: If `folder` is not empty.
        WritecliffError: If a program failed.
    """
    if repeats < 1:
        raise ConfigError(f"--repeats must be at least 1, not {repeats}")
    check_machine()
    file_system.check(FILE_SYSTEM)
    application.check()
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder} is not empty", hint="remove the folder, or specify another --output"
        )
    folder.mkdir(parents=True, exist_ok=True)
    path, device = small_drive(DEVICE, application.parts, application.unit_bytes, folder)
    order = schedule(repeats, trims)
    trials = []
    for position, (repeat, condition) in zip(count(1), order, strict=False):
        sides = f"{'TRIM' if condition.trim else 'no TRIM'}, streams {_on(condition.streams)}"
        log(f"trial {position} of {len(order)}: {sides}")
        name = f"{'trim' if condition.trim else 'no-trim'}-{_on(condition.streams)}-{repeat + 1}"
        # Handle termination signals so that no file system remains mounted.
        with handling(TERMINATIONS, signal.default_int_handler):
            trial = _trial(application, path, condition, repeat, position, folder / name)
        log(
            f"{trial.throughput:,.0f} operations per second of drive time, "
            f"write amplification {trial.waf:.2f}"
        )
        trials.append(trial)
    raw_bytes = device.flash_bytes("a reclaim unit")
    units = device.reclaim_units or 1
    return Result(
        application=application,
        device=DEVICE,
        device_file=str(path),
        capacity_bytes=device.capacity_bytes,
        unit_bytes=raw_bytes / units,
        units=units,
        spare_pct=device.overprovision_pct or 0.0,
        trials=tuple(trials),
    )


def _on(streams: bool) -> str:
    return "on" if streams else "off"


def _trial(
    application: Application,
    device: Path,
    condition: Condition,
    repeat: int,
    position: int,
    directory: Path,
) -> Trial:
    work = Path(tempfile.mkdtemp(prefix="writecliff-live-"))
    session: dict[str, Any] = {}
    seed = 1 + 2 * repeat
    try:
        for name in ("machine", "client"):
            (work / name).mkdir()
        machine = Machine(device, application.parts, condition, work / "machine", 1 + repeat)
        with machine.prepared() as folders:
            application.prepare(folders, work / "client", seed)
        with machine.timed(application.slow_down, directory, session) as folders:
            client = application.measure(folders, work / "client", seed)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Trial(condition, repeat, position, client, session, str(directory))
