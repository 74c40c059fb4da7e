"""List and show ready-made workloads."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cyclopts import App

from writecliff.cli.output import JsonFlag, emit_json, table

if TYPE_CHECKING:
    from writecliff.profiles import Profile
    from writecliff.workload.model import Job

GROUP = "workloads and traces", 2
app = App(name="profile", help=__doc__)


@app.command(name="list")
def list_(*, json: JsonFlag = False) -> int:
    """List the ready-made workloads for `writecliff run NAME`."""
    from writecliff.profiles import profile, profile_names

    profiles = [profile(name) for name in profile_names()]
    if json:
        from writecliff.api.answers.traces import ListedProfile, ProfileList

        emit_json(ProfileList([ListedProfile(**_fields(item)) for item in profiles]))
        return 0
    rows = [
        (item.name, _sizes(item), _reads(item), _pattern(item), item.title) for item in profiles
    ]
    print(table(("profile", "block sizes", "reads", "pattern", "description"), rows))
    return 0


@app.command
def show(name: str, *, json: JsonFlag = False) -> int:
    """Print a ready-made workload as an editable workload file.

    Parameters
    ----------
    name
        Name of the ready-made workload, from `writecliff profile list`.
    """
    from writecliff.profiles import profile

    chosen = profile(name)
    if json:
        from writecliff.api.answers.traces import Profile

        emit_json(Profile(**_fields(chosen)))
        return 0
    sys.stdout.write(chosen.path.read_text(encoding="utf-8"))
    return 0


def _fields(item: Profile) -> dict[str, Any]:
    shown = {key: getattr(item, key) for key in ("name", "title", "source")}
    return shown | {"jobs": [_job(job) for job in item.jobs]}


def _job(job: Job) -> dict[str, Any]:
    keys = ("name", "pattern", "read_pct", "block_sizes", "threads", "rate_iops")
    values = asdict(job)
    return {key: values[key] for key in keys}


def _sizes(item: Profile) -> str:
    sizes = [f"{size / 1024:g}" for size in item.sizes_bytes]
    return f"{sizes[0]} KiB" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} KiB"


def _reads(item: Profile) -> str:
    shares = sorted({job.read_pct for job in item.jobs})
    return f"{shares[0]:g} %" if len(shares) == 1 else "by job"


def _pattern(item: Profile) -> str:
    kinds = {str(job.addresses.kind) for job in item.jobs} - {"uniform"}
    if any(job.sequential_read_pct or job.sequential_write_pct for job in item.jobs):
        kinds.add("partly sequential")
    return ", ".join(sorted({job.pattern for job in item.jobs} | kinds))
