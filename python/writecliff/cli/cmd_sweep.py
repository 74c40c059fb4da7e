"""Run a test several times with one option varied."""

from __future__ import annotations

from typing import Any

from writecliff.cli.options import (
    NEW_SET,
    NO_TARGET,
    ListFlag,
    SetOptions,
    Settings,
    TargetOptions,
    check_jobs,
    new_path,
)
from writecliff.cli.output import show_list
from writecliff.cli.sets import new_folder, run_members, stored_folder
from writecliff.errors import ConfigError

GROUP = "tests and suites", 5


def sweep(
    name: str | None = None,
    *,
    target: TargetOptions = NO_TARGET,
    options: SetOptions = NEW_SET,
    test: str = "wsat",
    vary: str | None = None,
    values: str | None = None,
    set_: Settings = (),
    list_: ListFlag = False,
    json: bool = False,
) -> int:
    """Run a test several times with one option varied, each from a purge; compare on one page.

    Parameters
    ----------
    name
        A predefined sweep, see --list: active-range, over-provisioning, write-cache, ...
    test
        The test to run.
    vary
        Instead of a name: an option of the test, with its values, as OPTION=V1,V2,...
    values
        Other values for a predefined sweep, as V1,V2,...
    set_
        An option of the test that stays the same, as OPTION=VALUE; may be repeated.
    list_
        List the predefined sweeps.
    json
        Print {"kind", "about", "folder", "report", "runs": [...]}.
    """
    from writecliff.suite.sweep import PRESETS, plan_sweep

    if list_:
        presets = [{"name": name, **vars(preset)} for name, preset in PRESETS.items()]
        return show_list("sweeps", presets, as_json=json)
    check_jobs(options.jobs)
    if options.resume is not None:
        others = (name, vary, options.output, set_)
        folder = stored_folder(options.resume, "sweep", target, others)
        return run_members(folder, target, options, as_json=json)
    from writecliff.cli.test_commands import setting
    from writecliff.store.files import write_atomically

    option, chosen = _varied(test, name, vary, values)
    path = options.output or new_path("sweeps", option.replace("_", "-"), target.on)
    common = dict(setting(test, text) for text in set_)
    plan = plan_sweep(test, target.on or "", option, chosen, common, folder=path)
    folder = new_folder(path, "sweep", option, plan.members, target)
    for device, text in plan.devices.items():
        write_atomically(device, text.encode())
    return run_members(folder, target, options, as_json=json)


def _varied(
    test: str, name: str | None, vary: str | None, values: str | None
) -> tuple[str, list[Any]]:
    """The option and its values."""
    from writecliff.cli.test_commands import option_from_text
    from writecliff.suite.sweep import OVERPROVISION, PRESETS

    if (name is None) == (vary is None):
        raise ConfigError("nothing to vary", hint="give the name of a sweep, or --vary OPTION=...")
    if name is not None:
        if name not in PRESETS:
            raise ConfigError.unknown("sweep", name, PRESETS)
        option = PRESETS[name].option
        texts = PRESETS[name].values if values is None else tuple(values.split(","))
    else:
        option, equals, rest = (vary or "").partition("=")
        if not equals:
            example = "for example --vary write_cache=on,off"
            raise ConfigError(f"--vary '{vary}' is not OPTION=V1,V2,...", hint=example)
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
            f"invalid over-provisioning '{text}'", hint="give percentages, for example 7,14,28"
        )
    return value
