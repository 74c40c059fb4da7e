"""Run a test or load once for each of several settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from writecliff.api.outcome import check_limits
from writecliff.api.sets import start_sweep, sweep_base
from writecliff.cli.options import (
    NEW_SET,
    NO_TARGET,
    ListFlag,
    SetOptions,
    Settings,
    TargetOptions,
    Whole,
    check_jobs,
    check_scheduler,
    target_of,
)
from writecliff.cli.output import JsonFlag, show_list
from writecliff.cli.sets import run_members, stored_folder
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.suite.factors import Factor

GROUP = "tests and suites", 5
Factors = Annotated[tuple[str, ...], Parameter(name="--vary")]


def sweep(
    name: str | None = None,
    *,
    target: TargetOptions = NO_TARGET,
    options: SetOptions = NEW_SET,
    test: str | None = None,
    workload: Path | None = None,
    vary: Factors = (),
    values: str | None = None,
    sample: Whole = None,
    method: Literal["random", "latin-hypercube"] = "latin-hypercube",
    sample_seed: int = 1,
    set_: Settings = (),
    list_: ListFlag = False,
    json: JsonFlag = False,
) -> int:
    """Run a test or load once for each of several settings, and compare the runs.

    The drive is purged before each run.

    Parameters
    ----------
    name
        Predefined sweep, such as active-range, over-provisioning or write-cache (see --list).
    test
        The test to run (default: wsat).
    workload
        Load to run instead of a test: the name of a ready-made workload, a workload file or a fio
        job file.
    vary
        Settings to vary, instead of a predefined sweep: KEY=V1,V2,... or, with --sample,
        KEY=LOW..HIGH or KEY=LOW..HIGH:log. KEY is a test option, overprovision_pct, a key of the
        simulated drive's file (device.ftl.gc), or a key of a load or of its job (load.queue_depth,
        load.JOB.queue_depth). If --vary is repeated, every combination is run.
    values
        Values to use instead of those of the predefined sweep, as V1,V2,...
    sample
        Number of randomly chosen combinations to run instead of all combinations.
    method
        Sampling method: random or latin-hypercube (which covers each range evenly).
    sample_seed
        Seed for sampling the combinations.
    set_
        Set a fixed option of the test, as OPTION=VALUE; may be repeated.
    list_
        List the predefined sweeps.
    """
    from writecliff.suite.sweep import PRESETS

    if list_:
        from writecliff.api.answers.tests import SweepEntry, SweepList

        presets = [SweepEntry(name, **vars(preset)) for name, preset in PRESETS.items()]
        return show_list(SweepList(presets), as_json=json)
    check_jobs(options.jobs)
    check_scheduler(options.scheduler, [target.on])
    check_limits(options.expect, options.junit)
    if options.resume is not None:
        others = (name, vary, test, workload, sample, options.output, set_)
        folder = stored_folder(options.resume, "sweep", target, others)
        return run_members(folder, target, options, as_json=json)
    from writecliff.suite.factors import grid
    from writecliff.suite.factors import sample as drawn

    factors = _factors(name, vary, values)
    test_name, common = _base(test, workload, set_, target)
    texts = grid(factors) if sample is None else drawn(factors, sample, method, sample_seed)
    keys = [_key(factor.key) for factor in factors]
    _check_keys(test_name, keys)
    cells = [
        {key: _value(test_name, key, text) for key, text in zip(keys, row, strict=True)}
        for row in texts
    ]
    folder = start_sweep(
        test_name, cells, common, target.checked(), output=options.output, store=options.store,
        opening=target.opening(), expect=options.expect,
    )  # fmt: skip
    return run_members(folder, target, options, as_json=json)


def _factors(name: str | None, vary: Sequence[str], values: str | None) -> list[Factor]:
    """Return the varied settings, and reject duplicate keys."""
    from writecliff.suite.factors import Factor, factor_of
    from writecliff.suite.sweep import PRESETS

    if (name is None) == (not vary):
        raise ConfigError(
            "neither a predefined sweep nor --vary was specified",
            hint="specify the name of a predefined sweep, or --vary KEY=...",
        )
    if name is None:
        factors = [factor_of(text) for text in vary]
        keys = [_key(factor.key) for factor in factors]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise ConfigError(
                f"--vary was given twice for {twice}",
                hint="list all values of the key in a single --vary",
            )
        return factors
    if name not in PRESETS:
        raise ConfigError.unknown("sweep", name, PRESETS)
    words = PRESETS[name].values if values is None else tuple(values.split(","))
    stripped = (word.strip() for word in words)
    return [Factor(PRESETS[name].option, tuple(word for word in stripped if word))]


def _base(
    test: str | None, workload: Path | None, set_: Sequence[str], target: TargetOptions
) -> tuple[str, dict[str, Any]]:
    """Return the test to run, and the test's fixed options."""
    from writecliff.cli.test_commands import setting

    if workload is not None and (test is not None or set_):
        raise ConfigError(
            "--workload cannot be combined with --test or --set",
            hint="omit --workload, or omit --test and --set",
        )
    options = dict(setting(test or "wsat", text) for text in set_)
    return sweep_base(test, workload, target_of(target.on), options, target.opening())


def _key(key: str) -> str:
    """Return a key with underscores, because users may write options with dashes."""
    return key if "." in key else key.replace("-", "_")


def _check_keys(test: str, keys: Sequence[str]) -> None:
    """Check the names of settings. Raises ConfigError for an unknown name."""
    from writecliff.cli.test_commands import option_names
    from writecliff.procedures.workload import WorkloadRun
    from writecliff.suite.sweep import LOAD, OVERPROVISION, is_of_drive
    from writecliff.workload.stored import settable_fields

    if test == WorkloadRun.name:
        names = [f"{LOAD}{name}" for name in settable_fields()]
    else:
        names = option_names(test)
    for key in keys:
        if not (is_of_drive(key) or key.startswith(LOAD) or key in names):
            raise ConfigError.unknown("setting", key, [OVERPROVISION, *names], where="--vary")


def _value(test: str, key: str, text: str) -> Any:
    from writecliff.cli.test_commands import option_from_text
    from writecliff.suite.sweep import LOAD, OVERPROVISION, is_of_drive

    if key == OVERPROVISION:
        return _percent(text)
    if is_of_drive(key) or key.startswith(LOAD):
        return text
    return option_from_text(test, key, text)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value <= 1000:
        raise ConfigError(
            f"invalid over-provisioning '{text}'", hint="use percentages, for example 7,14,28"
        )
    return value
