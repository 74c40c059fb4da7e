"""What suites and sweeps have in common on the command line: their directory, their runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.cli.output import emit_json
from writecliff.cli.runner import check_permission
from writecliff.cli.suite_view import view_for
from writecliff.cli.target_options import TargetOptions, opened
from writecliff.errors import ConfigError
from writecliff.units import parse_size

if TYPE_CHECKING:
    from writecliff.suite.folder import Kind, Member, SuiteFolder


def default_path(kind: Kind, about: str, target: TargetOptions) -> Path:
    """`suites/pts-e-sim-sata-tlc-120-20260131-142501`."""
    short = re.sub(r"[^A-Za-z0-9.]+", "-", target.on or "drive").strip("-")
    return Path(f"{kind}s") / f"{about}-{short}-{datetime.now():%Y%m%d-%H%M%S}"


def check_jobs(jobs: int | None) -> None:
    """Raises ConfigError, before anything is made on disk."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, not {jobs}")


def new_folder(
    kind: Kind,
    about: str,
    members: Mapping[str, Member],
    target: TargetOptions,
    output: Path | None,
) -> SuiteFolder:
    """Make its directory; a target that cannot be used is refused before."""
    from writecliff.suite.folder import SuiteFolder

    with opened(target, seed=1) as engine:
        check_permission(engine.identify(), target)
    path = output or default_path(kind, about, target)
    return SuiteFolder.create(path, kind, about, members)


def take_up(path: Path, kind: Kind, target: TargetOptions) -> SuiteFolder:
    """The folder to go on with. Raises ConfigError: another kind, another drive."""
    from writecliff.suite.folder import SuiteFolder

    folder = SuiteFolder.open(path)
    if folder.kind != kind:
        raise ConfigError(
            f"{path} is a {folder.kind}", hint=f"writecliff {folder.kind} --resume {path}"
        )
    if target.on is not None and target.on not in folder.targets:
        raise ConfigError(f"{path} is of {', '.join(folder.targets)}, not of {target.on}")
    return folder


def go_on(
    path: Path,
    kind: Kind,
    target: TargetOptions,
    others: Sequence[object],
    *,
    jobs: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """`--resume`: run what is left. Raises ConfigError: as `take_up`, or one of `others`, the
    options that a folder keeps from its start, is given."""
    if any(other is not None and other != () for other in others):
        raise ConfigError(
            f"a {kind} goes on as it was started",
            hint="with --resume, give only what opens the target",
        )
    folder = take_up(path, kind, target)
    return run_members(folder, target, jobs=jobs, as_json=as_json, quiet=quiet)


def run_members(
    folder: SuiteFolder, target: TargetOptions, *, jobs: int | None, as_json: bool, quiet: bool
) -> int:
    """Run what is left, write the page of all, and say where it is."""
    from writecliff.report import write_report
    from writecliff.report.suite_page import write_suite_page
    from writecliff.suite.runner import run_suite

    if target.on is None:
        target = replace(target, on=folder.targets[0])
    with view_for(list(folder.members), quiet=quiet) as view:
        view.note(f"{folder.kind} directory: {folder.path}")
        run_suite(folder, view.log, opening=_opening(target), finish=write_report, workers=jobs)
    page = write_suite_page(folder)
    if as_json:
        emit_json(_outcome(folder, page))
    else:
        print(page)
    return 0


def _opening(target: TargetOptions) -> dict[str, Any]:
    """For `open_target` in the processes; none of it means anything for a simulated drive."""
    if (target.on or "").startswith("sim:"):
        return {}
    return {
        "destroy_serial": target.destroy,
        "allow_signatures": target.wipe_signatures,
        "size_bytes": None if target.size is None else parse_size(target.size),
    }


def _outcome(folder: SuiteFolder, page: Path) -> dict[str, Any]:
    from writecliff.report import REPORT_NAME

    return {
        "kind": folder.kind,
        "about": folder.about,
        "folder": folder.path,
        "report": page,
        "runs": [
            {
                "name": name,
                "test": member.test,
                "status": folder.status(name),
                "run": folder.run_directory(name),
                "report": folder.run_directory(name) / REPORT_NAME,
            }
            for name, member in folder.members.items()
        ],
    }
