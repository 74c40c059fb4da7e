"""Run a workload (.fio or .toml) on a drive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from writecliff import units
from writecliff.api.outcome import Outcome, check_limits, read_baseline
from writecliff.api.plans import check_permission
from writecliff.cli.options import (
    NEW_RUN,
    NO_TARGET,
    RunOptions,
    TargetOptions,
    Whole,
    new_path,
    opened,
)
from writecliff.cli.output import JsonFlag, emit_json, factor_text, latency_text, pairs, table
from writecliff.cli.progress import ProgressView
from writecliff.cli.runner import run_to_resume, show_plan
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError
from writecliff.operation_names import FLUSH
from writecliff.workload.load import WorkloadFile, check_workload_path, load_workload

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.api import Run
    from writecliff.api.outcome import Baseline
    from writecliff.engines.base import Engine, StepResult
    from writecliff.procedures.model import Procedure
    from writecliff.report.loads import Load
    from writecliff.report.workload import WorkloadRunReport

GROUP = "workloads and traces", 1
Form = Literal["table", "json", "fio-json"]


def run(
    file: Annotated[Path | None, Parameter(name=("--file", "--workload"))] = None,
    *,
    target: TargetOptions = NO_TARGET,
    run: RunOptions = NEW_RUN,
    seed: Whole = None,
    precondition: str | None = None,
    scale: float | None = None,
    output_format: Form = "table",
    json: JsonFlag = False,
) -> int:
    """Run a fio job file or workload on a drive, and write a run directory with a report.

    A workload run can be resumed, reported and compared like a test run.

    Parameters
    ----------
    file
        A fio job file (.fio), a workload file (.toml), or the name of a ready-made workload
        (`writecliff profile list`).
    seed
        Seed for all random choices, including preconditioning; runs with different seeds are
        independent repetitions (default: the file's seed for the load, and 1 for the drive).
    precondition
        Initial state of the drive. fill: write the whole capacity once, sequentially, in 128 KiB
        blocks; sustained: fill the drive, then write twice the capacity at random in 4 KiB blocks;
        used:40%: like sustained, but on only 40 % of the capacity; act: write the capacity twice
        sequentially, as ACT does; none: keep the current state (default: the file's setting;
        without one, fill for a simulated drive if the load reads unwritten addresses, otherwise
        none). The states of simulated drives are cached. A real drive is purged first, and
        preconditioning takes hours.
    scale
        Scale a simulated drive and all times down by at most this factor, 1 to 1024, to save time
        (default: 1). The report shows the factor that was used.
    output_format
        Output format: table, json (a compact, stable format with times in ns), or fio-json (fio's
        own format).
    """
    form: Form = "json" if json else output_format
    if form == "fio-json" and run.baseline is not None:
        raise ConfigError("--baseline cannot be combined with --output-format fio-json",
                          hint="use --json")  # fmt: skip
    baseline = read_baseline(run.baseline)
    limits = check_limits(run.expect, run.junit)
    if run.resume is not None:
        given = precondition is not None or seed is not None or scale is not None
        return _resumed(file, target, run, form, baseline, given=given)
    if file is None:
        raise ConfigError(
            "missing argument FILE for `writecliff run`",
            hint="see `writecliff run --help`",
        )
    from writecliff.profiles import find_workload

    file = find_workload(file)
    check_workload_path(file)
    if form == "fio-json" and file.suffix != ".fio":
        raise ConfigError(
            f"--output-format fio-json applies only to fio job files, not to {file}",
            hint="use --json",
        )
    from writecliff.procedures.scaling import scaled_down
    from writecliff.procedures.workload import FOR_READS, WorkloadRun
    from writecliff.report.expectations import check_procedure

    drive_seed = 1 if seed is None else seed
    with opened(target, seed=drive_seed, look_only=run.dry_run) as engine:
        identity = engine.identify()
        load = load_workload(file, capacity_bytes=identity.capacity_bytes, seed=seed)
        procedure = WorkloadRun.of(load, identity, precondition=precondition, seed=drive_seed)
        if scale is not None:
            procedure = scaled_down(procedure, engine, scale)
        check_procedure(limits, procedure)
        screen = Screen(quiet=run.quiet)
        if scale is not None and procedure.scale != scale:
            screen.log(
                f"note: --scale {scale:g} is reduced to {procedure.scale or 1:g}, the largest "
                "factor that suits the drive and the load"
            )
        for note in load.notes:
            screen.log(f"note: {note}")
        if procedure.why == FOR_READS:
            screen.log(
                "note: filling the drive first, because reads of unwritten addresses would not "
                "access the flash (--precondition none skips this)"
            )
        if run.dry_run:
            return show_plan(procedure, engine, form == "json", writes=procedure.writes)
        if procedure.writes:
            check_permission(engine)
        directory = run.output or new_path("runs", file.stem, target.on, store=run.store)
        view = _View(screen)
        return _execute(procedure, engine, directory, view, form, run, baseline, load=load)


def _resumed(
    file: Path | None,
    target: TargetOptions,
    run: RunOptions,
    form: Form,
    baseline: Baseline | None,
    *,
    given: bool,
) -> int:
    """Resume the run in `run.resume`, using the workload file in the run's manifest."""
    if file is not None or given:
        given_text = "a workload" if file is not None else "--precondition, --seed or --scale"
        raise ConfigError(
            f"{given_text} cannot be combined with --resume",
            hint="omit the option: a resumed run keeps its original options",
        )
    if form == "fio-json":
        raise ConfigError("--output-format fio-json cannot be combined with --resume",
                          hint="use --json")  # fmt: skip
    from writecliff.procedures.workload import WorkloadRun
    from writecliff.report.expectations import check_procedure

    procedure, target, directory = run_to_resume("workload", target, run)
    check_procedure(check_limits(run.expect, run.junit), procedure)
    with opened(target, seed=procedure.seed, look_only=run.dry_run) as engine:
        writes = isinstance(procedure, WorkloadRun) and procedure.writes
        if run.dry_run:
            return show_plan(procedure, engine, form == "json", writes=writes)
        if writes:
            check_permission(engine)
        view = _View(Screen(quiet=run.quiet))
        return _execute(procedure, engine, directory, view, form, run, baseline, resume=True)


def _execute(
    procedure: Procedure,
    engine: Engine,
    directory: Path,
    view: _View,
    form: Form,
    run: RunOptions,
    baseline: Baseline | None,
    *,
    load: WorkloadFile | None = None,
    resume: bool = False,
) -> int:
    from writecliff.api import execute

    limits = check_limits(run.expect, run.junit)
    made = execute(procedure, engine, directory, view, resume=resume, expect=limits)
    if load is not None and load.fio is not None:
        from writecliff.engines.fiologs import write_logs

        write_logs(load.fio, view.results)
    if form == "fio-json":
        from writecliff.engines.fiojson import fio_json

        assert load is not None and load.fio is not None
        emit_json(fio_json(load.fio, view.results))
        return Outcome.of_run(made).end(run.junit)
    end = Outcome.of_run(made, baseline)
    (_show_json if form == "json" else _show)(made, end)
    return end.end(run.junit)


def _show_json(run: Run, end: Outcome) -> None:
    report = cast("WorkloadRunReport", run.report)
    manifest = report.data.manifest
    from writecliff.api.answers.tests import WorkloadOutcome

    emit_json(
        WorkloadOutcome(
            target=manifest.device.target,
            scale=manifest.device.scale,
            run=run.path,
            report=run.page,
            warnings=manifest.warnings,
            verdict=run.verdict,
            **report.results(),
            **end.answer(),
        )
    )


def _show(run: Run, end: Outcome) -> None:
    report = cast("WorkloadRunReport", run.report)
    titles = len(report.loads) > 1
    for load in report.loads:
        print((f"{load.name}\n" if titles else "") + result_table(load))
    scale = report.data.manifest.device.scale_text
    ends = [("scale", scale)] if scale else []
    ends += [
        ("run", str(report.data.run.path)),
        ("report", str(run.page)),
        ("verdict", report.answer()),
    ]
    print(f"\n{pairs([*ends, *end.lines()])}")


class _View(ProgressView):
    """Progress of a run, and the complete result of each load."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self.results: list[StepResult] = []
        self._noted: set[str] = set()

    def step_result(self, result: StepResult, *, sample: bool) -> None:
        if sample:
            self.results.append(result)
        for warning in result.warnings:
            if warning not in self._noted:
                self._noted.add(warning)
                self.note(warning)


QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999))


def result_table(load: Load) -> str:
    """Return one row per job and operation, and a second row of service times if open-loop."""
    header = ("job", "operation", "IOPS", "MB/s", "mean", *(name for name, _ in QUANTILES), "max")
    rows = []
    for totals in load.done:
        rates = ("-", "-")
        if totals.iops is not None and totals.bytes_per_s is not None:
            per_s = "-" if totals.operation == FLUSH else f"{totals.bytes_per_s / 1e6:,.1f}"
            rates = (units.number(totals.iops), per_s)
        rows.append((totals.job, totals.operation, *rates, *_latency_cells(totals.latency())))
        if totals.scheduled:
            cells = _latency_cells(totals.latency("service"))
            rows.append((totals.job, f"{totals.operation} (service)", "", "", *cells))
    ios, size = sum(row.ios for row in load.rows), sum(row.bytes for row in load.rows)
    rounds = ""
    if load.view is not None:
        rounds = f" (rounds {load.view.window[0]} to {load.view.window[-1]})"
    lines = [
        table(header, rows, "llrrrrrrrr"),
        "",
        f"{units.number(ios)} I/Os, {units.size(size)} in {units.duration(load.measured_ns)} "
        f"of device time{rounds}; WAF {factor_text(load.waf)}",
    ]
    if load.not_sustained:
        lines.append(f"{load.not_sustained}: latencies grow with the length of the run")
    watts, per_io_j = load.power
    if watts is not None:
        each = "" if per_io_j is None else f", {per_io_j * 1e6:,.1f} µJ per I/O"
        lines.append(f"{watts:.2f} W{each}")
    if spent := causes_table(load):
        lines += ["", spent]
    if load.data_placement is not None:
        lines += data_placement_lines(load.data_placement)
    return "\n".join(lines)


def _latency_cells(histogram: Histogram | None) -> list[str]:
    if histogram is None:
        return ["-"] * (len(QUANTILES) + 2)
    quantiles = [histogram.quantile(q).value_ns for _, q in QUANTILES]
    return [latency_text(v) for v in (histogram.mean_ns, *quantiles, histogram.max_ns)]


def causes_table(load: Load) -> str:
    """Return a table of latency causes for each operation and percentile band.

    Each row shows the fractions due to the largest causes. The table is empty if no causes were
    recorded.
    """
    rows = []
    for totals in load.done:
        for band in () if totals.causes is None else totals.causes.bands():
            named = ", ".join(f"{name} {share:.0f} %" for name, share in band.largest())
            rows.append(
                (totals.job, totals.operation, band.name, latency_text(band.latency_ns), named)
            )
    header = ("job", "operation", "band", "mean", "spent on")
    return table(header, rows, "lllrl") if rows else ""


def data_placement_lines(shown: Mapping[str, Any]) -> list[str]:
    """Return the data placement state after a step, in one or two lines of text."""
    lines = []
    if shown["interface"] == "nvme-fdp":
        sizes = (
            f"{name.upper()} {units.size(shown[f'{name}_bytes'])}"
            for name in ("hbmw", "mbmw", "mbe")
        )
        lines.append(f"FDP: {', '.join(sizes)}; {shown['limit']} placement handles")
        seen = [f"{name} {units.number(count)}" for name, count in shown["events"].items() if count]
        if seen:
            logged = len(shown["log"])
            log = f"; {logged} of these are in the log (shown by --json)" if logged else ""
            lines.append(f"events: {', '.join(seen)}{log}")
    elif shown["open_streams"] or shown["overflow_bytes"]:
        named = ", ".join(map(str, shown["open_streams"])) or "none"
        lines.append(f"streams open: {named} (of {shown['limit']} beside the default one)")
    if released := shown["streams_released"]:
        lines.append(f"streams released by the drive to make room: {units.number(released)}")
    return lines
