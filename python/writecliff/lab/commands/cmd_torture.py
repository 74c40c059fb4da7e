"""Cut the power under a program, and check its data afterwards."""

from __future__ import annotations

import shlex
import signal
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from writecliff.cli.output import JsonFlag, emit_json, log, pairs
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import Torture

if TYPE_CHECKING:
    from writecliff.lab.torture.programs import Program
    from writecliff.lab.torture.trial import Trial

GROUP = "lab", 6
app = App(name="torture", usage="writecliff lab torture DEVICE [OPTIONS] -- COMMAND [ARGUMENTS]")


@app.default
def torture(
    device: str,
    *command: str,
    check: Annotated[str | None, Parameter(metavar="COMMAND")] = None,
    prepare: str | None = None,
    app: str | None = None,
    sync: Annotated[bool, Parameter(negative="--no-sync")] = True,
    file_system: str = "ext4",
    cuts: int = 20,
    seed: int = 1,
    writes: int = 500,
    json: JsonFlag = False,
) -> int:
    """Run a program on a simulated drive and cut its power at seeded moments.

    Each cut begins with the same file system on the drive. The drive stops at a write that the seed
    chooses, and loses what a drive may lose. Then it is mounted again and checked. The first seed
    after which something is missing is reported, and the exit code is 1. Needs root and nbdfuse.

    Parameters
    ----------
    device
        The drive: sim:NAME or sim:PATH.toml.
    command
        The command and its arguments, after "--". It runs in the folder of the file system; each
        line that it prints says that something is durable.
    check
        A command that runs there after the cut and fails if anything is missing or broken. The file
        named by WRITECLIFF_ACKNOWLEDGED has what COMMAND has printed.
    prepare
        A command that runs there once, before the first cut.
    app
        A ready program with its check in place of a command: sqlite, postgres or rocksdb.
    sync
        With --app: have the program sync what it acknowledges.
    file_system
        ext4, xfs or btrfs.
    cuts
        The number of cuts, each with a seed of its own.
    seed
        The first seed.
    writes
        Cut at the latest at this write of the drive, from the begin of the program.
    """
    from writecliff.lab.torture.trial import Plan, Trials
    from writecliff.signals import TERMINATIONS, handling

    if cuts < 1 or writes < 1:
        raise ConfigError("--cuts and --writes must be at least 1")
    plan = Plan(device, _program(command, app, check, prepare, sync=sync), file_system, writes)
    plan.check()
    done: list[Trial] = []
    # As Ctrl-C: nothing stays mounted.
    ending = handling(TERMINATIONS, signal.default_int_handler)
    with ending, TemporaryDirectory(prefix="writecliff-torture-") as folder:
        trials = Trials(plan, Path(folder))
        log(f"{plan.program.name} on {file_system} on {device}: preparing")
        trials.prepare()
        for one in range(seed, seed + cuts):
            done.append(trials.run(one))
            log(f"[{len(done)}/{cuts}]  {_line(done[-1])}")
            if done[-1].finding:
                break
    failed = done[-1] if done[-1].finding else None
    summary = {
        "target": device,
        "program": plan.program.name,
        "file_system": file_system,
        "cuts": len(done),
        "intact": sum(not one.finding for one in done),
        "first_failure": asdict(failed) if failed else None,
    }
    if json:
        emit_json(Torture.of(summary))
    else:
        print(_text(summary, failed))
    return 1 if failed else 0


def _program(
    command: tuple[str, ...],
    app: str | None,
    check: str | None,
    prepare: str | None,
    *,
    sync: bool,
) -> Program:
    from writecliff.lab.torture.programs import Program, ready_program

    if app is not None:
        if command or check or prepare:
            raise ConfigError("--app has its own commands", hint="leave the others out")
        return ready_program(app, sync=sync)
    if not command or check is None:
        raise ConfigError(
            "no program to run, or no check",
            hint="give --app sqlite, or --check 'CHECK' -- COMMAND",
        )
    words = tuple(shlex.split(prepare)) if prepare else ()
    return Program(Path(command[0]).name, command, tuple(shlex.split(check)), words)


def _line(one: Trial) -> str:
    from writecliff.cli.cmd_serve import undone_text

    what = one.finding or "intact"
    cut = f"seed {one.seed}, cut at write {one.at_write}"
    undone = undone_text(one.pages_undone, one.undone_as)
    return f"{cut}, {one.acknowledged:,} lines, {undone}: {what}"


def _text(summary: dict[str, Any], failed: Trial | None) -> str:
    rows = [
        ("program", summary["program"]),
        ("file system", summary["file_system"]),
        ("cuts", f"{summary['cuts']:,}"),
        ("intact after", f"{summary['intact']:,}"),
    ]
    if failed is None:
        return f"{pairs(rows)}\n\nNothing that was acknowledged was lost."
    again = f"--seed {failed.seed} --cuts 1"
    return f"{pairs(rows)}\n\nLost at seed {failed.seed} (again: {again}): {failed.finding}"
