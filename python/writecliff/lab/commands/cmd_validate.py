"""Check the simulator against theory, and twins against their originals."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from writecliff import units
from writecliff.cli.options import OutputPath, Scheduler, Whole, on_scheduler
from writecliff.cli.output import JsonFlag, emit_json, log, table
from writecliff.cli.progress import work_shown
from writecliff.cli.screen import Screen
from writecliff.lab.commands.answers import (
    ValidateIntervals,
    ValidatePowerCuts,
    ValidateQuick,
    ValidateScales,
    ValidateTwin,
)
from writecliff.parallel import watched

if TYPE_CHECKING:
    from writecliff.lab.validate.intervals import IntervalsReport
    from writecliff.lab.validate.power_cuts import PowerCutsReport
    from writecliff.lab.validate.quick import QuickRow
    from writecliff.lab.validate.stream_rows import Crossover, StreamsReport
    from writecliff.lab.validate.theory import TheoryCase
    from writecliff.twin.validation import TwinCase

GROUP = "lab", 1
app = App(name="validate", help=__doc__)


@app.command
def waf(*, scheduler: Scheduler = None, json: JsonFlag = False) -> int:
    """Compare simulated write amplification with theory, and fail if an error is too large.

    Parameters
    ----------
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    """
    from writecliff.lab.validate.theory import waf_cases

    with on_scheduler(scheduler), watched(work_shown(Screen())):
        cases = waf_cases()
    return _theory("waf", cases, as_json=json)


@app.command
def reduction(*, scheduler: Scheduler = None, json: JsonFlag = False) -> int:
    """Compare simulated data reduction with theory, and fail if an error is too large.

    Parameters
    ----------
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    """
    from writecliff.lab.validate.theory import reduction_cases

    with on_scheduler(scheduler), watched(work_shown(Screen())):
        cases = reduction_cases()
    return _theory("reduction", cases, as_json=json)


_HEADERS = {"overprovision": "OP", "pages_per_block": "pages/block", "data": "data size"}


def _theory(name: str, cases: list[TheoryCase], *, as_json: bool) -> int:
    """Print the cases and return the exit code, which is 1 if an error is too large."""
    from writecliff.lab.validate.theory import TOLERANCE_PCT

    ok = bool(cases) and all(case.ok for case in cases)
    if as_json:
        document = {"schema": f"writecliff/validate-{name}/1", "tolerance_pct": TOLERANCE_PCT}
        emit_json(document | {"ok": ok, "rows": [case.mapping() for case in cases]})
    else:
        names = [_HEADERS.get(key, key) for key in cases[0].conditions]
        rows = [
            (
                *(
                    f"{100 * value:g} %" if key == "overprovision" else str(value)
                    for key, value in case.conditions.items()
                ),
                f"{case.waf_measured:.4f}",
                f"{case.waf_theory:.4f}",
                f"{case.error_pct:+.3f} %",
                "ok" if case.ok else "OFF",
            )
            for case in cases
        ]
        print(table((*names, "measured", "theory", "error", ""), rows))
    if not ok:
        log(f"an error exceeds {TOLERANCE_PCT:g} % (with streams: 0 %)")
    return 0 if ok else 1


@app.command
def streams(*, scheduler: Scheduler = None, json: JsonFlag = False) -> int:
    """Compare the gain from streams with theory, recorded runs and published results.

    The exit code is 1 if a row is outside its tolerance: 2 % for the drive that tunes its own spare
    space, 0 % for sequential writers with streams, and 6 % for recorded runs of another emulator
    (15 % at 3 % over-provisioning). Two results are shown without a tolerance: the figures of that
    emulator's paper, which omits its writers' rates, and the over-provisioning above which
    persistent isolation pays off.

    Parameters
    ----------
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    """
    from writecliff.lab.validate.streams import run

    with on_scheduler(scheduler), watched(work_shown(Screen())):
        report = run()
    if json:
        emit_json(
            {
                "schema": "writecliff/validate-streams/1",
                "ok": report.ok,
                "rows": [
                    asdict(row) | {"error_pct": row.error_pct, "ok": row.ok} for row in report.rows
                ],
                "crossovers": [
                    asdict(crossover) | {"reproduced": crossover.reproduced}
                    for crossover in report.crossovers
                ],
            }
        )
    else:
        print(_streams_table(report))
    if not report.ok:
        log("a row's error exceeds its tolerance")
    return 0 if report.ok else 1


def _streams_table(report: StreamsReport) -> str:
    header = (
        "load", "treatment", "unit", "OP", "sequential", "measured", "reference", "error", "",
        "settled", "source of the reference",
    )  # fmt: skip
    rows = [
        (
            row.load,
            row.treatment,
            f"{row.unit_mib} MiB" if row.unit_mib else "",
            f"{100 * row.overprovision:g} %",
            _optional("{:.1f} %", row.sequential_share, 100),
            f"{row.waf_measured:.3f}",
            _optional("{:.3f}", row.reference),
            _optional("{:+.2f} %", row.error_pct),
            "" if row.tolerance_pct is None else "ok" if row.ok else "OFF",
            _optional("{:.2f}", row.waf_settled),
            row.source if row.reference is not None else "",
        )
        for row in report.rows
    ]
    return "\n".join([table(header, rows), "", *map(_crossover_line, report.crossovers)])


def _optional(form: str, value: float | None, factor: float = 1) -> str:
    return "-" if value is None else form.format(factor * value)


def _crossover_line(crossover: Crossover) -> str:
    low, high = crossover.measured
    published_low, published_high = crossover.published
    where = (
        f"below {100 * (high or 0):g} %"
        if low is None
        else f"above {100 * low:g} %"
        if high is None
        else f"between {100 * low:g} and {100 * high:g} %"
    )
    initially, persistently = (f"{100 * share:.1f} %" for share in crossover.sequential_shares)
    rates = f"{initially} of the bytes" + (
        "" if initially == persistently else f" ({persistently} with persistent isolation)"
    )
    return (
        f"units of {crossover.unit_mib} MiB, {'settled' if crossover.settled else 'from empty'}, "
        f"sequential writer {rates}: persistent isolation pays from an over-provisioning {where} "
        f"(published: between {100 * published_low:g} and {100 * published_high:g} %): "
        + ("reproduced" if crossover.reproduced else "not reproduced")
    )


@app.command
def quick(
    *,
    on: str = "sim:sata-tlc-120",
    tests: str | None = None,
    output: OutputPath = None,
    scheduler: Scheduler = None,
    json: JsonFlag = False,
) -> int:
    """Compare a quick suite with a full-length suite, and fail if an error is too large.

    Both PTS-E suites run on a simulated drive, which takes minutes of CPU time for small drives and
    hours for large drives. Headline figures have a tolerance of 10 %. The quick suite does not
    report high percentiles, because a scaled-down drive does not reproduce them. Response times at
    operating points are compared if both suites chose the same load.

    Parameters
    ----------
    on
        Simulated drive: sim:NAME or sim:PATH.toml.
    tests
        A comma-separated list of tests (default: all): iops,tp,lat,wsat,hir,xsr,ecw,dirth.
    output
        Folder for both suites, "full" and "quick". Existing suites in the folder are reused.
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    """
    from tempfile import TemporaryDirectory

    from writecliff.cli.options import check_scheduler, test_names
    from writecliff.cli.screen import Screen
    from writecliff.cli.sets import SetView
    from writecliff.cluster import connected
    from writecliff.lab.validate.quick import TOLERANCE_PCT, compare, suite_of

    check_scheduler(scheduler, [on])
    chosen = test_names(tests)
    with TemporaryDirectory() as scratch, connected(scheduler) as cluster:
        folder = Path(scratch) if output is None else output
        folder.mkdir(parents=True, exist_ok=True)
        suites = [
            suite_of(
                on,
                folder / name,
                quick=name == "quick",
                tests=chosen,
                log=SetView(Screen(), ()).log,
                cluster=cluster,
            )
            for name in ("full", "quick")
        ]
        rows = compare(*suites)
    ok = bool(rows) and all(row.ok for row in rows)
    if json:
        mappings = [row.mapping() for row in rows]
        emit_json(ValidateQuick.of({"tolerance_pct": TOLERANCE_PCT, "ok": ok, "rows": mappings}))
    else:
        print(_quick_table(rows))
    if not ok:
        log(f"a figure's error exceeds {TOLERANCE_PCT:g} %")
    return 0 if ok else 1


def _judged(row: QuickRow) -> str:
    if not row.ok:
        return "OFF"
    if not row.same_load:
        return f"at {row.quick_at}, not {row.at}"
    return "not given" if row.quick is None else "ok"


def _quick_table(rows: list[QuickRow]) -> str:
    header = ("test", "figure", "scale", "full length", "quick", "unit", "error", "")
    return table(
        header,
        [
            (
                row.test,
                row.label,
                f"1/{row.scale:g}",
                units.significant(row.full, 4),
                units.significant(row.quick, 4),
                row.unit,
                "-" if row.error_pct is None else f"{row.error_pct:+.1f} %",
                _judged(row),
            )
            for row in rows
        ],
        "llrrrlrl",
    )


@app.command
def scales(
    *,
    drives: tuple[str, ...] = (),
    workload: tuple[str, ...] = (),
    output: OutputPath = None,
    toml: bool = False,
    json: JsonFlag = False,
) -> int:
    """Compare scaled-down drives with whole drives, at the levels of `writecliff choose`.

    The command prints the largest ratio for each kind of figure, by drive class and level. `choose`
    uses these errors to decide which drives to simulate at finer levels.

    Parameters
    ----------
    drives
        Drive of up to 2 TB; may be repeated (default: fifteen drives from all classes).
    workload
        Workload from `writecliff profile list`, or a workload file; may be repeated (default:
        oltp-4k and dbms-ab).
    output
        Parent directory of the runs. Complete runs in the directory are reused (default: a
        temporary directory).
    toml
        Print the contents of `choice/scale_errors.toml`.
    """
    from tempfile import TemporaryDirectory

    from writecliff.cli.sets import SetView
    from writecliff.lab.validate import scales

    with TemporaryDirectory() as scratch:
        folder = Path(scratch) if output is None else output
        folder.mkdir(parents=True, exist_ok=True)
        errors = list(
            scales.run(
                folder,
                drives=drives or scales.DRIVES,
                loads=workload or scales.LOADS,
                log=SetView(Screen(), ()).log,
            )
        )
    if json:
        rows = [asdict(error) | {"factor": error.factor} for error in errors]
        emit_json(ValidateScales.of({"rows": rows}))
    elif toml:
        print(scales.toml_of(errors), end="")
    else:
        header = ("class", "level", *scales.SHOWN)
        print(table(header, list(scales.rows_of(errors)), "ll" + "r" * len(scales.SHOWN)))
    return 0


@app.command
def twin(
    *,
    drive: str | None = None,
    output: OutputPath = None,
    quiet: bool = False,
    json: JsonFlag = False,
) -> int:
    """Create twins of drives with hidden parameters, and fail if errors exceed the goals.

    The command measures each hidden drive like `writecliff twin`, and compares drive and twin under
    30 loads that were not used to create the twin. The median errors must be within 5 % for rates
    and 10 % for 99th percentiles.

    Parameters
    ----------
    drive
        Hidden drive to use, instead of all hidden drives: sata, nvme, or drawn-NUMBER, whose
        parameters are random with this seed.
    output
        Folder for the measurements and twins, which must be empty or not exist.
    quiet
        Suppress progress output on stderr.
    """
    from tempfile import TemporaryDirectory

    from writecliff.cli.screen import Screen
    from writecliff.errors import ConfigError
    from writecliff.twin.hidden import USUAL, hidden_drive
    from writecliff.twin.validation import RATES_PCT, TAILS_PCT, twin_case

    names = [drive] if drive is not None else list(USUAL)
    for name in names:
        hidden_drive(name)
    if output is not None and output.exists() and any(output.iterdir()):
        raise ConfigError(f"{output} is not empty", hint="specify another folder")
    screen = Screen(quiet=quiet)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) if output is None else output
        folder.mkdir(parents=True, exist_ok=True)
        cases = [twin_case(name, folder, screen.log) for name in names]
    ok = all(case.ok for case in cases)
    if json:
        goals = {"rates_pct": RATES_PCT, "tails_pct": TAILS_PCT}
        mappings = [case.mapping() for case in cases]
        emit_json(ValidateTwin.of({"ok": ok, "goals": goals, "drives": mappings}))
    else:
        for case in cases:
            print(_twin_table(case), end="\n\n")
    if not ok:
        log(f"a median error exceeds {RATES_PCT:g} % (rates) or {TAILS_PCT:g} % (99th percentiles)")
    return 0 if ok else 1


def _twin_table(case: TwinCase) -> str:
    rows = [
        (
            load.load,
            units.number(load.iops),
            units.number(load.iops_twin),
            f"{load.rate_error_pct:+.1f} %",
            _optional("{:.3f} ms", load.p99_ms),
            _optional("{:.3f} ms", load.p99_twin_ms),
            _optional("{:+.1f} %", load.p99_error_pct),
        )
        for load in case.loads
    ]
    header = ("load", "IOPS", "twin", "error", "99 %", "twin", "error")
    end = (
        f"{case.drive}: median errors over {len(case.loads)} other loads: rates "
        f"{case.rates_pct:.1f} %, 99th percentiles {case.tails_pct:.1f} %"
    )
    return "\n".join([table(header, rows, "lrrrrrr"), "", end])


@app.command(name="power-cuts")
def power_cuts(
    *,
    cuts: int = 10_000,
    seed: int = 1,
    drive: int | None = None,
    jobs: Whole = None,
    scheduler: Scheduler = None,
    quiet: bool = False,
    json: JsonFlag = False,
) -> int:
    """Cut the power of small drives at random moments, and fail if a guarantee is violated.

    The drives cover all combinations of garbage collection, streams and FDP, SLC cache, write cache
    and power-loss protection; other properties are random. After each cut, the mapping is compared
    with the flash contents, and the data with the guarantees to the host: data that were flushed,
    or written without a volatile cache, must be present. The FTL's invariants must hold. 10,000
    cuts take seconds of CPU time; a million cuts take minutes.

    Parameters
    ----------
    cuts
        Total number of cuts, 20 per drive.
    seed
        Seed of the drives and their loads.
    drive
        Test only the drive with this number, to reproduce a failure.
    jobs
        Number of drives to simulate in parallel (default: one per core).
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    quiet
        Suppress progress output on stderr.
    """
    from writecliff.cli.screen import Screen
    from writecliff.lab.validate import power_cuts as check

    screen = Screen(quiet=quiet)
    with on_scheduler(scheduler, workers=jobs):
        report = check.run(cuts, seed, drive=drive, jobs=jobs, log=screen.log)
    if json:
        rows = [asdict(row) for row in report.rows]
        document = {"ok": report.failure is None, "seed": seed, "rows": rows}
        document |= {"not_covered": list(check.NOT_COVERED), "failure": report.failure}
        emit_json(ValidatePowerCuts.of(document))
    else:
        print(_power_cuts_table(report))
        kinds = ", ".join(check.NOT_COVERED)
        print(f"\nNot covered (refused without power-loss protection): {kinds}.")
    if (failure := report.failure) is None:
        return 0
    repeat = f"writecliff lab validate power-cuts --seed {seed} --drive {failure['drive']}"
    log(f"drive {failure['drive']}: {failure['violation']}\nrepeat it with: {repeat}")
    return 1


def _power_cuts_table(report: PowerCutsReport) -> str:
    header = (
        "extra", "cache", "PLP", "data placement", "cuts", "commands", "lost, not flushed",
        "durable, unconfirmed", "torn units", "saved by capacitors", "longest rebuild",
    )  # fmt: skip
    rows = [
        (
            row.extra,
            "on" if row.write_cache else "off",
            "yes" if row.power_loss_protection else "no",
            row.data_placement,
            f"{row.cuts:,}",
            f"{row.commands:,}",
            f"{row.lost_slots:,}",
            f"{row.unconfirmed_slots:,}",
            f"{row.torn_units:,}",
            f"{row.saved_slots:,}",
            f"{row.rebuild_ns_max / 1e6:.1f} ms",
        )
        for row in report.rows
    ]
    return table(header, rows, "llllrrrrrrr")


@app.command
def intervals(
    *,
    seeds: int = 40,
    first_seed: int = 1,
    seconds: float | None = None,
    load: str | None = None,
    quiet: bool = False,
    json: JsonFlag = False,
) -> int:
    """Check 95 % intervals against repeated runs, and fail if too few contain the true value.

    A small drive runs three loads repeatedly, each time with a different seed. The first table
    counts the intervals that contain the mean of all runs, and those that contain the fraction of
    I/Os slower than a percentile. The second table counts the pairs of equal drives for which a
    comparison reports a winner (at most 5 %), and the slower drives that a comparison detects. 200
    seeds take half an hour of CPU time.

    Parameters
    ----------
    seeds
        Number of repetitions of each load, and of pairs of equal drives.
    first_seed
        Seed of the first repetition. Seeds 1 to 300 were used to develop the method.
    seconds
        Device time of each run, in seconds (default: 8 overwrites of the drive, or 90 s for random
        writes).
    load
        Load to run, instead of all loads: "random writes", "70/30 mix" or "reads beside writes".
    quiet
        Suppress progress output on stderr.
    """
    from writecliff.cli.screen import Screen
    from writecliff.errors import ConfigError
    from writecliff.lab.validate import intervals as check

    if load is not None and load not in check.LOADS:
        raise ConfigError.unknown("load", load, check.LOADS)
    if seeds < 2 or first_seed < 0 or (seconds is not None and seconds <= 0):
        raise ConfigError("--seeds must be at least 2, --first-seed at least 0, --seconds above 0")
    report = check.run(seeds, seconds, first_seed=first_seed, log=Screen(quiet=quiet).log,
                       loads=[load] if load else tuple(check.LOADS))  # fmt: skip
    if json:
        emit_json(ValidateIntervals.of(report.mapping()))
    else:
        print(intervals_tables(report))
    for problem in report.problems:
        log(problem)
    return 0 if report.ok else 1


# -- writecliff lab validate intervals tables ------------------------------------------------------


def intervals_tables(report: IntervalsReport) -> str:
    """Format the tables of coverage and of pairs."""
    coverage = [
        (
            row.load,
            row.figure,
            units.significant(row.truth, 4),
            f"{row.intervals} of {row.runs}",
            _percent("{:.1f} %", row.covered_pct),
            _percent("{:.1f} %", row.shares_covered_pct),
            _percent("{:.2g} %", row.half_width_pct),
        )
        for row in report.coverage
    ]
    head = ("load", "figure", "truth (IOPS, ns)", "intervals", "with truth", "by share",
            "half width")  # fmt: skip
    pairs = [
        (
            row.load,
            str(row.pairs),
            f"{row.false_winners} ({row.false_pct:.1f} %)",
            _percent("{:.1f} %", row.slower_pct),
            f"{row.slower_found} of {row.slower_pairs}",
        )
        for row in report.pairs
    ]
    pairs_head = ("load", "equal pairs", "false winners", "slower by", "found")
    return "\n".join([table(head, coverage, "llrrrrr"), "", table(pairs_head, pairs, "lrrrr")])


def _percent(form: str, value: float | None) -> str:
    return units.UNKNOWN if value is None else form.format(value)
