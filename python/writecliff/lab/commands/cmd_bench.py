"""Measure the speed of writecliff itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from cyclopts import App

from writecliff.cli.options import NO_TARGET, TargetOptions, Whole, opened
from writecliff.cli.output import JsonFlag, emit_json, log, table
from writecliff.lab.commands.answers import (
    BenchChoose,
    BenchFit,
    BenchStore,
    BenchSweep,
    BenchTrace,
)

GROUP = "lab", 8
app = App(name="bench", help=__doc__)


@app.command
def sim(
    *,
    case: str | None = None,
    device: str = "nvme-tlc-960",
    scale: float = 1.0,
    json: JsonFlag = False,
) -> int:
    """Measure the CPU time of fixed simulations. The whole suite takes several minutes.

    Parameters
    ----------
    case
        A comma-separated list of cases to run (default: all).
    device
        Simulated drive. The cases growth-60 and growth-3840 use smaller and larger versions of the
        drive.
    scale
        Factor by which to lengthen the measurement, but not the preconditioning.
    """
    from writecliff.lab.bench.sim import chosen, run

    rows = []
    for row in run(chosen(case), device=device, scale=scale):
        rows.append(row)
        log(f"{row['case']}: {row['cpu_s']:.1f} s of CPU time")
    if json:
        document = {"schema": "writecliff/bench-sim/1", "device": device, "scale": scale}
        emit_json(document | {"rows": rows})
        return 0
    header = (
        "case",
        "I/Os",
        "CPU",
        "M I/O per CPU s",
        "ns per I/O",
        "ns per page",
        "x life",
        "peak memory",
    )
    cells = [
        (
            str(row["case"]),
            f"{row['host_ios']:,}",
            f"{row['cpu_s']:.1f} s",
            _millions(row["ios_per_cpu_s"]),
            _number(row["ns_per_host_io"]),
            _number(row["ns_per_page_program"]),
            _number(row.get("times_life")),
            f"{row['peak_rss_mib']:,.0f} MiB",
        )
        for row in rows
    ]
    print(table(header, cells))
    return 0


@app.command
def fio(
    *,
    target: TargetOptions = NO_TARGET,
    seconds: float = 60.0,
    pairs: int = 3,
    json: JsonFlag = False,
) -> int:
    """Measure the overhead over plain fio, with alternating runs of 4 KiB random writes.

    Parameters
    ----------
    seconds
        Duration of each run, in seconds.
    pairs
        Number of pairs of runs.
    """
    from writecliff.lab.bench.fio import check, run, summary

    check(seconds, pairs)
    done = []
    with opened(target, seed=1) as engine:
        name = engine.identify().target
        for pair in run(engine, seconds=seconds, pairs=pairs):
            done.append(pair)
            log(f"pair {len(done)} of {pairs}: {100 * pair.iops_ratio:.2f} % of plain fio's IOPS")
    whole = summary(done)
    rows = [
        asdict(pair) | {name: getattr(pair, name) for name in whole if name != "bare_spread"}
        for pair in done
    ]
    if json:
        document = {"schema": "writecliff/bench-fio/1", "target": name, "seconds": seconds}
        emit_json(document | {"summary": whole, "rows": rows})
        return 0
    header = ("pair", "way", "IOPS", "wall", "CPU per I/O")
    cells = [
        (
            str(number),
            way,
            f"{row[f'{key}_iops']:,.0f}",
            f"{row[f'{key}_wall_s']:.2f} s",
            f"{row[f'{key}_cpu_us']:.2f} µs",
        )
        for number, row in enumerate(rows, 1)
        for key, way in (("bare", "plain fio"), ("writecliff", "writecliff"))
    ]
    print(table(header, cells))
    print(
        f"median of the pairs: {100 * whole['iops_ratio']:.1f} % of plain fio's IOPS (its own runs"
        f" differ by {100 * whole['bare_spread']:.1f} %), {100 * whole['cpu_ratio']:.1f} % of its"
        f" CPU time per I/O, {whole['extra_wall_s']:+.2f} s of wall time per run;"
        f" writecliff itself took {whole['own_cpu_s']:.2f} s of CPU time per run"
    )
    return 0


@app.command
def serve(
    *,
    device: str = "sim:nvme-tlc-960",
    seconds: float = 3.0,
    kernel_target: bool = False,
    json: JsonFlag = False,
) -> int:
    """Measure a served drive's overhead per request, with untimed 4 KiB random reads.

    Parameters
    ----------
    device
        The drive.
    seconds
        Duration of each load, in seconds.
    kernel_target
        Also measure the kernel's NVMe/TCP target on a null block device. This measurement requires
        root and the kernel modules nvmet-tcp and null_blk.
    """
    from writecliff.lab.bench.serve import run

    rows = []
    for row in run(device, seconds=seconds, kernel=kernel_target):
        rows.append(row)
        log(f"{row['case']} {row['transport']} {row['client']}: {row['iops']:,.0f} IOPS")
    if json:
        document = {"schema": "writecliff/bench-serve/1", "device": device, "seconds": seconds}
        emit_json(document | {"rows": rows})
        return 0
    header = ("case", "transport", "client", "IOPS", "50 %", "99.9 %", "server CPU")
    cells = [
        (
            str(row["case"]),
            str(row["transport"]),
            str(row["client"]),
            f"{row['iops']:,.0f}",
            *(f"{_number(row[name])} µs" for name in ("latency_p50_us", "latency_p99_9_us")),
            f"{_number(row['server_cpu_us'])} µs",
        )
        for row in rows
    ]
    print(table(header, cells, "lllrrrr"))
    return 0


@app.command
def capture(
    *,
    iops: int = 50_000,
    seconds: float = 10.0,
    pairs: int = 3,
    json: JsonFlag = False,
) -> int:
    """Measure the overhead of `capture --device` on fixed-rate fio on an in-memory loop device.

    Parameters
    ----------
    iops
        Rate of 4 KiB random reads, in I/Os per second.
    seconds
        Duration of each run, in seconds.
    pairs
        Number of pairs of runs, each with one run without and one run with a capture.
    """
    from writecliff.lab.bench.capture import run

    rows = []
    for pair in run(seconds=seconds, pairs=pairs, iops=iops):
        rows.append(asdict(pair) | {"tracepoints_us": pair.tracepoints_us})
        log(f"pair {len(rows)} of {pairs}: {pair.capture_cpu_pct:.1f} % of a processor")
    if json:
        document = {"schema": "writecliff/bench-capture/1", "iops": iops, "seconds": seconds}
        emit_json(document | {"rows": rows})
        return 0
    header = (
        "IOPS without", "with", "capture's CPU", "of the machine", "added to an I/O", "lost events",
        "bytes per request",
    )  # fmt: skip
    cells = [
        (
            f"{row['bare_iops']:,.0f}",
            f"{row['captured_iops']:,.0f}",
            f"{row['capture_cpu_pct']:.1f} %",
            f"{row['machine_cpu_pct']:.1f} %",
            f"{row['tracepoints_us']:+.2f} µs",
            f"{row['lost_events']:,}",
            f"{row['trace_bytes'] / max(1, row['requests']):.1f}",
        )
        for row in rows
    ]
    print(table(header, cells))
    return 0


@app.command
def timed(
    *,
    iops: int = 50_000,
    seconds: float = 5.0,
    pairs: int = 3,
    json: JsonFlag = False,
) -> int:
    """Compare the timing accuracy of a trace replay on a loop device with fio's.

    Parameters
    ----------
    iops
        Rate of 4 KiB random reads in a Poisson process, in I/Os per second.
    seconds
        Trace duration, in seconds.
    pairs
        Number of pairs of replays, each with one replay by the issuer and one by fio.
    """
    from writecliff.lab.bench.timed import run

    rows = []
    for pair in run(seconds=seconds, pairs=pairs, iops=iops):
        rows.append(asdict(pair))
        log(f"pair {len(rows)} of {pairs}: p99 {_number(pair.late_p99_us)} µs late")
    if json:
        document = {"schema": "writecliff/bench-timed/1", "iops": iops, "seconds": seconds}
        emit_json(document | {"rows": rows})
        return 0
    header = ("late p50", "p99", "max", "length", "CPU", "length of fio's", "load")
    cells = [
        (
            *(f"{_number(row[name])} µs" for name in ("late_p50_us", "late_p99_us", "late_max_us")),
            f"{row['length_error_pct']:+.3f} %",
            f"{row['cpu_s']:.2f} s",
            f"{row['fio_length_error_pct']:+.1f} %",
            f"{row['load']:.1f} on {row['processors']}",
        )
        for row in rows
    ]
    print(table(header, cells))
    return 0


def _number(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, int | float) else "-"


@app.command
def fit(*, capacity: str = "1TB", json: JsonFlag = False) -> int:
    """Measure the duration of a fit of six parameters to ten figures, first on a scaled-down drive.

    Parameters
    ----------
    capacity
        Drive capacity.
    """
    from writecliff.lab.bench.fit import run

    result = run(log, capacity=capacity)
    if json:
        emit_json(BenchFit.of(result))
        return 0
    rows = [
        (row["key"], *(f"{row[name]:,.0f} ns" for name in ("truth", "start", "found")),
         f"{row['error_pct']:+.1f} %", "" if row["determined"] else "not determined")
        for row in result["rows"]
    ]  # fmt: skip
    print(table(("parameter", "truth", "start", "found", "error", ""), rows, "lrrrrl"))
    errors = [abs(error) for error in result["figure_errors_pct"] if error is not None]
    print(
        f"first output after {result['first_output_s']:.1f} s, scaled drive fitted after "
        f"{result['scaled_s']:.0f} s, full drive simulated after {result['wall_s']:.0f} s "
        f"({result['cpu_s']:.0f} s of CPU time); largest error of its figures {max(errors):.1f} %"
    )
    return 0


@app.command
def store(*, runs: int = 10_000, folder: Path | None = None, json: JsonFlag = False) -> int:
    """Measure how long it takes to list, filter and query a store of many runs.

    Parameters
    ----------
    runs
        Number of runs in the store.
    folder
        Create the store in this folder, which must be empty or not exist, and do not delete it
        afterwards (default: a temporary folder).
    """
    import tempfile

    from writecliff.lab.bench.store import run
    from writecliff.store.files import check_unused

    rows = []
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as made:
        if folder is not None:
            check_unused(folder)
        for row in run(folder or Path(made), runs=runs):
            rows.append(row)
            log(f"{row['case']}: {row['wall_s']:.2f} s")
    if json:
        emit_json(BenchStore.of({"runs": runs, "rows": rows}))
        return 0
    cells = [
        (str(row["case"]), *("-" if row[name] is None else f"{row[name]:.2f} s"
                             for name in ("wall_s", "cpu_s", "goal_s")))
        for row in rows
    ]  # fmt: skip
    print(table(("case", "wall", "CPU", "goal"), cells, "lrrr"))
    return 0


@app.command
def choose(*, drives: int = 20, jobs: Whole = None, json: JsonFlag = False) -> int:
    """Measure the run time of `choose` for a 30-minute mixed load, first without cached states.

    The candidates are 1 to 2 TB drives.

    Parameters
    ----------
    drives
        Number of drives.
    jobs
        Number of simultaneous runs (default: one per core, as memory allows).
    """
    import tempfile

    from writecliff.lab.bench.choose import run

    rows = []
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as folder:
        for row in run(Path(folder), count=drives, jobs=jobs):
            rows.append(row)
            log(f"{row['case']}: {row['wall_s']:.0f} s")
    if json:
        emit_json(BenchChoose.of({"rows": rows}))
        return 0
    cells = [
        (str(row["case"]), str(row["drives"]), f"{row['wall_s']:.0f} s", f"{row['goal_s']:.0f} s",
         "yes" if row["same"] else "no")
        for row in rows
    ]  # fmt: skip
    print(table(("case", "drives", "wall", "goal for 20", "same answer"), cells, "lrrrl"))
    return 0


@app.command
def sweep(*, cells: int = 200, pairs: int = 1, json: JsonFlag = False) -> int:
    """Compare the speed of a sweep on two local Dask workers with its speed under `--jobs 2`.

    Parameters
    ----------
    cells
        Number of runs in each sweep.
    pairs
        Number of pairs of alternating sweeps.
    """
    import tempfile

    from writecliff.lab.bench.sweep import run

    rows = []
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as folder:
        for pair in run(Path(folder), cells=cells, pairs=pairs):
            rows.append(asdict(pair) | {"ratio": pair.ratio})
            log(f"pair {len(rows)} of {pairs}: {pair.ratio:.2f} times the time of --jobs 2")
    if json:
        emit_json(BenchSweep.of({"cells": cells, "rows": rows}))
        return 0
    cells_ = [
        (*(f"{row[name]:.1f} s" for name in ("jobs_wall_s", "dask_wall_s", "jobs_cpu_s",
                                             "dask_cpu_s")),
         f"{row['ratio']:.2f}", "yes" if row["identical"] else "no")
        for row in rows
    ]  # fmt: skip
    header = ("--jobs 2", "Dask", "CPU", "CPU with Dask", "ratio", "identical tables")
    print(table(header, cells_))
    return 0


@app.command
def trace(*, lines: Whole = None, json: JsonFlag = False) -> int:
    """Measure how fast a block trace in MSR Cambridge format is read and characterised.

    Parameters
    ----------
    lines
        Number of lines of the trace, which is created in a temporary folder (default: 10,000,000).
    """
    from writecliff.lab.bench.trace import run

    count = 10_000_000 if lines is None else lines
    rows = []
    for row in run(count):
        rows.append(row)
        log(f"{row['case']}: {row['lines_per_cpu_s'] / 1e6:.2f} million lines per CPU second")
    if json:
        emit_json(BenchTrace.of({"lines": count, "rows": rows}))
        return 0
    cells = [
        (
            str(row["case"]),
            f"{row['lines']:,}",
            f"{row['cpu_s']:.2f} s",
            _millions(row["lines_per_cpu_s"]),
            f"{row['peak_rss_mib']:,.0f} MiB",
        )
        for row in rows
    ]
    print(table(("case", "lines", "CPU", "M lines per CPU s", "peak memory"), cells, "lrrrr"))
    return 0


def _millions(value: object) -> str:
    return f"{value / 1e6:.2f}" if isinstance(value, int | float) and value else "-"
