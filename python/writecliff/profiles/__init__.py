"""Ready-made workloads of servers and applications.

A profile is a workload file in this folder, named after the application. Its leading comment
contains a title and the source of its figures. This module reads profiles, and adapts them to a
drive, a queue depth and a duration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.workload.load import load_workload_toml
from writecliff.workload.model import SECOND_NS, Job, Workload

FOLDER = Path(__file__).parent
# Capacity for checking a file, which must hold all profiles.
_ANY_CAPACITY_BYTES = 1 << 40


@dataclass(frozen=True)
class Profile:
    """A ready-made workload, whose `source` documents its sizes, mix and addresses."""

    name: str
    title: str
    source: str
    path: Path
    jobs: tuple[Job, ...]

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """All block sizes, in ascending order."""
        return tuple(sorted({size.bytes for job in self.jobs for size in job.block_sizes}))

    @property
    def threads(self) -> int:
        """Total number of threads in all jobs."""
        return sum(job.threads for job in self.jobs)


def profile_names() -> list[str]:
    """Return the sorted names of all profiles."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def profile_path(name: str) -> Path:
    """Return the path of a profile.

    Raises:
        ConfigError: If the profile is unknown.
    """
    names = profile_names()
    if name not in names:
        raise ConfigError.unknown("profile", name, names)
    return FOLDER / f"{name}.toml"


def find_workload(path: Path) -> Path:
    """Return a path unchanged, or the path of the profile with this name.

    Raises:
        ConfigError: If the path is neither a file nor the name of a profile.
    """
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    return profile_path(path.name)


def profile(name: str) -> Profile:
    """Read a profile.

    Raises:
        ConfigError: If the profile is unknown.
    """
    path = profile_path(name)
    title, source = _header(path.read_text(encoding="utf-8"))
    jobs = load_workload_toml(path, _ANY_CAPACITY_BYTES).jobs
    return Profile(name, title, source, path, jobs)


def _header(text: str) -> tuple[str, str]:
    """Return the title and source from the leading comment."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    title, _, source = " ".join(lines).partition(" Source: ")
    return title.rstrip("."), source.rstrip(".")


def profile_workload(
    name: str,
    capacity_bytes: int,
    *,
    queue_depth: int | None = None,
    threads: int | None = None,
    seconds: float | None = None,
    sector_bytes: int = 512,
    seed: int | None = None,
) -> Workload:
    """Return a profile's workload for a drive, where `None` selects the value in the file.

    `queue_depth` and `threads` apply to jobs without a rate. Block sizes are rounded up to
    multiples of `sector_bytes`, as the block layer does for a file system.

    Raises:
        ConfigError: If the profile is unknown, or does not fit the drive.
    """
    workload = load_workload_toml(profile_path(name), capacity_bytes)

    def at(job: Job) -> Job:
        if job.rate_iops is None and job.rate_bytes_per_s is None:
            depth = queue_depth or job.queue_depth
            job = replace(job, queue_depth=depth, threads=threads or job.threads)
        if seconds is not None:
            job = job.with_duration_s(seconds)
        return _on_sectors(job, sector_bytes)

    jobs = tuple(map(at, workload.jobs))
    return replace(workload, jobs=jobs, seed=workload.seed if seed is None else seed)


def volume_workload(
    name: str, capacity_bytes: int, volume_bytes: int, *, sector_bytes: int = 512, seed: int = 1
) -> Workload:
    """Return a profile's workload limited by volume, for preconditioning and endurance.

    Raises:
        ConfigError: If the profile is unknown, or has several jobs, which cannot share a volume.
    """
    workload = profile_workload(name, capacity_bytes, sector_bytes=sector_bytes, seed=seed)
    if len(workload.jobs) != 1:
        raise ConfigError(
            f"the profile '{name}' has {len(workload.jobs)} jobs",
            hint="choose a profile with a single job",
        )
    job = replace(workload.jobs[0], duration_ns=None, ios=None, volume_bytes=volume_bytes)
    return replace(workload, jobs=(job,))


def _on_sectors(job: Job, sector_bytes: int) -> Job:
    """Round block sizes up to whole sectors (0.5 KiB to 4 KiB on a drive with 4 KiB sectors)."""
    if all(size.bytes % sector_bytes == 0 for size in job.block_sizes):
        return job
    sizes: dict[int, float] = {}
    for size in job.block_sizes:
        whole = -(-size.bytes // sector_bytes) * sector_bytes
        sizes[whole] = sizes.get(whole, 0.0) + size.weight
    block = type(job.block_sizes[0])
    return replace(job, block_sizes=tuple(block(size, share) for size, share in sizes.items()))


def seconds_of(workload: Workload) -> float:
    """Return the duration of a workload whose jobs all have durations."""
    return max((job.duration_ns or 0) / SECOND_NS for job in workload.jobs)
