"""`writecliff run FILE`: one workload, once, on a simulated or real drive."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from writecliff.cli.output import count_text, emit_json, factor_text, size_text, talk
from writecliff.cli.results import result_mapping, result_table
from writecliff.cli.target_options import NO_TARGET, TargetOptions, opened
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.engines.base import Progress
    from writecliff.workload.model import Workload

_FLAG = Parameter(negative=())


def run(
    file: Path,
    *,
    target: TargetOptions = NO_TARGET,
    seed: int | None = None,
    output_format: Literal["table", "json", "fio-json"] = "table",
    json: Annotated[bool, _FLAG] = False,
    quiet: Annotated[bool, _FLAG] = False,
) -> int:
    """Run one workload on a drive and show what it measured.

    Parameters
    ----------
    file
        A fio job file (.fio) or a workload file (.toml).
    seed
        Fixes every random choice (default: that of the file, else 1).
    output_format
        table for people, json (stable, small; times in ns), or fio-json as fio prints it.
    json
        Same as --output-format json.
    quiet
        No progress on stderr.
    """
    workload = read_workload(file, seed)
    form = "json" if json else output_format
    with opened(target, seed=workload.seed) as engine:
        capacity = engine.identify().capacity_bytes
        _check_range(workload, capacity, file)
        ticker = _Ticker(live=not quiet and sys.stderr.isatty())
        try:
            result = engine.run(workload, ticker)
        finally:
            ticker.done()
    for warning in result.warnings:
        talk(f"warning: {warning}")
    if form == "json":
        emit_json(result_mapping(workload, result))
    elif form == "fio-json":
        from writecliff.workload.fiojson import fio_json

        sys.stdout.write(dumps(fio_json(workload, result), indent=2) + "\n")
    else:
        print(result_table(result))
    return 0


def read_workload(file: Path, seed: int | None) -> Workload:
    """The workload of a .fio or .toml file. Raises ConfigError."""
    if file.suffix not in (".fio", ".toml"):
        raise ConfigError(
            f"{file} is neither a fio job file nor a workload file",
            hint="name it .fio or .toml after what it holds",
        )
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {(error.strerror or '').lower()}") from None
    workload = _from_fio(text, file) if file.suffix == ".fio" else _from_toml(text, file)
    return workload if seed is None else replace(workload, seed=seed)


def _from_toml(text: str, file: Path) -> Workload:
    from writecliff import _native
    from writecliff.workload.model import workload_from_mapping

    try:
        return workload_from_mapping(loads(_native.parse_workload_toml(text, str(file))))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _check_range(workload: Workload, capacity_bytes: int, file: Path) -> None:
    for job in workload.jobs:
        end = job.offset_bytes + (job.range_bytes or 0)
        if end > capacity_bytes or job.offset_bytes >= capacity_bytes:
            raise ConfigError(
                f"{file}: job '{job.name}' reaches to {size_text(end)}, "
                f"the drive has {size_text(capacity_bytes)}"
            )


class _Ticker:
    """Live figures on one line of a terminal, about four times a second; nothing in a log."""

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._last_s = 0.0

    def __call__(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if not self._live or now_s - self._last_s < 0.25:
            return
        self._last_s = now_s
        share = "" if progress.fraction is None else f"{100 * progress.fraction:3.0f} %  "
        waf = "" if progress.waf is None else f"  WAF {factor_text(progress.waf)}"
        sys.stderr.write(f"\r{share}{count_text(progress.iops)} IOPS{waf}\x1b[K")
        sys.stderr.flush()

    def done(self) -> None:
        if self._live and self._last_s:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
