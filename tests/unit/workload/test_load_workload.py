"""Files as workloads, from Python: `writecliff.load_workload`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

import writecliff
from writecliff.errors import ConfigError
from writecliff.workload.load import LoadStep
from writecliff.workload.model import Job, Workload
from writecliff.workload.stored import stored_steps

MIB = 1 << 20


def test_a_fio_file_becomes_steps_with_their_ramps(tmp_path: Path) -> None:
    path = tmp_path / "two.fio"
    path.write_text("[a]\nsize=1m\nramp_time=1s\nruntime=2s\ntime_based\n[b]\nstonewall\nsize=2m\n")
    loaded = writecliff.load_workload(path, capacity_bytes=8 * MIB)
    assert [load.jobs[0].ramp_ns for load in loaded.workloads] == [10**9, 0]
    assert [load.jobs[0].range_bytes for load in loaded.workloads] == [MIB, 2 * MIB]
    assert loaded.fio is not None


def test_a_workload_file_is_one_step_and_a_seed_replaces_its_own(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(
        'name = "w"\nseed = 3\n\n[[job]]\npattern = "random"\nread = "100 %"\nios = 10\n'
    )
    (reseeded,) = writecliff.load_workload(path, capacity_bytes=8 * MIB).workloads
    assert (reseeded.seed, reseeded.jobs[0].ios) == (3, 10)
    (seeded,) = writecliff.load_workload(path, capacity_bytes=8 * MIB, seed=7).workloads
    assert seeded.seed == 7


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("w.txt", "", "neither a fio job file nor a workload file"),
        (
            "w.toml",
            'name = "w"\n[[job]]\npattern = "random"\nios = 1\noffset = "16 MiB"\n',
            "reaches to",
        ),
        ("w.fio", "[j]\nsize=1m\nbs=3\n", r"w\.fio:3: "),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        writecliff.load_workload(tmp_path / name, capacity_bytes=8 * MIB)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        writecliff.load_workload(tmp_path / "none.fio", capacity_bytes=8 * MIB)


def test_steps_of_older_runs_have_a_key_for_their_ramps() -> None:
    (step,) = stored_steps([{**asdict(LoadStep(Workload("w", (Job(ios=1),)))), "ramp": None}], "x")
    assert step.workload.jobs[0].ramp_ns == 0
    ramped = {**asdict(step), "ramp": asdict(step.workload)}
    with pytest.raises(ConfigError, match="the run contains a ramp as a separate step"):
        stored_steps([ramped], "x")
