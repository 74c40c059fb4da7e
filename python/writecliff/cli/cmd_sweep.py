"""Run a test several times with one option varied."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from writecliff.cli.output import emit_json, table
from writecliff.cli.sets import check_jobs, default_path, go_on, new_folder, run_members
from writecliff.cli.target_options import NO_TARGET, TargetOptions
from writecliff.cli.values import Whole
from writecliff.errors import ConfigError

GROUP = "tests and suites", 5


def sweep(
    name: str | None = None,
    *,
    target: TargetOptions = NO_TARGET,
    test: str = "wsat",
    vary: str | None = None,
    values: str | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    output: Path | None = None,
    resume: Path | None = None,
    jobs: Whole = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Run one test several times with one thing varied, each from a purge, and show all on a page.

    Parameters
    ----------
    name
        A sweep with a name, see --list: active-range, over-provisioning, write-cache, ...
    test
        The test that is run (default: wsat).
    vary
        Instead of a name: an option of the test, with its values, as OPTION=V1,V2,...
    values
        Other values for a sweep with a name, as V1,V2,...
    set_
        An option of the test that stays the same, as OPTION=VALUE; may be given again.
    output
        Directory of the sweep; it must not exist or be empty (default: sweeps/NAME-TARGET-TIME).
    resume
        Go on with the unfinished sweep in this directory.
    jobs
        Runs at a time, on a simulated drive (default: one a core, as memory allows).
    list_
        List the sweeps with a name.
    json
        Print {"kind", "about", "folder", "report", "runs": [...]}.
    quiet
        No progress on stderr.
    """
    if list_:
        return _show_list(json)
    check_jobs(jobs)
    if resume is not None:
        others = (name, vary, output, set_)
        return go_on(resume, "sweep", target, others, jobs=jobs, as_json=json, quiet=quiet)
    from writecliff.store.files import write_atomically
    from writecliff.suite.sweep import plan_sweep

    option, chosen = _varied(test, name, vary, values)
    path = output or default_path("sweep", option.replace("_", "-"), target)
    common = dict(_setting(test, text) for text in set_)
    plan = plan_sweep(test, target.on or "", option, chosen, common, folder=path)
    folder = new_folder("sweep", option, plan.members, target, path)
    for device, text in plan.devices.items():
        write_atomically(device, text.encode())
    return run_members(folder, target, jobs=jobs, as_json=json, quiet=quiet)


def _varied(
    test: str, name: str | None, vary: str | None, values: str | None
) -> tuple[str, list[Any]]:
    """The option and its values."""
    from writecliff.cli.test_commands import option_from_text
    from writecliff.suite.sweep import OVERPROVISION, PRESETS

    if (name is None) == (vary is None):
        raise ConfigError("what is varied?", hint="give the name of a sweep, or --vary OPTION=...")
    if name is not None:
        if name not in PRESETS:
            raise ConfigError.unknown("sweep", name, PRESETS)
        option = PRESETS[name].option
        texts = PRESETS[name].values if values is None else tuple(values.split(","))
    else:
        option, equals, rest = (vary or "").partition("=")
        if not equals:
            raise ConfigError(f"--vary '{vary}' is not OPTION=V1,V2,...", hint="write_cache=on,off")
        option, texts = option.strip().replace("-", "_"), tuple(rest.split(","))
    words = [text.strip() for text in texts if text.strip()]
    if option == OVERPROVISION:
        return option, [_percent(word) for word in words]
    return option, [option_from_text(test, option, word) for word in words]


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value <= 1000:
        raise ConfigError(
            f"'{text}' is no over-provisioning in percent", hint="for example 7,14,28"
        )
    return value


def _setting(test: str, text: str) -> tuple[str, Any]:
    from writecliff.cli.test_commands import option_from_text

    option, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set '{text}' is not OPTION=VALUE", hint="drive_fills=2")
    option = option.strip().replace("-", "_")
    return option, option_from_text(test, option, value)


def _show_list(as_json: bool) -> int:
    from writecliff.suite.sweep import PRESETS

    if as_json:
        emit_json({"sweeps": [{"name": name, **vars(preset)} for name, preset in PRESETS.items()]})
        return 0
    rows = [(name, ",".join(p.values), p.summary) for name, p in PRESETS.items()]
    print(table(("sweep", "values", "what is varied"), rows))
    return 0
