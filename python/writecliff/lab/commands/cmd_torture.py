"""Cut the power under a running program, and check the program's data afterwards."""

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

    Each cut starts from the same file system contents on the drive. The drive stops at a write
    selected by the seed, and loses the data that NVMe permits it to lose. The file system is then
    mounted again and checked. The command stops at the first seed after which data are missing,
    with exit code 1. The command requires root and nbdfuse.

    Parameters
    ----------
    device
        Simulated drive: sim:NAME or sim:PATH.toml.
    command
        Command to run with its arguments, after "--". The command runs in the root of the file
        system. Each line that the command prints acknowledges that data are durable.
    check
        Check command to run in the root of the file system after each cut; it must fail if data are
        missing or damaged. The environment variable WRITECLIFF_ACKNOWLEDGED names a file with the
        output of COMMAND.
    prepare
        Set-up command to run once in the root of the file system, before the first cut.
    app
        Built-in program to run and check instead of a command: sqlite, postgres or rocksdb.
    sync
        With --app, make the program sync the data that it acknowledges.
    file_system
        File system type: ext4, xfs or btrfs.
    cuts
        Number of power cuts, each with a different seed.
    seed
        Seed for the first power cut.
    writes
        Latest write at which to cut the power, counted from the start of the program.
    """
    from writecliff.lab.torture.trial import Plan, Trials
    from writecliff.signals import TERMINATIONS, handling

    if cuts < 1 or writes < 1:
        raise ConfigError("--cuts and --writes must be at least 1")
    plan = Plan(device, _program(command, app, check, prepare, sync=sync), file_system, writes)
    plan.check()
    done: list[Trial] = []
    # Handle termination signals like Ctrl-C, so that nothing remains mounted.
    ending = handling(TERMINATIONS, signal.default_int_handler)
    with ending, TemporaryDirectory(prefix="writecliff-torture-") as folder:
        trials = Trials(plan, Path(folder))
        log(f"{plan.program.name} on {file_system} on {device}: preparing")
        trials.prepare()
        for trial_seed in range(seed, seed + cuts):
            done.append(trials.run(trial_seed))
            log(f"[{len(done)}/{cuts}]  {_line(done[-1])}")
            if done[-1].finding:
                break
    failed = done[-1] if done[-1].finding else None
    summary = {
        "target": device,
        "program": plan.program.name,
        "file_system": file_system,
        "cuts": len(done),
        "intact": sum(not trial.finding for trial in done),
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
            raise ConfigError(
                "--app defines its own commands", hint="omit COMMAND, --check and --prepare"
            )
        return ready_program(app, sync=sync)
    if not command or check is None:
        raise ConfigError(
            "the program to run, or the command that checks its data, is missing",
            hint="specify --app sqlite, or --check 'CHECK' -- COMMAND",
        )
    words = tuple(shlex.split(prepare)) if prepare else ()
    return Program(Path(command[0]).name, command, tuple(shlex.split(check)), words)


def _line(trial: Trial) -> str:
    from writecliff.cli.cmd_serve import undone_text

    what = trial.finding or "intact"
    cut = f"seed {trial.seed}, cut at write {trial.at_write}"
    undone = undone_text(trial.pages_undone, trial.undone_as)
    return f"{cut}, {trial.acknowledged:,} lines, {undone}: {what}"


def _text(summary: dict[str, Any], failed: Trial | None) -> str:
    rows = [
        ("program", summary["program"]),
        ("file system", summary["file_system"]),
        ("cuts", f"{summary['cuts']:,}"),
        ("intact after", f"{summary['intact']:,}"),
    ]
    if failed is None:
        return f"{pairs(rows)}\n\nNo acknowledged data were lost."
    repeat = f"--seed {failed.seed} --cuts 1"
    return f"{pairs(rows)}\n\nLost at seed {failed.seed} (repeat: {repeat}): {failed.finding}"
