"""Results as text in fio's default output format: `IOPS=`, `BW=`, `clat percentiles`, groups.

Numbers have four significant digits, as in fio. Quantities that a simulated drive does not have are
0, as in the JSON document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from writecliff.engines.fiojson_stats import Json

_DIRECTIONS = ("read", "write", "trim", "mixed")
_LATENCY_UNITS = (("nsec", 1), ("usec", 1000), ("msec", 1_000_000))


def fio_text(document: Json) -> str:
    """Return the text form of a `fio_json` document."""
    lines = [document["fio version"], ""]
    for job in document["jobs"]:
        lines += _job(job, document["time"])
    for group, jobs in groupby(document["jobs"], key=lambda job: job["groupid"]):
        lines += ["", f"Run status group {group} (all jobs):", *_group(list(jobs))]
    if document.get("disk_util"):
        lines += ["", "Disk stats (read/write):"]
        lines += [_disk(disk) for disk in document["disk_util"]]
    return "\n".join(lines) + "\n"


def number(value: float, base: int = 1000, unit: str = "", digits: int = 4) -> str:
    """Return a number in at most `digits` characters, with the prefix for its power of `base`.

    >>> number(12_345), number(4096 * 2500, 1024, "B/s"), number(999, 1000, "B")
    ('12.3k', '9.77MiB/s', '999B')
    """
    whole, rest, power = int(value), None, 0
    prefixes = ("", "k", "M", "G", "T", "P") if base == 1000 else ("", "Ki", "Mi", "Gi", "Ti", "Pi")
    while len(str(whole)) > digits and power < len(prefixes) - 1:
        (whole, rest), power = divmod(whole, base), power + 1
    room = digits - len(str(whole))
    if rest is None:
        text = str(whole)
    elif room <= 1:  # There is no room for a decimal point and a digit.
        text = str(whole + (rest >= base // 2))
    else:
        text = f"{whole + rest / base:.{room - 1}f}"
    return f"{text}{prefixes[power]}{unit}"


def _rates(bytes_per_s: float) -> str:
    return f"{number(bytes_per_s, 1024, 'B/s')} ({number(bytes_per_s, 1000, 'B/s')})"


def _job(job: Json, time: str) -> Iterator[str]:
    head = f"(groupid={job['groupid']}, jobs=1): err={job['error']:2d}: pid=0: {time}"
    yield f"{job['jobname']}: {head}"
    if "desc" in job:
        yield f"  Description  : [{job['desc']}]"
    for name in _DIRECTIONS:
        if job.get(name, {}).get("runtime"):
            yield from _direction(name, job[name])
    for unit, key in (("nsec", "latency_ns"), ("usec", "latency_us"), ("msec", "latency_ms")):
        shares = [f"{level}={share:.2f}%" for level, share in job[key].items() if share]
        for begin in range(0, len(shares), 5):
            yield f"  lat ({unit})   : {', '.join(shares[begin : begin + 5])}"
    if job.get("sync", {}).get("lat_ns", {}).get("N"):
        yield "  fsync/fdatasync/sync_file_range:"
        yield _latency("sync", job["sync"]["lat_ns"])
        if job["sync"]["lat_ns"].get("percentile"):
            yield from _percentiles("sync", job["sync"]["lat_ns"]["percentile"])
    yield (
        f"  cpu          : usr={job['usr_cpu']:.2f}%, sys={job['sys_cpu']:.2f}%, ctx={job['ctx']},"
        f" majf={job['majf']}, minf={job['minf']}"
    )
    for label, key in (
        ("IO depths ", "iodepth_level"),
        ("   submit ", "iodepth_submit"),
        ("   complete", "iodepth_complete"),
    ):
        yield f"  {label:12} : " + ", ".join(f"{n}={s:.1f}%" for n, s in job[key].items())
    counts = ",".join(str(job.get(name, {}).get("total_ios", 0)) for name in _DIRECTIONS[:3])
    flushes = job.get("sync", {}).get("total_ios", 0)
    yield f"     issued rwts: total={counts},{flushes} short=0,0,0,0 dropped=0,0,0,0"
    yield (
        f"     latency   : target={job['latency_target']}, window={job['latency_window']},"
        f" percentile={job['latency_percentile']:.2f}%, depth={job['latency_depth']}"
    )


def _direction(name: str, block: Json) -> Iterator[str]:
    iops = number(block["iops"])
    amount = number(block["io_bytes"], 1024, "B")
    yield f"  {name}: IOPS={iops}, BW={_rates(block['bw_bytes'])}({amount}/{block['runtime']}msec)"
    for label, key in (("slat", "slat_ns"), ("clat", "clat_ns"), (" lat", "lat_ns")):
        if block[key]["max"]:
            yield _latency(label, block[key])
    for label, key in (("clat", "clat_ns"), ("lat", "lat_ns")):
        if block[key].get("percentile"):
            yield from _percentiles(label, block[key]["percentile"])
    if block["bw_samples"]:
        unit, by = ("MiB/s", 1024) if block["bw_mean"] > 1024**2 else ("KiB/s", 1)
        yield (
            f"   bw ({unit:>7}): min={block['bw_min'] // by:5d}, max={block['bw_max'] // by:5d},"
            f" per={block['bw_agg']:.2f}%, avg={block['bw_mean'] / by:5.2f},"
            f" stdev={block['bw_dev'] / by:5.2f}, samples={block['bw_samples']}"
        )
        yield (
            f"   iops        : min={block['iops_min']:5d}, max={block['iops_max']:5d},"
            f" avg={block['iops_mean']:5.2f}, stdev={block['iops_stddev']:5.2f},"
            f" samples={block['iops_samples']}"
        )


def _unit(least: float, most: float) -> tuple[str, int]:
    """Return the unit that fio selects for latencies in this range, and the unit's length in ns."""
    if least > 2_000_000 and most > 99_999_999:
        return _LATENCY_UNITS[2]
    return _LATENCY_UNITS[1 if least > 2000 and most > 99_999 else 0]


