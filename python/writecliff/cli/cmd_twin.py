"""Create a twin of a drive, or check a drive against a twin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.cli.options import NO_TARGET, OutputPath, TargetOptions, Whole, new_path, opened
from writecliff.cli.output import JsonFlag, emit_json, pairs
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from writecliff.api.twin import TwinChecked, TwinMade
    from writecliff.cli.screen import Screen

GROUP = "drives", 2
EXIT_DEGRADED = 3


def twin(
    drive: str | None = None,
    *,
    target: TargetOptions = NO_TARGET,
    name: str | None = None,
    device_file: Path | None = None,
    check: str | None = None,
    gentle: bool = False,
    seconds: float | None = None,
    overwrite_minutes: float | None = None,
    rest: float | None = None,
    no_purge: bool = False,
    sheet: Path | None = None,
    seed: Whole = None,
    output: OutputPath = None,
    resume: Path | None = None,
    store: str | None = None,
    dry_run: bool = False,
    quiet: bool = False,
    json: JsonFlag = False,
) -> int:
    """Create a twin of a drive, or check a drive against a twin.

    The command measures the drive, fits a model to some of the measurements, and writes a device
    file that states the source of each value. A fixed rule chooses the held-out measurements, which
    then determine the twin's error. A 1 TB drive takes at most two hours if it writes 200 MB/s
    sequentially; --dry-run shows the time and the write volume.

    Parameters
    ----------
    drive
        Drive to measure, as an alternative to --on: /dev/NAME, file:PATH, sim:NAME or
        sim:PATH.toml.
    name
        Name of the twin (default: the drive's model name).
    device_file
        Also write the twin to this file, which must not exist (default: the twin is written only to
        twin.toml in the run directory).
    check
        Instead of creating a twin, compare the drive with this device file, catalogue drive, or
        TOML file of data sheet values (see `writecliff device new --answers`). The exit code is 3
        if the drive is degraded under any kind of load.
    gentle
        Read from the drive in its current state, and never write to the drive. The twin's write
        parameters then have default values.
    seconds
        Duration of each load, in seconds (default: 10).
    overwrite_minutes
        Time limit for random overwrites, in minutes (default: 25).
    rest
        Idle time before the last write burst, in seconds (default: 60).
    no_purge
        Skip the purge of a real drive.
    sheet
        A TOML file with data sheet values that measurements cannot reveal, such as year, cell, dram
        and tbw, in the format of `writecliff device new --answers`.
    seed
        Seed for all random choices (default: 1).
    output
        Run directory, which must be empty or not exist (default: runs/twin-TARGET-TIME).
    resume
        Resume the run in this directory and reuse its measurements; if the measurements are
        complete, continue with the fit or --check.
    store
        Run store for the new run (default: the store in WRITECLIFF_STORE, else the current folder).
    dry_run
        Show the plan and its write volume, but do not access the drive.
    quiet
        Suppress progress output on stderr.
    """
    from writecliff.api.twin import new_device_file
    from writecliff.cli.screen import Screen

    if drive is not None:
        if target.on is not None:
            raise ConfigError("both DRIVE and --on were given", hint="omit --on")
        target = replace(target, on=drive)
    device_file = new_device_file(device_file)
    answers = _answers(sheet)
    given = {
        "gentle": gentle or None,
        "seconds": seconds,
        "overwrite_minutes": overwrite_minutes,
        "rest_s": rest,
        "no_purge": no_purge or None,
        "seed": seed,
    }
    screen = Screen(quiet=quiet)
    options = {key: value for key, value in given.items() if value is not None}
    if check is not None:
        _check_expected(check)
    run = _measured(
        target, options, output, resume, store, screen,
        makes_twin=check is None, dry_run=dry_run, json=json,
    )  # fmt: skip
    if isinstance(run, int):
        return run
    if check is not None:
        return _checked(run, check, screen, as_json=json)
    from writecliff.api.twin import twin_of_run

    made = twin_of_run(run, name=name, device_file=device_file, answers=answers, log=screen.log)
    _show(made, run, as_json=json)
    return 0


def _answers(sheet: Path | None) -> dict[str, object]:
    from writecliff.devices.sheet import read_answers

    return {} if sheet is None else read_answers(sheet)


def _check_expected(expected: str) -> None:
    """Check that the drive can be compared with `expected` before measuring it for hours."""
    from writecliff.devices import show_device
    from writecliff.devices.sheet import read_answers, sheet_of
    from writecliff.twin.check import is_sheet

    if is_sheet(expected):
        sheet_of(read_answers(Path(expected)))
    elif what := show_device(expected).without_flash:
        raise ConfigError(
            f"the comparison drive {expected} is {what}", hint="choose a drive with flash memory"
        )


def _measured(
    target: TargetOptions,
    options: Mapping[str, object],
    output: Path | None,
    resume: Path | None,
    store: str | None,
    screen: Screen,
    *,
    makes_twin: bool,
    dry_run: bool,
    json: bool,
) -> Path | int:
    """Return the directory of the completed measurements, or the exit code of a dry run."""
    from writecliff.api import execute
    from writecliff.api.plans import check_permission
    from writecliff.cli.options import RunOptions
    from writecliff.cli.progress import ProgressView
    from writecliff.cli.runner import run_to_resume, show_plan
    from writecliff.procedures.twin import Twin
    from writecliff.twin.start import check_drive

    if resume is not None:
        if options:
            name = next(iter(options)).replace("_s", "").replace("_", "-")
            raise ConfigError(
                f"--{name} cannot be combined with --resume",
                hint="omit the option: a resumed run keeps its original options",
            )
        if _is_complete(resume):
            return resume
        run = RunOptions(resume=resume, output=output)
        procedure, target, directory = run_to_resume(Twin.name, target, run)
    else:
        procedure = Twin.from_mapping(options)
        directory = output or new_path("runs", Twin.name, target.on, store=store)
    with opened(target, seed=procedure.seed, look_only=dry_run) as engine:
        identity = engine.identify()
        if makes_twin:
            check_drive(identity)
        procedure.check_purge(simulated=identity.simulated)
        writes = not (isinstance(procedure, Twin) and procedure.gentle)
        if dry_run:
            return show_plan(procedure, engine, json, writes=writes)
        if writes:
            check_permission(engine)
        execute(procedure, engine, directory, ProgressView(screen), resume=resume is not None)
    return directory


def _is_complete(run: Path) -> bool:
    from writecliff.store.rundir import RunDirectory

    return RunDirectory.open(run).status == "complete"


def _checked(run: Path, expected: str, screen: Screen, *, as_json: bool) -> int:
    from writecliff.api.twin import check_run

    done: TwinChecked = check_run(run, expected, log=screen.log)
    checked = done.check
    if as_json:
        from writecliff.api.answers.choices import TwinCheck

        emit_json(TwinCheck.of(checked.mapping(), run=run, report=done.page))
    else:
        from writecliff.cli.output import table

        rows = [
            (kind.name, kind.outcome, f"{kind.worse_pct:+.1f} %", f"{kind.allowed_pct:.0f} %",
             str(kind.figures))
            for kind in checked.kinds
        ]  # fmt: skip
        print(table(("load", "", "worse by", "allowed", "figures"), rows, "llrrr"))
        print(f"\n{done.page}\n{checked.verdict}")
    return EXIT_DEGRADED if checked.degraded else 0


def _show(made: TwinMade, run: Path, *, as_json: bool) -> None:
    result = made.result
    if as_json:
        from writecliff.api.answers.choices import Twin

        files = {"device_file": made.device_file, "run": run, "report": made.page}
        emit_json(Twin.of({**result.mapping(), **files}))
        return
    errors = result.errors
    lines = [
        ("twin", f"sim:{made.device_file}"),
        ("held out", f"{errors.figures} figures"),
        *(
            (f"  {name}", "-" if value is None else f"{value:.1f} % off (median)")
            for name, value in (
                ("rates", errors.rates_pct),
                ("mean latencies", errors.means_pct),
                ("99th percentiles", errors.tails_pct),
            )
        ),
        *(("not distinguished", text) for text in result.not_told_apart),
        ("run", str(run)),
        ("report", str(made.page)),
        ("verdict", result.verdict),
    ]
    print(pairs(lines))
