"""The course of a job's I/Os in fio's options: direction and its modifier, sizes, streams."""

from __future__ import annotations

from writecliff.engines.fio.section import Section
from writecliff.workload.model import BlockSize

_LISTED = ("read", "write", "trim")  # the order of fio's lists


def refuse_what_only_simulation_has(section: Section) -> None:
    """Refuse what `engines.fio` does not give to fio: its results come in another form."""
    job = section.job
    for name, given, instead in (
        ("host_zones", job.host_zones, "fio itself, with zonemode=zbd"),
        ("log", job.log, "run the log with fio itself"),
        (
            "model",
            job.model,
            "the fio job file that `writecliff trace synthesise` writes beside it",
        ),
        ("files", job.files > 1, "one job for each part of the range"),
        ("one_position", job.one_position, "a job for each operation"),
        ("start_bytes", job.start_bytes or job.write_start_bytes, "an offset"),
        ("until_steady", job.until_steady, "a duration, or `writecliff test`"),
        ("latency_target", job.latency_target, "a sweep over queue depths"),
        ("least_rates", job.least_rates, "a duration, and compare the result"),
    ):
        if given:
            section.refuse(f"{name} is for simulated drives only", f"use {instead}")


def add_direction(section: Section) -> None:
    """Add `rw`, with the number of I/Os of a run, or the hole, behind a colon."""
    job = section.job
    modifier = ""
    if job.run_ios > 1:
        modifier = f":{job.run_ios}"
    elif job.hole_bytes and not job.hole_after_bytes:
        modifier = f":{job.hole_bytes}"
    section.add("rw", _direction(section) + modifier)
    if job.sequential_read_pct or job.sequential_write_pct:
        shares = (job.sequential_read_pct, job.sequential_write_pct)
        section.add("percentage_random", ",".join(_random_percent(section, pct) for pct in shares))
    if job.hole_after_bytes:
        section.add("zonemode", "strided")
        section.add("zonesize", job.hole_after_bytes)
        section.add("zoneskip", job.hole_bytes)
    if job.trim_pct == 0 and 0 < job.read_pct < 100:
        section.add("rwmixread", section.whole_percent("read_pct", job.read_pct))
        if job.pattern == "sequential":
            section.warn("in fio reads and writes each follow their own sequence")


def _random_percent(section: Section, sequential_pct: float) -> str:
    """fio's share of random I/Os in an operation, in the whole percents that it takes."""
    nearest = round(sequential_pct)
    if abs(nearest - sequential_pct) > 1e-6:
        section.warn(
            f"fio takes whole percents: {nearest} % of an operation's I/Os are sequential, not "
            f"{sequential_pct:.4g} %"
        )
    return str(100 - nearest)


def _direction(section: Section) -> str:
    job = section.job
    prefix = "rand" if job.pattern == "random" else ""
    if job.trim_first:
        return f"{prefix}trimwrite"
    if job.trim_pct == 100 and job.read_pct == 0:
        return f"{prefix}trim"
    if job.trim_pct != 0:
        section.refuse(
            f"trim_pct {job.trim_pct:g}: fio cannot mix trims with reads and writes in one job",
            "put the trims into a separate job (trim_pct 100)",
        )
    return prefix + ("rw" if 0 < job.read_pct < 100 else "read" if job.read_pct else "write")


def add_block_sizes(section: Section) -> None:
    """Add `bs`, or `bssplit` for a mix; as lists where operations differ."""
    job = section.job
    listed = [job.block_sizes_of(operation) for operation in _LISTED]
    single = all(len(sizes) == 1 for sizes in listed)
    parts = [str(sizes[0].bytes) if single else _split(section, sizes) for sizes in listed]
    same = len(set(parts)) == 1
    section.add("bs" if single else "bssplit", parts[0] if same else ",".join(parts))


def _split(section: Section, sizes: tuple[BlockSize, ...]) -> str:
    total = sum(size.weight for size in sizes)
    if total <= 0 or any(size.weight < 0 for size in sizes):
        section.refuse("the weights of its block sizes are not positive")
    shares = (
        f"{size.bytes}/"
        f"{section.whole_percent(f'share of block size {size.bytes}', 100 * size.weight / total)}"
        for size in sizes
        if size.weight
    )
    return ":".join(shares)


def add_streams(section: Section, kind: str) -> None:
    """Add the streams of the writes, if the job asks for any."""
    job = section.job
    if streams := job.streams or ((job.stream,) if job.stream else ()):
        section.add("dataplacement", kind)
        section.add("plids", ",".join(map(str, streams)))
    if len(streams) > 1:
        section.add("plid_select", "random" if job.stream_order == "random" else "roundrobin")