def _latency(label: str, block: Mapping[str, Any]) -> str:
    unit, divisor = _unit(block["min"], block["max"])
    least, most, mean, spread = (block[key] / divisor for key in ("min", "max", "mean", "stddev"))
    ends = f"min={number(least, digits=6)}, max={number(most, digits=6)}"
    return f"    {label} ({unit}): {ends}, avg={mean:5.2f}, stdev={spread:5.2f}"


def _percentiles(label: str, given: Mapping[str, int]) -> Iterator[str]:
    values = list(given.values())
    unit, divisor = _unit(min(values), max(values))
    width = max(5, len(str(max(values) // divisor)))
    cells = [
        f" {float(name):5.2f}th=[{-(-value // divisor):{width}d}]" for name, value in given.items()
    ]
    yield f"    {label} percentiles ({unit}):"
    per_line = max(1, 73 // (12 + width))
    for begin in range(0, len(cells), per_line):
        row = ",".join(cells[begin : begin + per_line])
        yield f"     |{row}{',' if begin + per_line < len(cells) else ''}"


def _group(jobs: Sequence[Json]) -> Iterator[str]:
    for name in _DIRECTIONS:
        blocks = [job[name] for job in jobs if job.get(name, {}).get("runtime")]
        if not blocks:
            continue
        size, times = sum(b["io_bytes"] for b in blocks), [b["runtime"] for b in blocks]
        rates = [b["bw_bytes"] for b in blocks]
        total = 1000 * size / max(times)
        least, most = (
            [number(rate, base, "B/s") for rate in (min(rates), max(rates))]
            for base in (1024, 1000)
        )
        yield (
            f"{name.upper():>7}: bw={_rates(total)}, {least[0]}-{least[1]} ({most[0]}-{most[1]}),"
            f" io={number(size, 1024, 'B')} ({number(size, 1000, 'B')}),"
            f" run={min(times)}-{max(times)}msec"
        )


def _disk(disk: Json) -> str:
    return (
        f"  {disk['name']}: ios={disk['read_ios']}/{disk['write_ios']},"
        f" merge={disk['read_merges']}/{disk['write_merges']},"
        f" ticks={disk['read_ticks']}/{disk['write_ticks']},"
        f" in_queue={disk['in_queue']}, util={disk['util']:.2f}%"
    )
