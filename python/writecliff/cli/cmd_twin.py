"""Make a twin of a drive, or check a drive against its twin."""

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
    """Make a twin of a drive, or check a drive against its twin.

    Measures what identifies the drive, fits a model to a part of it, and writes a device file with
    the source of each value. The other part of the measurements was kept aside by a rule stated
    before: the error of the twin is that of these. A 1 TB drive takes two hours at most, if it
    writes 200 MB/s in order; --dry-run says how long and how much is written.

    Parameters
    ----------
    drive
        The drive, in place of --on: /dev/NAME, file:PATH, sim:NAME or sim:PATH.toml.
    name
        Name of the twin (default: of the drive's model).
    device_file
        Write the twin to this file, too, which must not exist (default: only twin.toml in the
        run directory).
    check
        Make no twin: compare the drive with this device file, drive of the catalogue, or TOML file
        of a data sheet's answers (see `writecliff device new --answers`). The exit code is 3 if a
        kind of load is degraded.
    gentle
        Only read, on the drive as it is; nothing is written. The twin's writes are defaults.
    seconds
        The length of a load (default: 10).
    overwrite_minutes
        The most of random overwrites, in minutes (default: 25).
    rest
        Seconds of rest before the last burst of writes (default: 60).
    no_purge
        Do not purge a real drive.
    sheet
        A TOML file of what its data sheet says, as for `writecliff device new --answers`: year,
        cell, dram, tbw and others that no measurement tells.
    seed
        Seed of all random choices (default: 1).
    output
        Directory of the run; it must be empty or not exist (default: runs/twin-TARGET-TIME).
    resume
        Go on with the run in this directory: with its measurements, or, where these are complete,
        with the fit, or with --check.
    store
        The store that the new run is of (default: WRITECLIFF_STORE, else the current folder).
    dry_run
        Show what would be done and how much would be written; touch nothing.
    quiet
        Show no progress on stderr.
    """
    from writecliff.api.twin import new_device_file
    from writecliff.cli.screen import Screen

    if drive is not None:
        if target.on is not None:
            raise ConfigError("the drive is given twice", hint="drop --on")
        target = replace(target, on=drive)
    device_file = new_device_file(device_file)
    said = _said(sheet)
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

    made = twin_of_run(run, name=name, device_file=device_file, said=said, log=screen.log)
    _show(made, run, as_json=json)
    return 0


def _said(sheet: Path | None) -> dict[str, object]:
    from writecliff.devices.sheet import read_answers

    return {} if sheet is None else read_answers(sheet)


def _check_expected(expected: str) -> None:
    """Refuse what cannot be compared with before hours of measurements."""
    from writecliff.devices import show_device
    from writecliff.devices.sheet import read_answers, sheet_of
    from writecliff.twin.check import is_sheet

    if is_sheet(expected):
        sheet_of(read_answers(Path(expected)))
    elif what := show_device(expected).without_flash:
        raise ConfigError(f"{expected} is {what}", hint="give a drive with flash")


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
    """The directory of complete measurements; the exit code of a dry run."""
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
                f"--{name} cannot be given with --resume",
                hint="a run is resumed with the options it was started with",
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
    found = done.check
    if as_json:
        from writecliff.api.answers.choices import TwinCheck

        emit_json(TwinCheck.of(found.mapping(), run=run, report=done.page))
    else:
        from writecliff.cli.output import table

        rows = [
            (one.name, one.outcome, f"{one.worse_pct:+.1f} %", f"{one.allowed_pct:.0f} %",
             str(one.figures))
            for one in found.kinds
        ]  # fmt: skip
        print(table(("load", "", "worse by", "allowed", "figures"), rows, "llrrr"))
        print(f"\n{done.page}\n{found.verdict}")
    return EXIT_DEGRADED if found.degraded else 0


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
        ("kept aside", f"{errors.figures} figures"),
        *(
            (f"  {name}", "-" if value is None else f"{value:.1f} % off (median)")
            for name, value in (
                ("rates", errors.rates_pct),
                ("mean latencies", errors.means_pct),
                ("99th percentiles", errors.tails_pct),
            )
        ),
        *(("not told apart", text) for text in result.not_told_apart),
        ("run", str(run)),
        ("report", str(made.page)),
        ("verdict", result.verdict),
    ]
    print(pairs(lines))
